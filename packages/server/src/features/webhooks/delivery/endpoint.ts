import type { OrganisationId } from '../../../platform/ids.ts'
import type { WebhookId } from '../store.ts'
import type { DueRow, EndpointRow, OwnedQueue, Wanted } from './queue-store.ts'

/**
 * Deliveries in flight to one endpoint at once: this many at first, one more for each that it accepts, up to the maximum, and a
 * single one to an endpoint that fails, to see whether it is back.
 */
export const shareFirst = 4
export const shareMax = 32
const shareOfFailing = 1
/** Deliveries that are read ahead of those in flight: a few, and more for a fast endpoint. */
const aheadFirst = 4
const aheadMax = 128
/** Deliveries read longer ago are read again, so that nothing is sent to an endpoint long after it was changed or deleted. */
const staleMs = 1_000

/** The leased queue of an endpoint, with the deliveries that were read and those in flight. Times are of `performance.now()`. */
export class EndpointQueue {
  readonly webhookId: WebhookId
  readonly organisationId: OrganisationId
  /** The time at which the process leased it, by `performance.now()`. */
  readonly leasedSince: number
  #row: EndpointRow | undefined
  #ahead: DueRow[] = []
  /** Ids that were read or are in flight, until their outcome is stored. */
  readonly #inHand = new Set<string>()
  /** Ids stored since a read began, which may have seen the table as it was before. */
  readonly #keptMeanwhile = new Set<string>()
  #underWay = 0
  #share = shareFirst
  #isLeaving = false
  #readAt = Number.NEGATIVE_INFINITY
  #mayHaveMore = true
  #aheadWanted = aheadFirst

  constructor({ webhookId, organisationId }: OwnedQueue, now: number) {
    this.webhookId = webhookId
    this.organisationId = organisationId
    this.leasedSince = now
  }

  /** Starts a read and returns what to read; undefined if nothing needs to be read now. */
  beginRead(now: number, pollMs: number): Wanted | undefined {
    if (!this.wants(now, pollMs)) return undefined
    this.#keptMeanwhile.clear()
    return { webhookId: this.webhookId, inHand: [...this.#inHand], fresh: this.#aheadWanted }
  }

  /** Whether a read is needed. */
  wants(now: number, pollMs: number): boolean {
    if (this.#isLeaving) return false
    this.#forgetStale(now)
    const isLow = this.#ahead.length * 4 < this.#aheadWanted
    return isLow && (this.#mayHaveMore || now - this.#readAt >= pollMs)
  }

  /** Takes the result of a read. Without a row the endpoint no longer exists. */
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

  /** Records that deliveries were written: the next read reads them. */
  expectMore(): void {
    this.#mayHaveMore = true
  }

  /** Returns the next delivery to send, if the endpoint's share and `most` allow one. */
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

  /** Records that the receiver responded or timed out. The next delivery may follow, unless the receiver responded with 410. */
  answered(outcome: 'taken' | 'failed' | 'gone'): void {
    this.#underWay -= 1
    this.#share = outcome === 'taken' ? Math.min(this.#share + 1, shareMax) : shareFirst
    if (outcome === 'gone') this.leave()
  }

  /** Records that the outcome of a delivery is stored, or never will be. */
  kept(deliveryId: string): void {
    this.#inHand.delete(deliveryId)
    this.#keptMeanwhile.add(deliveryId)
  }

  /** Whether nothing is in flight and there is no more, or the turn has ended. */
  get isIdle(): boolean {
    return this.#inHand.size === 0 && (this.#isLeaving || !this.#mayHaveMore)
  }

  /** Whether the turn has ended. */
  get isLeaving(): boolean {
    return this.#isLeaving
  }

  /** Ends the turn: nothing new is sent, and the endpoint is idle once nothing is in flight. */
  leave(): void {
    this.#isLeaving = true
    this.forgetAhead()
  }

  /** Drops the deliveries that were read but not sent; they are still pending in the table. */
  forgetAhead(): void {
    if (this.#ahead.length > 0) this.#mayHaveMore = true
    for (const { id } of this.#ahead) this.#inHand.delete(id)
    this.#ahead = []
  }

  #forgetStale(now: number): void {
    if (this.#ahead.length > 0 && now - this.#readAt >= staleMs) this.forgetAhead()
  }
}
