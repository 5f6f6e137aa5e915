import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { anyLength, type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { type EventId, id } from '../../../platform/ids.ts'
import type { WebhookId } from '../store.ts'

/* The statements that write deliveries of new events. They serve all tenants, so none waits for a lock of a request. */

/** A condition: whether there are events whose deliveries are not written yet. */
export const isAnyEventDue = sql`(
  (select event_id from events_due order by event_id limit 1) is not null or (select event_id from events_postponed limit 1) is not null)`

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

const TakenRow = TenantRow.extend({
  eventId: id('evt'),
  type: z.string(),
  /** The webhooks that subscribe to the type, with spaces between them: the same text for all events of a type, which is parsed once. */
  webhooks: z.string(),
  /** Whether earlier events of the tenant are postponed. */
  isBehind: z.boolean(),
})
const WebhookIds = z.array(id('wh'))

export interface TakenEvent extends Omit<z.output<typeof TakenRow>, 'webhooks'> {
  /** The webhooks that subscribe to the type, in the order of their ids, up to the limit of the read. */
  readonly webhookIds: readonly WebhookId[]
}

/** Whether there are events whose deliveries are not written yet. */
export async function hasEvents(db: Queryable): Promise<boolean> {
  const { hasEvents } = await db.one(z.object({ hasEvents: z.boolean() }), sql`select ${isAnyEventDue} as has_events`)
  return hasEvents
}

/**
 * Takes the oldest events whose deliveries are not written yet, with the webhooks that subscribe to them. Subscriptions are compared once
 * for each type of a tenant. No two processes take the same event, and a failed transaction leaves it unchanged.
 */
export async function takeEvents(
  tx: Tx,
  { eventsMax, webhooksMax }: { readonly eventsMax: number; readonly webhooksMax: number },
): Promise<TakenEvent[]> {
  const rows = await tx.many(
    TakenRow,
    sql`
    with taken as (
      delete from events_due where event_id = any(array(
        select event_id from events_due order by event_id limit ${eventsMax} for update skip locked))
      returning event_id),
    due as materialized (
      select e.id as event_id, e.organisation_id, e.environment, e.type from taken join events e on e.id = taken.event_id),
    kinds as materialized (
      select kind.*,
        exists (
          select from events_postponed p
          where p.organisation_id = kind.organisation_id and p.environment = kind.environment) as is_behind,
        array_to_string(array(
          select w.id from webhooks w
          where w.organisation_id = kind.organisation_id and w.environment = kind.environment and w.deleted_at is null
            and (w.events @> array[kind.type] or w.events @> array['*'])
          order by w.id limit ${webhooksMax}), ' ') as webhooks
      from (select distinct organisation_id, environment, type from due) as kind)
    select event_id, organisation_id, environment, type, webhooks, is_behind
    from due join kinds using (organisation_id, environment, type)
    order by event_id`,
  )
  const parsed = new Map<string, readonly WebhookId[]>([['', []]])
  return rows.map(({ webhooks, ...event }) => {
    const webhookIds = parsed.get(webhooks) ?? WebhookIds.parse(webhooks.split(' '))
    parsed.set(webhooks, webhookIds)
    return { ...event, webhookIds }
  })
}

/**
 * Locks the queues that nobody else has locked, and returns them: no webhook of these is turned off or deleted between the read and the
 * write.
 */
export async function lockFreeQueues(tx: Tx, webhookIds: readonly WebhookId[]): Promise<ReadonlySet<WebhookId>> {
  if (webhookIds.length === 0) return new Set()
  const rows = await tx.many(
    z.object({ webhookId: id('wh') }),
    sql`
    select webhook_id from webhook_queues where webhook_id = any(${anyLength(webhookIds)})
    order by webhook_id for update skip locked`,
  )
  return new Set(rows.map(({ webhookId }) => webhookId))
}

/** Leaves events to the turns of their tenants. */
export async function insertPostponed(
  tx: Tx,
  events: readonly (Tenant & { readonly eventId: EventId })[],
): Promise<void> {
  const organisationIds = events.map(({ organisationId }) => organisationId)
  const environments = events.map(({ environment }) => environment)
  const eventIds = events.map(({ eventId }) => eventId)
  await tx.run(sql`
    insert into events_postponed (organisation_id, environment, event_id)
    select * from unnest(${organisationIds}::text[], ${environments}::text[], ${eventIds}::text[])`)
}

/** Returns the next tenant behind the given one that has postponed events, or the first. */
export async function nextPostponed(db: Queryable, last: Tenant | undefined): Promise<Tenant | undefined> {
  const behind =
    last === undefined ? sql`true` : sql`(organisation_id, environment) > (${last.organisationId}, ${last.environment})`
  const next = await db.maybeOne(
    TenantRow,
    sql`
    select organisation_id, environment from events_postponed where ${behind}
    order by organisation_id, environment limit 1`,
  )
  return next !== undefined || last === undefined ? next : nextPostponed(db, undefined)
}

const PostponedEvent = z.object({ eventId: id('evt'), type: z.string(), after: z.string() })
export type PostponedEvent = z.output<typeof PostponedEvent>

/** Locks the oldest postponed events of a tenant that no other process has. */
export function lockPostponed(tx: Tx, tenant: Tenant, eventsMax: number): Promise<PostponedEvent[]> {
  return tx.many(
    PostponedEvent,
    sql`
    with oldest as materialized (
      select event_id, after from events_postponed
      where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      order by event_id limit ${eventsMax} for update skip locked)
    select event_id, type, after from oldest join events on events.id = event_id order by event_id`,
  )
}

const Subscribers = z.object({ type: z.string(), webhookIds: z.array(id('wh')) })

/** Returns the tenant's webhooks that subscribe to each type, in the order of their ids, behind the given one of each type. */
export async function listSubscribers(
  tx: Tx,
  tenant: Tenant,
  afters: ReadonlyMap<string, string>,
  webhooksMax: number,
): Promise<ReadonlyMap<string, readonly WebhookId[]>> {
  const rows = await tx.many(
    Subscribers,
    sql`
    select given.type, array(
      select w.id from webhooks w
      where w.organisation_id = ${tenant.organisationId} and w.environment = ${tenant.environment} and w.deleted_at is null
        and (w.events @> array[given.type] or w.events @> array['*']) and w.id > given.after
      order by w.id limit ${webhooksMax}) as webhook_ids
    from unnest(${anyLength([...afters.keys()])}, ${anyLength([...afters.values()])}) as given (type, after)`,
  )
  return new Map(rows.map(({ type, webhookIds }) => [type, webhookIds]))
}

/** Records up to which webhook postponed events have their deliveries; undefined: all have. */
export async function markPostponed(
  tx: Tx,
  tenant: Tenant,
  done: ReadonlyMap<EventId, WebhookId | undefined>,
): Promise<void> {
  const own = sql`p.organisation_id = ${tenant.organisationId} and p.environment = ${tenant.environment}`
  const ended = [...done].flatMap(([eventId, after]) => (after === undefined ? [eventId] : []))
  const begun = [...done].flatMap(([eventId, after]) => (after === undefined ? [] : [{ eventId, after }]))
  if (ended.length > 0)
    await tx.run(sql`delete from events_postponed p where ${own} and p.event_id = any(${ended}::text[])`)
  if (begun.length > 0)
    await tx.run(sql`
      update events_postponed p set after = given.after
      from unnest(${begun.map(({ eventId }) => eventId)}::text[], ${begun.map(({ after }) => after)}::text[]) as given (event_id, after)
      where ${own} and p.event_id = given.event_id`)
}
