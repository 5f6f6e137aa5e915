import { isQuota, type PurserError } from './errors.ts'

/** The number of times that a request is retried, and the delays before, in milliseconds. */
export interface RetryPolicy {
  /** Attempts after the first. */
  readonly maxRetries: number
  readonly delayMsFirst: number
  readonly delayMsMax: number
  /** With a longer `Retry-After` than this, the error is thrown instead of waiting. */
  readonly retryAfterMsMax: number
}

/** The defaults: two retries, delays from 0.5 s doubling to 8 s, and a `Retry-After` of up to a minute. */
export const defaultRetryPolicy: RetryPolicy = {
  maxRetries: 2,
  delayMsFirst: 500,
  delayMsMax: 8_000,
  retryAfterMsMax: 60_000,
}

/**
 * Whether to retry a request after this error. A POST is safe to repeat, because all its attempts carry the same
 * Idempotency-Key. A used-up quota or an unavailable chain will not change within seconds.
 */
export function mayRetry(error: PurserError): boolean {
  if (error.status === undefined || error.status === 408) return true
  if (error.status === 409) return error.code === 'idempotency-in-progress'
  if (error.status === 429) return !isQuota(error.code)
  return error.status >= 500 && error.code !== 'chain-not-configured'
}

/**
 * The delay in milliseconds before the attempt after `attempt` (0 is the first), or undefined if `Retry-After`
 * exceeds the policy. `chance` in [0, 1) subtracts up to a quarter, so that callers disconnected together do not
 * retry together.
 */
export function retryDelayMs(
  policy: RetryPolicy,
  attempt: number,
  retryAfterSeconds: number | undefined,
  chance: number,
): number | undefined {
  if (retryAfterSeconds !== undefined) {
    const requested = retryAfterSeconds * 1_000
    return requested <= policy.retryAfterMsMax ? requested : undefined
  }
  const backoff = Math.min(policy.delayMsFirst * 2 ** attempt, policy.delayMsMax)
  return backoff * (1 - chance / 4)
}

/**
 * Parses `Retry-After` (RFC 9110, section 10.2.3) as seconds or a date. Undefined if absent or malformed. The client imports no package, so this
 * is not shared with the webhook worker.
 */
export function readRetryAfter(value: string | null, now: Date): number | undefined {
  if (value === null || value.trim() === '') return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now.getTime()) / 1_000)
}
