import { instantOf } from '../../../platform/clock.ts'
import type { Random } from '../../../platform/random.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** Delay after each failed attempt; after the last of them a delivery is dead. About 32 hours in all. */
export const retryDelaysMs: readonly number[] = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
]

/** Longest delay that a receiver may request. */
const retryAfterMsMax = 14 * hour
/** Jitter to either side, so that deliveries that failed together are not retried together. */
const jitterShare = 0.1

/**
 * Returns when to retry after the attempt of that step (from 0), or undefined after the last. `Retry-After` (seconds or a date,
 * RFC 9110 section 10.2.3) delays it by up to 14 hours, and never advances it.
 */
export function nextAttemptAt(
  failed: { readonly step: number; readonly retryAfter: string | undefined },
  deps: { readonly now: Date; readonly random: Random },
): Date | undefined {
  const delayMs = retryDelaysMs[failed.step]
  if (delayMs === undefined) return undefined
  const [high = 0, low = 0] = deps.random.bytes(2)
  const stray = ((high * 256 + low) / 65_535) * 2 - 1
  const planned = Math.round(delayMs * (1 + jitterShare * stray))
  const requested = Math.min(retryAfterMs(failed.retryAfter, deps.now) ?? 0, retryAfterMsMax)
  return instantOf(deps.now.getTime() + Math.max(planned, requested))
}

/** Returns the delay that a `Retry-After` header requests, in milliseconds from now; undefined if it cannot be read. */
export function retryAfterMs(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined
  const written = header.trim()
  if (/^\d{1,9}$/.test(written)) return Number(written) * second
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(written)) return undefined
  const at = Date.parse(written)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now.getTime())
}
