import { instantOf } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { newId } from '../../../platform/ids.ts'
import { type Loop, pause, startLoop } from '../../../platform/work/loop.ts'
import type { WebhookId } from '../store.ts'
import { HeldEndpoint, shareFirst, shareMax } from './endpoint.ts'
import { fanOut } from './fan-out.ts'
import { type Lease, leaseQueues, listDue, listEndpoints, releaseQueues, renewQueues } from './queue-store.ts'
import { createRecord } from './record.ts'
import { send } from './send.ts'

/** How often the tables are looked at for what other processes wrote and for what has become due. */
const pollMs = 50
/** A look that is slow is followed by a pause as many times as long, so that looking never takes the database over. */
const pauseFactor = 1
/** A process that dies gives its endpoints back within this time. */
const leaseMs = 30_000
const renewMs = 8_000
export interface WorkerLimits {
  /** Endpoints that one process serves at once. */
  readonly endpointsMax: number
  /** How long an endpoint is served where all places are taken; its turn then comes again after those that wait. */
  readonly turnMs: number
}

const limitsDefault: WorkerLimits = { endpointsMax: 1_000, turnMs: 2_000 }
/** While a process has so many under way, no endpoint has more than its first share, which everybody has. */
const underWayMax = 1_024
/** After a failure to keep what became of a delivery, so that nobody is sent the same thing in a tight loop. */
const afterFailureMs = 5_000
/** After a look that failed. */
const afterLookMs = 1_000

/**
 * Delivers events. Endpoints take turns, not deliveries: a process holds an endpoint's queue by a lease, sends what is due to it a few
 * at a time, and lets go when nothing is left, so that a slow endpoint holds up itself alone. A few statements serve all endpoints,
 * however many; there is no timer for each. What this process commits wakes it at once.
 */
export class WebhookWorker {
  readonly #deps: Deps
  readonly #limits: WorkerLimits
  readonly #name: string
  readonly #record: ReturnType<typeof createRecord>
  readonly #held = new Map<WebhookId, HeldEndpoint>()
  readonly #sending = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  readonly #fanningOut: Loop
  readonly #delivering: Loop
  /** The tables may have news. */
  #hasNews = true
  /** When the tables are looked at without news, by `performance.now()`. */
  #nextLookAt = Number.NEGATIVE_INFINITY
  #renewedAt = performance.now()

  constructor(deps: Deps, limits: WorkerLimits = limitsDefault) {
    this.#deps = deps
    this.#limits = limits
    this.#name = newId('job', deps)
    this.#record = createRecord(deps)
    const every = { everyMs: pollMs, failureMs: afterLookMs, log: deps.log }
    this.#fanningOut = startLoop({ ...every, name: 'webhooks.fan-out', run: () => this.#fanOut() })
    this.#delivering = startLoop({ ...every, name: 'webhooks.deliver', run: () => this.#look() })
  }

  /** Has the tables looked at now. Never throws. */
  wake(): void {
    this.#fanningOut.wake()
    this.#expectNews()
  }

  /** Sends nothing new, and resolves when what is under way has ended and the endpoints are let go of. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#fanningOut.stop(), this.#delivering.stop()])
    await Promise.all(this.#sending)
    await this.#release([...this.#held.keys()]).catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, 'endpoints could not be let go of; their leases end soon')
    })
  }

  #expectNews(): void {
    this.#hasNews = true
    this.#delivering.wake()
  }

  /** Beside the deliveries and not between them, so that trouble with new events, or many of them, hold up none that is there already. */
  async #fanOut(): Promise<number> {
    const began = performance.now()
    const { written, isMore } = await fanOut(this.#deps)
    if (written > 0) this.#expectNews()
    return isMore ? 0 : pauseMsAfter(began)
  }

  /** One look at what is to be delivered; answers the milliseconds until the next. */
  async #look(): Promise<number> {
    if (performance.now() - this.#renewedAt >= renewMs) await this.#renew()
    const began = performance.now()
    const isDue = this.#hasNews || began >= this.#nextLookAt
    if (isDue) await this.#takeNews()
    await this.#readDue()
    for (const endpoint of this.#held.values()) this.#sendFrom(endpoint)
    await this.#letGo()
    if (isDue) this.#nextLookAt = performance.now() + pauseMsAfter(began)
    return this.#nextLookAt - performance.now()
  }

  async #takeNews(): Promise<void> {
    for (const endpoint of this.#held.values()) endpoint.expectMore()
    this.#hasNews = false
    const free = this.#limits.endpointsMax - this.#held.size
    if (free > 0) for (const webhookId of await leaseQueues(this.#deps.db, this.#lease(), free)) this.#hold(webhookId)
  }

  #hold(webhookId: WebhookId): void {
    const known = this.#held.get(webhookId)
    if (known === undefined) this.#held.set(webhookId, new HeldEndpoint(webhookId, performance.now()))
    else known.expectMore()
  }

  async #readDue(): Promise<void> {
    const now = performance.now()
    const wanted = [...this.#held.values()].flatMap((endpoint) => endpoint.beginRead(now, pollMs) ?? [])
    if (wanted.length === 0) return
    const lease = this.#lease()
    const webhookIds = wanted.map(({ webhookId }) => webhookId)
    const rows = await listEndpoints(this.#deps.db, lease, webhookIds)
    const due = Map.groupBy(await listDue(this.#deps.db, wanted, lease.now), ({ webhookId }) => webhookId)
    const byId = new Map(rows.map((row) => [row.id, row]))
    for (const webhookId of webhookIds)
      this.#held.get(webhookId)?.read(byId.get(webhookId), due.get(webhookId) ?? [], performance.now())
  }

  #sendFrom(endpoint: HeldEndpoint): void {
    while (!this.#stopping.signal.aborted) {
      const next = endpoint.next(performance.now(), this.#sending.size < underWayMax ? shareMax : shareFirst)
      if (next === undefined) return
      const sending = this.#sendOne(endpoint, next).finally(() => this.#sending.delete(sending))
      this.#sending.add(sending)
    }
  }

  async #sendOne(endpoint: HeldEndpoint, { row, delivery }: NonNullable<ReturnType<HeldEndpoint['next']>>) {
    try {
      const sent = await send(this.#deps, row, delivery)
      endpoint.answered(sent.isGone ? 'gone' : sent.state.status === 'succeeded' ? 'taken' : 'failed')
      this.#sendFrom(endpoint)
      await this.#record(sent)
    } catch (error) {
      this.#deps.log.warn({ err: error, deliveryId: delivery.id }, 'what became of a delivery could not be kept')
      await pause(afterFailureMs, this.#stopping.signal)
    }
    endpoint.kept(delivery.id)
    if (endpoint.wants(performance.now(), pollMs) || endpoint.isIdle) this.#delivering.wake()
  }

  /** Lets go of what has nothing left, and, where all places are taken, of what had its turn. */
  async #letGo(): Promise<void> {
    if (this.#held.size >= this.#limits.endpointsMax) this.#endTurns()
    const going = [...this.#held.values()].filter(({ isIdle }) => isIdle)
    await this.#release(going.map(({ webhookId }) => webhookId))
  }

  #endTurns(): void {
    const before = performance.now() - this.#limits.turnMs
    for (const endpoint of this.#held.values()) if (endpoint.heldSince < before) endpoint.leave()
  }

  async #release(webhookIds: readonly WebhookId[]): Promise<void> {
    for (const webhookId of webhookIds) this.#held.delete(webhookId)
    if (webhookIds.length > 0) await releaseQueues(this.#deps.db, this.#lease(), webhookIds)
  }

  /** Holds on to what is held; what another process took meanwhile is left to it. */
  async #renew(): Promise<void> {
    const webhookIds = [...this.#held.keys()]
    const kept = new Set(webhookIds.length === 0 ? [] : await renewQueues(this.#deps.db, this.#lease(), webhookIds))
    for (const webhookId of webhookIds) if (!kept.has(webhookId)) this.#lose(webhookId)
    this.#renewedAt = performance.now()
  }

  #lose(webhookId: WebhookId): void {
    this.#held.get(webhookId)?.forgetAhead()
    this.#held.delete(webhookId)
  }

  #lease(): Lease {
    const now = this.#deps.clock.now()
    return { name: this.#name, now, until: instantOf(now.getTime() + leaseMs) }
  }
}

/** How long to pause after a look that began then. */
function pauseMsAfter(began: number): number {
  const now = performance.now()
  return Math.max(began + pollMs - now, pauseFactor * (now - began))
}
