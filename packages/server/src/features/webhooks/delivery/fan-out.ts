import type { Deps, Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { type EventId, newId } from '../../../platform/ids.ts'
import type { WebhookId } from '../store.ts'
import {
  hasEvents,
  insertPostponed,
  listSubscribers,
  lockFreeQueues,
  lockPostponed,
  markPostponed,
  nextPostponed,
  type PostponedEvent,
  type TakenEvent,
  takeEvents,
} from './fan-out-store.ts'
import { insertDeliveries } from './queue-store.ts'

/** Most events of one transaction, most deliveries that it writes for them, and most webhooks of an event that is not postponed. */
const eventsMax = 500
const deliveriesMax = 4_000
const webhooksMax = 100
/** Most events and deliveries of one turn of a tenant whose events are postponed. */
const turnEventsMax = 100
const turnDeliveriesMax = 1_000

type FanOutDeps = Pick<Deps, 'db' | 'clock' | 'random'>

interface NewDelivery {
  readonly eventId: EventId
  readonly type: string
  readonly webhookId: WebhookId
}

interface FannedOut {
  /** Number of deliveries that were written. */
  readonly written: number
  /** Whether more can be written now. */
  readonly isMore: boolean
}

/**
 * Returns a function that writes the deliveries of new events. Each call writes a bounded number: for the oldest events, then for the postponed
 * events of one tenant, in turn. Events that would delay others are postponed: events of many webhooks, events beyond the limit of a transaction, and
 * events of a webhook that a request has locked. Deliveries are written in the transaction that marks their event: whichever process dies, each event
 * has all of its deliveries once.
 */
export function createFanOut(deps: FanOutDeps): () => Promise<FannedOut> {
  let last: Tenant | undefined
  return async () => {
    if (!(await hasEvents(deps.db))) return { written: 0, isMore: false }
    const taken = await deps.db.tx((tx) => writeNew(tx, deps))
    last = await nextPostponed(deps.db, last)
    const tenant = last
    const written = tenant === undefined ? 0 : await deps.db.tx((tx) => writeTurn(tx, deps, tenant))
    return { written: taken.written + written, isMore: taken.isMore || written > 0 }
  }
}

async function writeNew(tx: Tx, deps: FanOutDeps): Promise<FannedOut> {
  const taken = await takeEvents(tx, { eventsMax, webhooksMax: webhooksMax + 1 })
  const within = withinLimits(taken, (event) => event.webhookIds.length)
  const free = await lockFreeQueues(tx, [...new Set(within.flatMap(({ webhookIds }) => webhookIds))])
  const now = new Set(
    withinLimits(within, ({ webhookIds }) => (webhookIds.every((id) => free.has(id)) ? 0 : Number.POSITIVE_INFINITY)),
  )
  const deliveries = [...now].flatMap(({ eventId, type, webhookIds }) =>
    webhookIds.map((webhookId) => ({ eventId, type, webhookId })),
  )
  await write(tx, deps, deliveries)
  const postponed = taken.filter((event) => !now.has(event) && event.webhookIds.length > 0)
  if (postponed.length > 0) await insertPostponed(tx, postponed)
  return { written: deliveries.length, isMore: taken.length === eventsMax }
}

/** Returns the events that are written now: of each tenant those before the first that is postponed. */
function withinLimits(events: readonly TakenEvent[], weightOf: (event: TakenEvent) => number): TakenEvent[] {
  const behind = new Set<string>()
  let total = 0
  return events.filter((event) => {
    const tenant = `${event.organisationId}/${event.environment}`
    const weight = weightOf(event)
    const isNow = !event.isBehind && !behind.has(tenant) && weight <= webhooksMax && total + weight <= deliveriesMax
    if (isNow) total += weight
    else behind.add(tenant)
    return isNow
  })
}

/**
 * Writes deliveries of a tenant's postponed events, each up to the first webhook that somebody has locked. Each webhook gets its events
 * oldest first. Webhooks are read for all events of a type together, from the first one that any of them still needs, so an event with few
 * left can wait for newer ones of its type.
 */
async function writeTurn(tx: Tx, deps: FanOutDeps, tenant: Tenant): Promise<number> {
  const events = await lockPostponed(tx, tenant, turnEventsMax)
  const afters = new Map<string, string>()
  for (const { type, after } of events) if (after < (afters.get(type) ?? '~')) afters.set(type, after)
  const subscribers = await listSubscribers(tx, tenant, afters, turnDeliveriesMax + 1)
  const turns = turnsOf(events, subscribers)
  const free = await lockFreeQueues(tx, [...new Set(turns.flatMap(({ webhookIds }) => webhookIds))])
  const done = new Map<EventId, WebhookId | undefined>()
  const deliveries: NewDelivery[] = []
  for (const { event, webhookIds, isLast } of turns) {
    const firstLocked = webhookIds.findIndex((webhookId) => !free.has(webhookId))
    const unlocked = firstLocked < 0 ? webhookIds : webhookIds.slice(0, firstLocked)
    deliveries.push(...unlocked.map((webhookId) => ({ ...event, webhookId })))
    if (firstLocked < 0 && isLast) done.set(event.eventId, undefined)
    else if (unlocked.length > 0) done.set(event.eventId, unlocked.at(-1))
  }
  await write(tx, deps, deliveries)
  await markPostponed(tx, tenant, done)
  return deliveries.length
}

interface Turn {
  readonly event: PostponedEvent
  readonly webhookIds: readonly WebhookId[]
  /** Whether the event has no further webhooks. */
  readonly isLast: boolean
}

/** Returns the webhooks whose deliveries one turn writes for each event. */
function turnsOf(
  events: readonly PostponedEvent[],
  subscribers: ReadonlyMap<string, readonly WebhookId[]>,
): readonly Turn[] {
  let left = turnDeliveriesMax
  return events.flatMap((event) => {
    const all = subscribers.get(event.type) ?? []
    const others = all.filter((webhookId) => webhookId > event.after)
    if (left === 0 && others.length > 0) return []
    const webhookIds = others.slice(0, left)
    left -= webhookIds.length
    return [{ event, webhookIds, isLast: webhookIds.length === others.length && all.length <= turnDeliveriesMax }]
  })
}

async function write(tx: Tx, deps: FanOutDeps, deliveries: readonly NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return
  await insertDeliveries(tx, {
    ids: deliveries.map(() => newId('del', deps)),
    eventIds: deliveries.map(({ eventId }) => eventId),
    types: deliveries.map(({ type }) => type),
    webhookIds: deliveries.map(({ webhookId }) => webhookId),
    now: deps.clock.now(),
  })
}
