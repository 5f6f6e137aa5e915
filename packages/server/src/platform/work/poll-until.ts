import { pause } from './loop.ts'

/** Milliseconds of a wait. */
export interface PollOptions {
  readonly waitMs: number
  /** Until the second read. */
  readonly pollMs: number
  /** Factor by which the pauses between reads grow; default 1. */
  readonly growth?: number
  /** `always`: a read that knows that it is the last one follows also where the wait ended during a read. */
  readonly lastRead?: 'always'
}

/** The place of a read in its wait. */
export interface PollRead {
  readonly isFirst: boolean
  readonly isLast: boolean
}

const never = new AbortController().signal

/**
 * Reads until a result is final, and once more at the end of the wait. Returns the result of the last read. Whether a read is the last is decided before
 * its pause, because a timer may fire a millisecond early.
 *
 * @example await pollUntil({ waitMs: 1_000, pollMs: 400 }, read, isFinal) // reads at 0, 400, 800 and 1,000 milliseconds
 */
export async function pollUntil<T>(
  { waitMs, pollMs, growth = 1, lastRead }: PollOptions,
  read: (at: PollRead) => Promise<T>,
  isFinal: (result: T) => boolean,
): Promise<T> {
  const until = performance.now() + waitMs
  let isLast = waitMs <= 0
  for (let nextMs = pollMs, isFirst = true; ; nextMs *= growth, isFirst = false) {
    const result = await read({ isFirst, isLast })
    if (isLast || isFinal(result)) return result
    const leftMs = until - performance.now()
    if (leftMs <= 0 && lastRead === undefined) return result
    isLast = leftMs <= nextMs
    await pause(Math.max(0, Math.min(nextMs, leftMs)), never)
  }
}
