import type { SseConnection } from './response.ts'

/** Bytes that a caller is sent for each token, as of any other response. */
const bytesPerToken = 65_536
/** Least and longest interval at which a stream that waits compares the limits of its caller again, and notices that it was closed. */
const [waitMsMin, waitMsMax] = [50, 1_000]
/** A stream that has waited for this long may send a page while requests use its caller's limits up: otherwise it would never get as far as new events. */
const overdueMs = 5_000

/** Returns the tokens that past events cost. An event counts as at least `bytesMin` bytes, for the work that it takes whatever its size. */
export function replayCost(frames: readonly { readonly length: number }[], bytesMin: number): number {
  return frames.reduce((sum, { length }) => sum + Math.max(length, bytesMin), 0) / bytesPerToken
}

/** Charges the caller of a stream for the past events that it sends. */
export interface ReplayCharges {
  /** Charges tokens, and returns the seconds until half of the caller's limits is left. */
  owe(cost: number): number
  /** Takes the turn of a page that has waited for too long. False if another stream of the caller, or of its owner, had it recently. */
  takeOverdue(): boolean
}

const free: ReplayCharges = { owe: () => 0, takeOverdue: () => true }

/** Pays for the pages of one replay. */
export interface PagePayments {
  /** Charges the last page. */
  charge(cost: number): void
  /** Charges a page. Resolves when the next one may be read, or the connection is closed. */
  pay(cost: number, line: Pick<SseConnection, 'isOpen'>): Promise<void>
}

/**
 * Returns what pays for the pages of one replay. The request has paid for the first token. Each further one is charged before its page is read, and only
 * while half of the caller's limits is left, so that requests find tokens meanwhile, or when the page is overdue. Charged afterwards, all streams of a
 * caller would read a page each time that so much is left. Without `charges` pages are free.
 */
export function payForPages(charges: ReplayCharges = free): PagePayments {
  let ahead = 1
  const charge = (cost: number): number => {
    ahead -= cost
    if (ahead > 0) return 0
    const seconds = charges.owe(-ahead)
    ahead = 0
    return seconds
  }
  return {
    charge,
    async pay(cost, line) {
      let seconds = charge(cost)
      if (ahead > 0) return
      const overdueAtMs = performance.now() + overdueMs
      while (seconds > 0 && line.isOpen && !(performance.now() >= overdueAtMs && charges.takeOverdue())) {
        const waitMs = Math.min(Math.max(seconds * 1_000, waitMsMin), waitMsMax)
        await new Promise((resolve) => setTimeout(resolve, waitMs).unref())
        seconds = charges.owe(0)
      }
      if (!line.isOpen) return
      charges.owe(1)
      ahead = 1
    },
  }
}
