import { isQuota, type PurserError } from './errors.ts'

/** How often, and how patiently, a request is sent again. Times are milliseconds. */
export interface RetryPolicy {
  /** Attempts after the first. */
  readonly maxRetries: number
  readonly delayMsFirst: number
  readonly delayMsMax: number
  /** A longer `Retry-After` than this is not waited for: the error is thrown instead. */
  readonly retryAfterMsMax: number
}

/** The defaults: two retries, 0.5 s doubling to 8 s, and a `Retry-After` of up to a minute is obeyed. */
export const defaultRetryPolicy: RetryPolicy = {
  maxRetries: 2,
  delayMsFirst: 500,
  delayMsMax: 8_000,
  retryAfterMsMax: 60_000,
}

/**
 * Whether sending the same request again can help. A POST is safe to repeat because it carries one Idempotency-Key over
 * all its attempts; a used-up quota or a chain without a node is not going to change within seconds.
 */
export function mayRetry(error: PurserError): boolean {
  if (error.status === undefined || error.status === 408) return true
  if (error.status === 409) return error.code === 'idempotency-in-progress'
  if (error.status === 429) return !isQuota(error.code)
  return error.status >= 500 && error.code !== 'chain-not-configured'
}

/**
 * How long to wait before the attempt after `attempt` (0 is the first), or undefined when Purser asks for more patience
 * than the policy has. `chance` in [0, 1) takes up to a quarter off, so that callers cut off together do not return
 * together.
 */
export function retryDelayMs(
  policy: RetryPolicy,
  attempt: number,
  retryAfterSeconds: number | undefined,
  chance: number,
): number | undefined {
  if (retryAfterSeconds !== undefined) {
    const asked = retryAfterSeconds * 1_000
    return asked <= policy.retryAfterMsMax ? asked : undefined
  }
  const backoff = Math.min(policy.delayMsFirst * 2 ** attempt, policy.delayMsMax)
  return backoff * (1 - chance / 4)
}

/** Reads `Retry-After` (RFC 9110, section 10.2.3), as seconds or as a date; undefined when absent or unreadable. */
export function readRetryAfter(value: string | null, now: Date): number | undefined {
  if (value === null || value.trim() === '') return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now.getTime()) / 1_000)
}
