import type { SseConnection } from './response.ts'

/** Bytes that a caller is sent for each token, as of any other response. */
const bytesPerToken = 65_536
/** Least and longest interval at which a stream that waits compares the limits of its caller again, and notices that it was closed. */
const [waitMsMin, waitMsMax] = [50, 1_000]

/** Returns the tokens that past events cost. An event counts as at least `bytesMin` bytes, for the work that it takes whatever its size. */
export function replayCost(frames: readonly { readonly length: number }[], bytesMin: number): number {
  return frames.reduce((sum, { length }) => sum + Math.max(length, bytesMin), 0) / bytesPerToken
}

/** Charges a caller tokens, and returns the seconds until half of the caller's limits is left. */
export type Owe = (cost: number) => number

/** Pays for a page of past events. Resolves when the next page may be read, or the connection is closed. */
export type PayForPage = (cost: number, line: Pick<SseConnection, 'isOpen'>) => Promise<void>

/**
 * Returns what pays for the pages of one replay. The request has paid for the first token. Each further one is charged before its page is read, and only
 * while half of the caller's limits is left, so that requests find tokens meanwhile. Charged afterwards, all streams of a caller would read a page each
 * time that so much is left. Without `owe` pages are free.
 */
export function payForPages(owe: Owe = () => 0): PayForPage {
  let ahead = 1
  return async (cost, line) => {
    ahead -= cost
    if (ahead > 0) return
    let seconds = owe(-ahead)
    ahead = 0
    while (seconds > 0 && line.isOpen) {
      const waitMs = Math.min(Math.max(seconds * 1_000, waitMsMin), waitMsMax)
      await new Promise((resolve) => setTimeout(resolve, waitMs).unref())
      seconds = owe(0)
    }
    if (!line.isOpen) return
    owe(1)
    ahead = 1
  }
}
