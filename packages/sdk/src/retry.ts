import { isQuota, type PurserError } from './errors.ts'

/** The number of times that a request is retried, and the delays before, in milliseconds. */
export interface RetryPolicy {
  /** Attempts after the first. */
  readonly maxRetries: number
  readonly delayMsFirst: number
  readonly delayMsMax: number
  /** With a longer `Retry-After` than this, the error is thrown instead of waiting. */
  readonly retryAfterMsMax: number
  /**
   * The longest time to wait, after the answer `idempotency-in-progress`, for the request that still runs. These
   * attempts do not count as retries. With 0, they do.
   */
  readonly inProgressMsMax: number
}

/** Milliseconds after which the service has answered a payment of a URL, its slowest request, or has released its key. */
const slowestMs = 75_000

/** The defaults: two retries, delays from 0.5 s doubling to 8 s, a `Retry-After` of up to a minute, and 75 s for a request in progress. */
export const defaultRetryPolicy: RetryPolicy = {
  maxRetries: 2,
  delayMsFirst: 500,
  delayMsMax: 8_000,
  retryAfterMsMax: 60_000,
  inProgressMsMax: slowestMs,
}

const timeoutMsDefault = 30_000
/** The requests for which the service waits for a seller, or for a block. */
const slowPaths: readonly string[] = ['/wallet-infra/pay', '/wallet-infra/transfer']

/** The default timeout of an attempt, in milliseconds: longer than the service takes. */
export function timeoutMsOf(path: string): number {
  return slowPaths.includes(path) ? slowestMs : timeoutMsDefault
}

export function isInProgress({ code }: PurserError): boolean {
  return code === 'idempotency-in-progress'
}

/**
 * Whether to retry a request after this error. A POST is safe to repeat, because all its attempts carry the same
 * Idempotency-Key. A used-up quota or an unavailable chain will not change within seconds.
 */
export function mayRetry(error: PurserError): boolean {
  if (error.status === undefined || error.status === 408) return true
  if (error.status === 409) return isInProgress(error)
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
