import type { Purser, Webhook, WebhookAttempt } from '@purser/sdk'
import { type QueryClient, queryOptions } from '@tanstack/react-query'

export const webhooksKey = ['webhooks'] as const

/** Delays after which attempts are read again once an event was sent: no event reports an attempt, and a slow endpoint takes up to half a minute. */
const attemptsAfterMs = [1_500, 5_000, 15_000, 35_000]

/** Reads the endpoints and their attempts now, and again while the attempt of an event that was just sent may end. */
export function readAttemptsSoon(queries: QueryClient): void {
  const read = () => void queries.invalidateQueries({ queryKey: webhooksKey })
  read()
  for (const ms of attemptsAfterMs) setTimeout(read, ms)
}

export function webhookQuery(purser: Purser, webhookId: string) {
  return queryOptions({
    queryKey: [...webhooksKey, 'one', webhookId],
    queryFn: ({ signal }) => purser.webhooks.get(webhookId, { signal }),
  })
}

/** The health of an endpoint is computed from this many attempts. */
const healthAttempts = 100

export function healthQuery(purser: Purser, webhookId: string) {
  return queryOptions({
    queryKey: [...webhooksKey, 'health', webhookId],
    queryFn: ({ signal }) => purser.webhooks.attempts.list(webhookId, { limit: healthAttempts }, { signal }).page(),
  })
}

/** The state of an endpoint according to its newest attempts; `lastError` is the newest failure that no success followed. */
export interface Health {
  readonly attempts: number
  readonly failed: number
  readonly p95Ms: number | undefined
  readonly lastError: string | undefined
  /** Whether the newest attempts failed, one after the other. */
  readonly isFailing: boolean
}

/** An endpoint counts as failing after this many failed attempts in a row. */
const failedInRow = 3

export function healthOf(attempts: readonly WebhookAttempt[]): Health {
  const times = attempts.map(({ durationMs }) => durationMs).sort((one, other) => one - other)
  const [newest] = attempts
  return {
    attempts: attempts.length,
    failed: attempts.filter(({ status }) => status === 'failed').length,
    p95Ms: times[Math.ceil(times.length * 0.95) - 1],
    lastError: newest?.status === 'failed' ? attemptWords(newest) : undefined,
    isFailing:
      attempts.length >= failedInRow && attempts.slice(0, failedInRow).every(({ status }) => status === 'failed'),
  }
}

/** Describes the outcome of an attempt. */
export function attemptWords({ responseStatus, error }: WebhookAttempt): string {
  if (responseStatus !== null) return `The endpoint returned ${responseStatus}`
  return error ?? 'No response'
}

/** The address without its scheme. */
export function shortUrl({ url }: Pick<Webhook, 'url'>): string {
  return url.replace(/^https?:\/\//, '')
}

/** Returns the events that an endpoint gets, in words. */
export function eventWords({ events }: Pick<Webhook, 'events'>): string {
  if (events.includes('*')) return 'Every event'
  return events.length <= 2 ? events.join(', ') : `${events.slice(0, 2).join(', ')} and ${events.length - 2} more`
}
