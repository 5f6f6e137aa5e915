import type { Tenant } from '../../../platform/ctx.ts'
import {
  type PagePayments,
  payForPages,
  type ReplayCharges,
  replayCost,
} from '../../../platform/event-streams/replay-cost.ts'
import type { SseConnection } from '../../../platform/event-streams/response.ts'
import { OpenStream } from '../../../platform/event-streams/streams.ts'
import type { Reader } from '../../../platform/reader.ts'
import type { VaultId } from '../schema.ts'
import type { Frame } from './frame.ts'
import { eventBytesMin } from './store.ts'

/** The access under which a stream is open. The stream ends with it. */
export type Right =
  | { readonly kind: 'reader'; readonly reader: Reader }
  /** A vault's token or ticket, and the instant at which it expires. */
  | { readonly kind: 'guest'; readonly reader?: Reader; readonly expiresAt: Date }

export interface StreamOpening {
  readonly tenant: Tenant
  /** The account or organisation whose slot the stream takes. */
  readonly owner: string
  readonly vaultId: VaultId
  readonly right: Right
  /** The sequence number of the event after which it begins. */
  readonly after: number
  /** Charges its caller for past events. Without it they are free. */
  readonly charges?: ReplayCharges | undefined
}

/**
 * Most buffered bytes of one reader when there is more to write. A stream above it is closed: its client reconnects with its last
 * event and reads the rest from the table at its own speed.
 */
const waitingBytesMax = 262_144

/** One open stream: its access, its position, and the connection to its reader. */
export class EventStream extends OpenStream {
  readonly tenant: Tenant
  readonly vaultId: VaultId
  readonly #right: Right
  readonly #payments: PagePayments
  #isOverdue = false
  /** The sequence number of the last event that was written. */
  sent: number

  constructor({ tenant, owner, vaultId, right, after, charges }: StreamOpening, line: SseConnection) {
    super({ owner, environment: tenant.environment, reader: right.reader }, line)
    this.tenant = tenant
    this.vaultId = vaultId
    this.#right = right
    this.#payments = payForPages(charges)
    this.sent = after
  }

  /**
   * Writes the frames that the reader has not received; `whole` is all of them concatenated. Ends after a vault's last event. If
   * the frames do not continue what was written, or the reader is too slow, the stream is closed and its client reads the table
   * again.
   */
  send(frames: readonly Frame[], whole: Uint8Array): void {
    const first = frames[0]
    const last = frames.at(-1)
    if (first === undefined || last === undefined || last.sequence <= this.sent) return
    if (first.sequence > this.sent + 1 || this.line.waiting > waitingBytesMax) {
      this.line.cut()
      return
    }
    if (first.sequence === this.sent + 1) this.line.write(whole)
    else for (const frame of frames) if (frame.sequence > this.sent) this.line.write(frame.bytes)
    this.sent = last.sequence
    if (last.isLast) this.line.end()
  }

  /** Charges a page of past events. If more follow, resolves when the next page may be read, or the stream is closed. */
  async payFor(frames: readonly Frame[], { isLast }: { readonly isLast: boolean }): Promise<void> {
    const events = frames.map(({ bytes }) => bytes)
    const cost = replayCost(events, eventBytesMin)
    if (isLast) this.#payments.charge(cost)
    else await this.#payments.pay(cost, this.line)
  }

  /** Ends the stream of a vault that is gone, with the event of its expiry if it expired. */
  endGone(expiry: Uint8Array | undefined): void {
    if (expiry !== undefined) this.line.write(expiry)
    this.line.end()
  }

  /** Ends the stream if its access has expired at that instant. */
  endIfExpired(now: Date): void {
    if (this.#isExpired(now)) this.line.end()
  }

  /**
   * Ends the stream if its access had expired at the tick before; returns whether it expired since. Access often expires with the vault, and then
   * the stream has one more event.
   */
  endIfOverdue(now: Date): boolean {
    if (!this.#isExpired(now)) return false
    if (this.#isOverdue) this.line.end()
    this.#isOverdue = true
    return this.line.isOpen
  }

  #isExpired(now: Date): boolean {
    return this.#right.kind === 'guest' && this.#right.expiresAt <= now
  }
}
