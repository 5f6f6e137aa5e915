import type { WebhookMessage } from '@purser/protocol'
import { unixSeconds } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import type { GuardedFetch, PostOutcome } from '../../../platform/guarded-fetch.ts'
import { newId } from '../../../platform/ids.ts'
import { deliveryHeaders } from './headers.ts'
import type { DeliveryState, DueRow, EndpointRow, NewAttempt } from './queue-store.ts'
import { nextAttemptAt } from './schedule.ts'
import type { SignDelivery } from './signing.ts'

/** The outcome of one delivery: one attempt, or two if the first connection was closed at once. */
export interface Sent {
  readonly endpoint: EndpointRow
  readonly attempts: readonly NewAttempt[]
  readonly state: DeliveryState
  /** Whether the receiver answered 410: it accepts nothing more. */
  readonly isGone: boolean
}

type SendDeps = Pick<Deps, 'clock' | 'random'> & {
  readonly guardedFetch: GuardedFetch
  readonly signDelivery: SignDelivery
}

interface Tried {
  readonly outcome: PostOutcome | { readonly kind: 'failed'; readonly failure: 'not-signed' }
  readonly beganAt: Date
  readonly durationMs: number
}

/**
 * A connection that is closed this soon means that the receiver restarted, or closed an idle one: a second attempt is worthwhile.
 */
const secondTryMsMax = 1_000
const secondTryFailures: ReadonlySet<string> = new Set(['connection-lost', 'unreachable'])

/** Sends one delivery to its receiver, or returns when to retry. Never throws: a failure is a failed attempt. */
export async function send(deps: SendDeps, endpoint: EndpointRow, delivery: DueRow): Promise<Sent> {
  const body = Buffer.from(bodyOf(delivery))
  const first = await attempt(deps, endpoint, { id: delivery.eventId, body })
  const tries = isWorthASecond(first) ? [first, await attempt(deps, endpoint, { id: delivery.eventId, body })] : [first]
  return judge(deps, endpoint, delivery, tries)
}

/** Returns the document's body. The payload is the text in the database, so that every attempt sends the same bytes. */
export function bodyOf({ eventId, type, payload }: Pick<DueRow, 'eventId' | 'type' | 'payload'>): string {
  return `{"eventId":${JSON.stringify(eventId)},"type":${JSON.stringify(type)},"payload":${payload}}`
}

async function attempt(
  deps: SendDeps,
  endpoint: EndpointRow,
  message: Pick<WebhookMessage, 'id' | 'body'>,
): Promise<Tried> {
  const beganAt = deps.clock.now()
  const began = performance.now()
  const outcome = await post(deps, endpoint, { ...message, timestamp: unixSeconds(beganAt) })
  return { outcome, beganAt, durationMs: Math.round(performance.now() - began) }
}

async function post(deps: SendDeps, endpoint: EndpointRow, message: WebhookMessage): Promise<Tried['outcome']> {
  const signed = await deps.signDelivery(endpoint, message)
  if (signed === undefined) return { kind: 'failed', failure: 'not-signed' }
  const headers = { ...deliveryHeaders, ...signed }
  return deps.guardedFetch.post({ url: endpoint.url, group: endpoint.id, headers, body: message.body })
}

function isWorthASecond({ outcome, durationMs }: Tried): boolean {
  return outcome.kind === 'failed' && durationMs < secondTryMsMax && secondTryFailures.has(outcome.failure)
}

function judge(deps: SendDeps, endpoint: EndpointRow, delivery: DueRow, tries: readonly Tried[]): Sent {
  const last = tries.at(-1)
  if (last === undefined) throw new Error('a delivery was judged that was not tried')
  const { outcome } = last
  const isSuccess = isTaken(outcome)
  const isGone = outcome.kind === 'answered' && outcome.status === 410
  const retryAfter = outcome.kind === 'answered' ? outcome.retryAfter : undefined
  const now = deps.clock.now()
  const dueAt = isSuccess || isGone ? undefined : nextAttemptAt({ step: delivery.step, retryAfter }, { ...deps, now })
  const status = isSuccess ? 'succeeded' : dueAt === undefined ? 'dead' : 'pending'
  // Within a millisecond ids do not sort by themselves, and the list of attempts is ordered by them.
  const ids = tries.map(() => newId('att', deps)).sort()
  return {
    endpoint,
    isGone,
    attempts: tries.map((tried, index) => {
      const isLast = tried === last
      const id = ids[index] ?? newId('att', deps)
      return { id, ...recordOf(delivery, tried, index), nextAttemptAt: isLast ? (dueAt ?? null) : now }
    }),
    state: {
      deliveryId: delivery.id,
      status,
      attempts: delivery.attempts + tries.length,
      step: delivery.step + 1,
      dueAt: dueAt ?? null,
    },
  }
}

function recordOf(
  delivery: DueRow,
  { outcome, beganAt, durationMs }: Tried,
  index: number,
): Omit<NewAttempt, 'id' | 'nextAttemptAt'> {
  const isSuccess = isTaken(outcome)
  const isAnswer = outcome.kind === 'answered'
  return {
    deliveryId: delivery.id,
    webhookId: delivery.webhookId,
    attempt: delivery.attempts + index + 1,
    isSuccess,
    responseStatus: isAnswer ? outcome.status : null,
    responseBody: isAnswer ? outcome.body : null,
    durationMs,
    error: isSuccess ? null : isAnswer ? 'not-accepted' : outcome.failure,
    createdAt: beganAt,
  }
}

function isTaken(outcome: Tried['outcome']): boolean {
  return outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300
}
