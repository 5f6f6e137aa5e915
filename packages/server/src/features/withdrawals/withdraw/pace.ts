import type { PayoutState } from '../../../partners/offramp/port.ts'

const hourMs = 3_600_000
const shortest = 1_000
const longestUnderWay = hourMs / 12
const longestCompleted = 6 * hourMs
const returnable = 30 * 24 * hourMs

/**
 * Milliseconds until the next look at a withdrawal of this age: an eighth of it, so that a young one is followed closely. A completed one is
 * looked at for thirty days, since a bank may send money back; `undefined` when nothing is expected any more.
 */
export function nextLookMs(status: PayoutState, ageMs: number): number | undefined {
  if (status === 'failed' || (status === 'completed' && ageMs > returnable)) return undefined
  const longest = status === 'completed' ? longestCompleted : longestUnderWay
  return Math.min(longest, Math.max(shortest, Math.floor(ageMs / 8)))
}
