import type { Tenant } from '../../../platform/ctx.ts'
import type { ApiKeyId } from '../../../platform/ids.ts'
import type { Line } from '../../../platform/live.ts'
import type { VaultId } from '../vault.ts'
import { type Frame, heartbeat } from './frame.ts'

/** By what right a stream is open. It ends when that ends. */
export type Right =
  | { readonly kind: 'api-key'; readonly id: ApiKeyId }
  /** A vault's token or ticket, and the instant from which it opens nothing any more. */
  | { readonly kind: 'guest'; readonly lapsesAt: Date }

export interface StreamOpening {
  readonly tenant: Tenant
  readonly vaultId: VaultId
  readonly right: Right
  /** The sequence number of the event after which it begins. */
  readonly after: number
}

/**
 * Most bytes that may wait for one reader when there is more to write. A stream over it is cut: its client connects again, says
 * what it has seen, and reads the rest from the table at its own speed.
 */
const waitingBytesMax = 262_144

/** Heartbeats in a row at which a reader has taken nothing of what waits; then it is taken for gone. */
const stallsMax = 2

/** One open stream: what it may read, how far it is, and the line to its reader. */
export class EventStream {
  readonly tenant: Tenant
  readonly vaultId: VaultId
  readonly right: Right
  readonly line: Line
  /** The sequence number of the last event that was written. */
  sent: number
  #stalls = 0
  #waitingBefore = 0

  constructor({ tenant, vaultId, right, after }: StreamOpening, line: Line) {
    this.tenant = tenant
    this.vaultId = vaultId
    this.right = right
    this.line = line
    this.sent = after
  }

  /**
   * Writes those of the frames that the reader has not got; `whole` is all of them as one. Ends after the last one of a vault.
   * Frames that do not follow on what was written are not: the stream is cut, and its client reads the table again. So is one whose
   * reader is too slow.
   */
  tell(frames: readonly Frame[], whole: Uint8Array): void {
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

  /** Says that the stream is still there; cuts it where its reader has stopped to read. */
  beat(): void {
    const { waiting } = this.line
    this.#stalls = waiting > 0 && waiting >= this.#waitingBefore ? this.#stalls + 1 : 0
    this.#waitingBefore = waiting
    if (this.#stalls > stallsMax) this.line.cut()
    else this.line.write(heartbeat)
  }

  /** Ends it, if it may not be open at that instant. */
  endIfLapsed(now: Date): void {
    if (this.right.kind === 'guest' && this.right.lapsesAt <= now) this.line.end()
  }
}
