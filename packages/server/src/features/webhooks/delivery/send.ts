import { createHmac } from 'node:crypto'
import { signWebhook, standardSigningText, type WebhookHeaders, type WebhookMessage } from '@purser/protocol'
import type { ServiceSealPort } from '../../../custody/service-seal.ts'
import { apiVersion } from '../../../platform/api-version.ts'
import { instantOf, unixSeconds } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import type { GuardedFetch, PostOutcome } from '../../../platform/guarded-fetch.ts'
import { newId } from '../../../platform/ids.ts'
import type { Random } from '../../../platform/random.ts'
import { openSecret } from '../secrets.ts'
import type { DeliveryState, DueRow, EndpointRow, NewAttempt } from './queue-store.ts'

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

/**
 * Returns the headers that authenticate a delivery to its endpoint; undefined if a key cannot be opened: nothing is sent
 * unsigned.
 */
export type SignDelivery = (endpoint: EndpointRow, message: WebhookMessage) => Promise<WebhookHeaders | undefined>

export function createSignDelivery(deps: Pick<Deps, 'sealer' | 'log'> & ServiceSealPort): SignDelivery {
  // Kept while the endpoint's row is in use, about a second. A rotated secret arrives with the next read of the row.
  const opened = new WeakMap<EndpointRow, readonly string[]>()
  const secretsOf = (endpoint: EndpointRow): readonly string[] => {
    const known = opened.get(endpoint)
    if (known !== undefined) return known
    const of = { webhookId: endpoint.id, organisationId: endpoint.organisationId }
    const secrets = endpoint.secrets.map((sealed) => openSecret(deps, sealed, of))
    opened.set(endpoint, secrets)
    return secrets
  }
  return async (endpoint, message) => {
    try {
      const secrets = secretsOf(endpoint)
      const ed25519 = await deps.serviceSeal.sign(
        standardSigningText(message.id, String(message.timestamp), message.body),
      )
      return signWebhook(message, { secrets, signEd25519: () => ed25519, hmac })
    } catch (error) {
      deps.log.error({ err: error, webhookId: endpoint.id }, 'a webhook could not be signed')
      return undefined
    }
  }
}

function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest()
}

/** The headers of every delivery beside its signatures, to a webhook or to a listener. */
export const deliveryHeaders = {
  'content-type': 'application/json',
  'user-agent': 'Purser-Webhooks/1.0',
  'x-service-version': apiVersion,
} as const
