import type { WebhookId } from '../store.ts'
import type { DueRow, EndpointRow, Wanted } from './queue-store.ts'

/**
 * How many are under way to one endpoint at once: these at first; one more for each that it takes, up to the most; and to one that
 * fails a single one, to see whether it is back.
 */
export const shareFirst = 4
export const shareMax = 32
const shareOfFailing = 1
/** How many are read ahead of what is under way: a few, and more for an endpoint that is quick. */
const aheadFirst = 4
const aheadMax = 128
/** What was read longer ago is read anew, so that nothing goes to an endpoint long after it was changed or deleted. */
const staleMs = 1_000

/** An endpoint whose queue this process holds: what was read of it and what is under way. Times are of `performance.now()`. */
export class HeldEndpoint {
  readonly webhookId: WebhookId
  /** When the process took it. */
  readonly heldSince: number
  #row: EndpointRow | undefined
  #ahead: DueRow[] = []
  /** Read or under way, until it is kept what became of them. */
  readonly #inHand = new Set<string>()
  /** Kept since a look began, which may have read the table as it was before. */
  readonly #keptMeanwhile = new Set<string>()
  #underWay = 0
  #share = shareFirst
  #isLeaving = false
  #readAt = Number.NEGATIVE_INFINITY
  #mayHaveMore = true
  #aheadWanted = aheadFirst

  constructor(webhookId: WebhookId, now: number) {
    this.webhookId = webhookId
    this.heldSince = now
  }

  /** A look begins: what to read; undefined when nothing need be read now. */
  beginRead(now: number, pollMs: number): Wanted | undefined {
    if (!this.wants(now, pollMs)) return undefined
    this.#keptMeanwhile.clear()
    return { webhookId: this.webhookId, inHand: [...this.#inHand], fresh: this.#aheadWanted }
  }

  /** Whether a look would read something. */
  wants(now: number, pollMs: number): boolean {
    if (this.#isLeaving) return false
    this.#forgetStale(now)
    const isLow = this.#ahead.length * 4 < this.#aheadWanted
    return isLow && (this.#mayHaveMore || now - this.#readAt >= pollMs)
  }

  /** Takes what was read. Without a row there is nothing to deliver to any more. */
  read(row: EndpointRow | undefined, due: readonly DueRow[], now: number): void {
    this.#row = row
    if (row === undefined) this.forgetAhead()
    this.#mayHaveMore = row !== undefined && due.length >= this.#aheadWanted
    this.#aheadWanted = now - this.#readAt < staleMs ? Math.min(2 * this.#aheadWanted, aheadMax) : aheadFirst
    this.#readAt = now
    if (row === undefined || this.#isLeaving) return
    for (const delivery of due) {
      if (this.#inHand.has(delivery.id) || this.#keptMeanwhile.has(delivery.id)) continue
      this.#ahead.push(delivery)
      this.#inHand.add(delivery.id)
    }
  }

  /** News was written: the next look reads it. */
  expectMore(): void {
    this.#mayHaveMore = true
  }

  /** The next delivery to send, where the endpoint's share, and `most`, allow one. */
  next(now: number, most: number): { readonly row: EndpointRow; readonly delivery: DueRow } | undefined {
    this.#forgetStale(now)
    const row = this.#row
    if (row === undefined) return undefined
    const share = row.failingSince === null ? Math.min(this.#share, most) : shareOfFailing
    if (this.#underWay >= share) return undefined
    const delivery = this.#ahead.shift()
    if (delivery === undefined) return undefined
    this.#underWay += 1
    return { row, delivery }
  }

  /** The receiver has answered, or did not in time: the next may go, unless it said that it wants nothing more. */
  answered(outcome: 'taken' | 'failed' | 'gone'): void {
    this.#underWay -= 1
    this.#share = outcome === 'taken' ? Math.min(this.#share + 1, shareMax) : shareFirst
    if (outcome === 'gone') this.leave()
  }

  /** What became of it is kept, or never will be. */
  kept(deliveryId: string): void {
    this.#inHand.delete(deliveryId)
    this.#keptMeanwhile.add(deliveryId)
  }

  /** Nothing is in hand, and there is no more, or it is another's turn. */
  get isIdle(): boolean {
    return this.#inHand.size === 0 && (this.#isLeaving || !this.#mayHaveMore)
  }

  /** Ends the turn: nothing new is sent, and once nothing is under way the endpoint is idle. */
  leave(): void {
    this.#isLeaving = true
    this.forgetAhead()
  }

  /** Sends nothing more of what was read: it still waits in the table. */
  forgetAhead(): void {
    if (this.#ahead.length > 0) this.#mayHaveMore = true
    for (const { id } of this.#ahead) this.#inHand.delete(id)
    this.#ahead = []
  }

  #forgetStale(now: number): void {
    if (this.#ahead.length > 0 && now - this.#readAt >= staleMs) this.forgetAhead()
  }
}
