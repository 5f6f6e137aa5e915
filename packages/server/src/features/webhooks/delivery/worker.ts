import { instantOf } from '../../../platform/clock.ts'
import { newId } from '../../../platform/ids.ts'
import { startDueLoop } from '../../../platform/work/due-work.ts'
import { pause, type RunningLoop } from '../../../platform/work/loop.ts'
import type { DueCursors } from '../../plans/index.ts'
import { type EndingPlace, endNext, isAnyEndDue } from '../delivery-store.ts'
import type { Deps } from '../ports.ts'
import type { WebhookId } from '../store.ts'
import { EndpointQueue, shareFirst, shareMax } from './endpoint.ts'
import { createFanOut } from './fan-out.ts'
import { isAnyEventDue } from './fan-out-store.ts'
import {
  type DeliveryLease,
  isAnyQueueDue,
  leaseGivenQueues,
  leaseQueues,
  listDue,
  listEndpoints,
  listQueuesByShares,
  type OwnedQueue,
  releaseQueues,
  renewQueues,
} from './queue-store.ts'
import { createRecord } from './record.ts'
import { createSignDelivery, type SendDeps, send } from './send.ts'
import { chooseByShares, openSlots } from './slots.ts'
import { endTurns, type WaitingQueues, withoutLeaving } from './turns.ts'

/** Interval at which the leased queues are read for deliveries that other processes wrote or that have become due. */
const pollMs = 50
/** After a slow read the pause is this many times its duration, so that reading never overloads the database. */
const pauseFactor = 1
/** A process that dies releases its endpoints within this time. */
const leaseMs = 30_000
const renewMs = 8_000
export interface WorkerLimits {
  /** Most endpoints that one process serves at once. */
  readonly endpointsMax: number
  /**
   * Milliseconds for which an endpoint is served while others of its organisation wait for a slot, or all slots are taken; its next turn comes after
   * theirs.
   */
  readonly turnMs: number
}

const limitsDefault: WorkerLimits = { endpointsMax: 1_000, turnMs: 2_000 }
/** While a process has this many deliveries in flight, no endpoint has more than its first share, which every endpoint has. */
const underWayMax = 1_024
/** Pause after a failure to store an outcome, so that no receiver gets the same delivery in a tight loop. */
const afterFailureMs = 5_000
/** Maximum attempts of a stopping process to release locked queues. */
const releasesMax = 20
/** Pause after a failed read. */
const afterReadMs = 1_000

/**
 * Delivers events. Endpoints take turns, not deliveries: a process leases an endpoint's queue, sends what is due to it a few at a
 * time, and releases it when nothing is left, so that a slow endpoint delays only itself. Half of the slots go to the queues that have waited
 * longest, the others in shares of their owners, so that many slow endpoints of one delay no other's. A few statements serve all endpoints,
 * however many; there is no timer per endpoint. What this process commits wakes it at once.
 */
export class WebhookWorker {
  readonly #deps: Deps
  readonly #limits: WorkerLimits
  readonly #name: string
  readonly #record: ReturnType<typeof createRecord>
  readonly #sendDeps: SendDeps
  readonly #leased = new Map<WebhookId, EndpointQueue>()
  readonly #sending = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  readonly #writeDeliveries: ReturnType<typeof createFanOut>
  readonly #fanningOut: RunningLoop
  readonly #delivering: RunningLoop
  readonly #ending: RunningLoop
  /** The start of the next list of due queues. */
  readonly #cursors: DueCursors = new Map()
  /** The listed queues whose organisations may have no more slots. */
  #waiting: WaitingQueues = new Map()
  /** The time from which queues may be listed by shares again, by `performance.now()`. */
  #sharesAt = 0
  /** Whether the tables may have something new. */
  #hasNews = true
  /** The time at which the leased queues are read without a notification, by `performance.now()`. */
  #nextReadAt = Number.NEGATIVE_INFINITY
  #renewedAt = performance.now()

  constructor(deps: Deps, limits: WorkerLimits = limitsDefault) {
    this.#deps = deps
    this.#limits = limits
    this.#name = newId('job', deps)
    this.#record = createRecord(deps)
    this.#writeDeliveries = createFanOut(deps)
    const { probe, log, clock, random, guardedFetch } = deps
    this.#sendDeps = { clock, random, guardedFetch, signDelivery: createSignDelivery(deps) }
    const options = { probe, everyMs: 0, failureMs: afterReadMs, log }
    this.#fanningOut = startDueLoop({
      ...options,
      name: 'webhooks.fan-out',
      isDue: () => isAnyEventDue,
      run: () => this.#fanOut(),
    })
    this.#delivering = startDueLoop({
      ...options,
      name: 'webhooks.deliver',
      isDue: () => isAnyQueueDue(clock.now()),
      onDue: () => {
        this.#hasNews = true
      },
      run: () => this.#sendDue(),
    })
    const endingPlace: EndingPlace = { after: '' }
    this.#ending = startDueLoop({
      ...options,
      name: 'webhooks.end',
      isDue: () => isAnyEndDue,
      run: async () => ((await endNext(deps.db, clock.now(), endingPlace)) ? 0 : undefined),
    })
  }

  /** Makes the worker read the tables now. Never throws. */
  wake(): void {
    this.wakeForEvents()
    this.#expectNews()
  }

  /** Makes the worker read new events now; deliveries are read when it has written some. Never throws. */
  wakeForEvents(): void {
    this.#fanningOut.wake()
  }

  /** Sends nothing new, and resolves when what is in flight has ended and the leases are released. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#fanningOut.stop(), this.#delivering.stop(), this.#ending.stop()])
    await Promise.all(this.#sending)
    await this.#releaseAll().catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, 'endpoints could not be released; their leases end soon')
    })
  }

  #expectNews(): void {
    this.#hasNews = true
    this.#delivering.wake()
  }

  /** Runs beside the deliveries, so that failures of new events, or many of them, do not delay existing deliveries. */
  async #fanOut(): Promise<number | undefined> {
    const { written, isMore } = await this.#writeDeliveries()
    if (written > 0) this.#expectNews()
    return isMore ? 0 : undefined
  }

  /** Reads and sends the due deliveries. Returns the milliseconds until the next read of the leased queues, if there are any. */
  async #sendDue(): Promise<number | undefined> {
    if (performance.now() - this.#renewedAt >= renewMs) await this.#renew()
    const began = performance.now()
    const isReadDue = began >= this.#nextReadAt
    if (isReadDue || this.#hasNews) for (const endpoint of this.#leased.values()) endpoint.expectMore()
    if (this.#hasNews || this.#leased.size === 0) await this.#takeNews()
    await this.#readDue()
    for (const endpoint of this.#leased.values()) this.#sendFrom(endpoint)
    await this.#releaseIdle()
    if (isReadDue) this.#nextReadAt = performance.now() + pauseMsAfter(began)
    return this.#leased.size === 0 ? undefined : this.#nextReadAt - performance.now()
  }

  async #takeNews(): Promise<void> {
    this.#hasNews = false
    const open = openSlots(this.#leased.size, this.#limits.endpointsMax)
    const oldest = open === 0 ? [] : await leaseQueues(this.#deps.db, this.#lease(), open)
    for (const queue of oldest) this.#hold(queue)
    if (oldest.length < open) this.#waiting = new Map()
    else if (performance.now() >= this.#sharesAt) await this.#takeByShares()
  }

  async #takeByShares(): Promise<void> {
    const { db } = this.#deps
    const { endpointsMax: max } = this.#limits
    const most = max - this.#leased.size
    this.#waiting = new Map()
    if (most <= 0) return
    const began = performance.now()
    const lease = this.#lease()
    const due = { now: lease.now, most, cursors: this.#cursors }
    const waiting = await db.tx((tx) => listQueuesByShares(tx, due), { readsInOrder: true })
    const { chosen, refused } = chooseByShares(waiting, { leased: [...this.#leased.values()], max })
    this.#waiting = withoutLeaving(refused, this.#leased.values())
    const webhookIds = chosen.map(({ webhookId }) => webhookId)
    if (webhookIds.length > 0) for (const queue of await leaseGivenQueues(db, lease, webhookIds)) this.#hold(queue)
    this.#sharesAt = performance.now() + pauseMsAfter(began)
  }

  #hold(queue: OwnedQueue): void {
    const known = this.#leased.get(queue.webhookId)
    if (known === undefined) this.#leased.set(queue.webhookId, new EndpointQueue(queue, performance.now()))
    else known.expectMore()
  }

  async #readDue(): Promise<void> {
    const now = performance.now()
    const wanted = [...this.#leased.values()].flatMap((endpoint) => endpoint.beginRead(now, pollMs) ?? [])
    if (wanted.length === 0) return
    const lease = this.#lease()
    const webhookIds = wanted.map(({ webhookId }) => webhookId)
    const rows = await listEndpoints(this.#deps.db, lease, webhookIds)
    const due = Map.groupBy(await listDue(this.#deps.db, wanted, lease.now), ({ webhookId }) => webhookId)
    const byId = new Map(rows.map((row) => [row.id, row]))
    for (const webhookId of webhookIds)
      this.#leased.get(webhookId)?.read(byId.get(webhookId), due.get(webhookId) ?? [], performance.now())
  }

  #sendFrom(endpoint: EndpointQueue): void {
    while (!this.#stopping.signal.aborted) {
      const next = endpoint.next(performance.now(), this.#sending.size < underWayMax ? shareMax : shareFirst)
      if (next === undefined) return
      const sending = this.#sendOne(endpoint, next).finally(() => this.#sending.delete(sending))
      this.#sending.add(sending)
    }
  }

  async #sendOne(endpoint: EndpointQueue, { row, delivery }: NonNullable<ReturnType<EndpointQueue['next']>>) {
    try {
      const sent = await send(this.#sendDeps, row, delivery)
      endpoint.answered(sent.isGone ? 'gone' : sent.status === 'succeeded' ? 'taken' : 'failed')
      this.#sendFrom(endpoint)
      await this.#record(sent)
    } catch (error) {
      this.#deps.log.warn({ err: error, deliveryId: delivery.id }, 'the outcome of a delivery could not be stored')
      await pause(afterFailureMs, this.#stopping.signal)
    }
    endpoint.kept(delivery.id)
    if (endpoint.wants(performance.now(), pollMs) || endpoint.isIdle) this.#delivering.wake()
  }

  /** Releases queues that have nothing left, and those whose turn has ended while others wait for their slot. */
  async #releaseIdle(): Promise<void> {
    const before = performance.now() - this.#limits.turnMs
    const isFull = this.#leased.size >= this.#limits.endpointsMax
    // Those that were leased first come first.
    endTurns(this.#leased.values(), { waiting: this.#waiting, before, isFull })
    await this.#release([...this.#leased.values()].filter(({ isIdle }) => isIdle))
  }

  /** Releases queues. One that somebody has locked, such as a request that changes the webhook, is still leased and is read again. */
  async #release(queues: readonly OwnedQueue[]): Promise<void> {
    const byId = new Map(queues.map((queue) => [queue.webhookId, queue]))
    for (const webhookId of byId.keys()) this.#leased.delete(webhookId)
    if (byId.size === 0) return
    for (const webhookId of await releaseQueues(this.#deps.db, this.#lease(), [...byId.keys()])) {
      const locked = byId.get(webhookId)
      if (locked !== undefined) this.#hold(locked)
    }
  }

  async #releaseAll(): Promise<void> {
    const never = new AbortController().signal
    for (let trial = 0; trial < releasesMax && this.#leased.size > 0; trial++) {
      if (trial > 0) await pause(pollMs, never)
      await this.#release([...this.#leased.values()])
    }
  }

  /** Extends the leases; a queue that another process took meanwhile is dropped. */
  async #renew(): Promise<void> {
    const webhookIds = [...this.#leased.keys()]
    const kept = new Set(webhookIds.length === 0 ? [] : await renewQueues(this.#deps.db, this.#lease(), webhookIds))
    for (const webhookId of webhookIds) if (!kept.has(webhookId)) this.#lose(webhookId)
    this.#renewedAt = performance.now()
  }

  #lose(webhookId: WebhookId): void {
    this.#leased.get(webhookId)?.forgetAhead()
    this.#leased.delete(webhookId)
  }

  #lease(): DeliveryLease {
    const now = this.#deps.clock.now()
    return { name: this.#name, now, until: instantOf(now.getTime() + leaseMs) }
  }
}

/** Returns the pause after a read that began at this time. */
function pauseMsAfter(began: number): number {
  const now = performance.now()
  return Math.max(began + pollMs - now, pauseFactor * (now - began))
}
