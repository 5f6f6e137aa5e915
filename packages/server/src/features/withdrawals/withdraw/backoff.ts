import type { PayoutFailure, PayoutState } from '../../../partners/offramp/port.ts'

interface Known {
  readonly status: PayoutState
  readonly refund: PayoutFailure['refund'] | null
}

/** Whether the partner still has the tokens of a failed withdrawal. */
export function isOwed({ status, refund }: Known): boolean {
  return status === 'failed' && (refund === 'expected' || refund === 'held')
}

const hourMs = 3_600_000
const shortest = 1_000
const longestUnderWay = hourMs / 12
const longestCompleted = 6 * hourMs
const returnable = 30 * 24 * hourMs

/**
 * Milliseconds until the next poll of a withdrawal of this age: an eighth of it, so that a young one is polled often. A completed one is
 * polled for thirty days, since a bank may return money, and a failed one as long while the partner must return its tokens; `undefined` if
 * nothing is expected any more.
 */
export function nextPollMs(known: Known, ageMs: number): number | undefined {
  const isEnded = known.status === 'completed' || known.status === 'failed'
  if (isEnded && (ageMs > returnable || (known.status === 'failed' && !isOwed(known)))) return undefined
  const longest = isEnded ? longestCompleted : longestUnderWay
  return Math.min(longest, Math.max(shortest, Math.floor(ageMs / 8)))
}
