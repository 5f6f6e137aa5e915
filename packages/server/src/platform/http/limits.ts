import type { Clock } from '../clock.ts'

export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

export interface Admission {
  readonly admitted: boolean
  readonly remaining: number
  /** Seconds until a token is there again; for Retry-After, at least 1 when refused. */
  readonly resetSeconds: number
}

const bucketsMax = 100_000

/**
 * Token buckets in this process's memory, one per key or address. Several processes each keep their own, so the limit
 * of a deployment is the figure times its api processes; the oldest buckets are dropped beyond a bound, never refused.
 */
export function createLimiter(limit: RateLimit, clock: Clock): (who: string) => Admission {
  const buckets = new Map<string, { tokens: number; at: number }>()
  return (who) => {
    const now = clock.now().getTime()
    const bucket = buckets.get(who) ?? { tokens: limit.burst, at: now }
    const elapsedMs = Math.max(0, now - bucket.at)
    bucket.tokens = Math.min(limit.burst, bucket.tokens + (elapsedMs / 1000) * limit.perSecond)
    bucket.at = now
    const admitted = bucket.tokens >= 1
    if (admitted) bucket.tokens -= 1
    if (!buckets.has(who)) {
      if (buckets.size >= bucketsMax) buckets.delete(buckets.keys().next().value ?? '')
      buckets.set(who, bucket)
    }
    const wait = bucket.tokens >= 1 ? 0 : (1 - bucket.tokens) / limit.perSecond
    return {
      admitted,
      remaining: Math.floor(bucket.tokens),
      resetSeconds: admitted ? Math.ceil(wait) : Math.max(1, Math.ceil(wait)),
    }
  }
}

/** The two header fields of draft-ietf-httpapi-ratelimit-headers for an admission. */
export function rateLimitHeaders(limit: RateLimit, admission: Admission): Record<string, string> {
  const windowSeconds = Math.max(1, Math.ceil(limit.burst / limit.perSecond))
  return {
    'ratelimit-policy': `"default";q=${limit.burst};w=${windowSeconds}`,
    ratelimit: `"default";r=${admission.remaining};t=${admission.resetSeconds}`,
  }
}
