import { createHash } from 'node:crypto'
import type { Clock } from '../clock.ts'

export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

export interface Admission {
  readonly admitted: boolean
  readonly remaining: number
  /** Seconds until a token is available; for Retry-After, at least 1 if refused. */
  readonly resetSeconds: number
}

/** Admits requests, each of which takes as many tokens as it costs, by default 1. */
export interface Limiter {
  (who: string, cost?: number): Admission
  /**
   * Charges tokens for work that was already done. If too few are left, the next requests wait until they are refilled. A negative cost returns tokens.
   * Returns the seconds until half of the bucket is full, for work that leaves the rest to requests.
   */
  readonly owe: (who: string, cost: number) => number
}

const bucketsMax = 100_000
/** Buckets of those for whom there is no bucket of their own. */
const sharedBuckets = 1_024
/** Least milliseconds between two sweeps of full buckets: a sweep reads all of them. */
const sweepMsMin = 1_000
/** A longer name is kept as its digest. */
const nameLengthMax = 64

/** Longest time, in seconds, that a caller waits to pay back charged tokens. Without a maximum, one mistake could lock a caller out for days. */
const debtSecondsMax = 600

/**
 * Token buckets in this process's memory, one per key, organisation or address. A request takes as many tokens as it costs, by default 1. Each process has its own, so a
 * deployment's limit is the figure times its api processes. When there are too many buckets, full ones are dropped, which limit nobody. Without any, further callers share
 * buckets: nobody gets rid of a used-up limit by many other names. A caller's debt is
 * at most what ten minutes refill, or with `its-burst` one burst.
 */
export function createLimiter(limit: RateLimit, clock: Clock, owes: 'its-burst' | 'minutes' = 'minutes'): Limiter {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const debtMax = owes === 'its-burst' ? limit.burst : Math.max(limit.burst, limit.perSecond * debtSecondsMax)
  let sweptAt = Number.NEGATIVE_INFINITY
  const dropFull = (now: number): void => {
    if (Math.abs(now - sweptAt) < sweepMsMin) return
    sweptAt = now
    for (const [name, { tokens, at }] of buckets)
      if (tokens + ((now - at) / 1000) * limit.perSecond >= limit.burst) buckets.delete(name)
  }
  const keptName = (who: string, now: number): string => {
    const name = who.length > nameLengthMax ? digestOf(who) : who
    if (buckets.has(name) || buckets.size < bucketsMax) return name
    dropFull(now)
    return buckets.size < bucketsMax ? name : `shared ${Number.parseInt(digestOf(who).slice(0, 8), 16) % sharedBuckets}`
  }
  const refilled = (who: string) => {
    const now = clock.now().getTime()
    const name = keptName(who, now)
    const bucket = buckets.get(name) ?? { tokens: limit.burst, at: now }
    const elapsedMs = Math.max(0, now - bucket.at)
    bucket.tokens = Math.min(limit.burst, bucket.tokens + (elapsedMs / 1000) * limit.perSecond)
    bucket.at = now
    buckets.set(name, bucket)
    return bucket
  }
  const take = (who: string, cost = 1): Admission => {
    const bucket = refilled(who)
    // Nothing needs more than half of the bucket, which others of the caller's requests may never let fill. The rest is owed.
    const price = Math.min(cost, Math.max(1, limit.burst / 2))
    const admitted = bucket.tokens >= price
    if (admitted) bucket.tokens = Math.max(-debtMax, bucket.tokens - cost)
    const wanted = admitted ? 1 : price
    const wait = bucket.tokens >= wanted ? 0 : (wanted - bucket.tokens) / limit.perSecond
    return {
      admitted,
      remaining: Math.max(0, Math.floor(bucket.tokens)),
      resetSeconds: admitted ? Math.ceil(wait) : Math.max(1, Math.ceil(wait)),
    }
  }
  const owe = (who: string, cost: number): number => {
    const bucket = refilled(who)
    bucket.tokens = Math.min(limit.burst, Math.max(-debtMax, bucket.tokens - cost))
    return Math.max(0, (limit.burst / 2 - bucket.tokens) / limit.perSecond)
  }
  return Object.assign(take, { owe })
}

function digestOf(name: string): string {
  return createHash('sha256').update(name).digest('hex')
}

/** The two header fields of draft-ietf-httpapi-ratelimit-headers for an admission. */
export function rateLimitHeaders(limit: RateLimit, admission: Admission): Record<string, string> {
  const windowSeconds = Math.max(1, Math.ceil(limit.burst / limit.perSecond))
  return {
    'ratelimit-policy': `"default";q=${limit.burst};w=${windowSeconds}`,
    ratelimit: `"default";r=${admission.remaining};t=${admission.resetSeconds}`,
  }
}
