import { createHmac, createSecretKey } from 'node:crypto'
import { createWebhookSigner, type WebhookHeaders, type WebhookMac, type WebhookSigner } from '@purser/protocol'
import type { ServiceSealPort } from '../../../custody/service-seal.ts'
import { apiVersion } from '../../../platform/api-version.ts'
import { instantOf, unixSeconds } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import type { GuardedFetch, PostOutcome } from '../../../platform/guarded-fetch.ts'
import { newId } from '../../../platform/ids.ts'
import type { Random } from '../../../platform/random.ts'
import { inDeliverySpan } from '../../../platform/tracing/spans.ts'
import { openSecret } from '../secrets.ts'
import type { DueRow, EndpointRow, NewAttempt } from './queue-store.ts'

/** The outcome of one delivery: one attempt, or two if the first connection was closed at once. */
export interface Sent {
  readonly endpoint: EndpointRow
  readonly attempts: readonly NewAttempt[]
  /** State of the delivery after these attempts. */
  readonly status: 'pending' | 'succeeded' | 'dead'
  /** Whether the receiver responded with 410: it accepts nothing more. */
  readonly isGone: boolean
}

export type SendDeps = Pick<Deps, 'clock' | 'random'> & {
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
export function send(deps: SendDeps, endpoint: EndpointRow, delivery: DueRow): Promise<Sent> {
  return inDeliverySpan(async () => {
    const first = await attempt(deps, endpoint, delivery)
    const tries = isWorthASecond(first) ? [first, await attempt(deps, endpoint, delivery)] : [first]
    return judge(deps, endpoint, delivery, tries)
  })
}

/** Returns the body of a delivery. The payload is the text in the database, so that every attempt sends the same bytes. */
export function bodyOf({ eventId, type, payload }: Pick<DueRow, 'eventId' | 'type' | 'payload'>): string {
  return `{"eventId":${JSON.stringify(eventId)},"type":${JSON.stringify(type)},"payload":${payload}}`
}

async function attempt(deps: SendDeps, endpoint: EndpointRow, delivery: DueRow): Promise<Tried> {
  const beganAt = deps.clock.now()
  const began = performance.now()
  const outcome = await post(deps, endpoint, delivery, unixSeconds(beganAt))
  return { outcome, beganAt, durationMs: Math.round(performance.now() - began) }
}

async function post(
  deps: SendDeps,
  endpoint: EndpointRow,
  delivery: DueRow,
  timestamp: number,
): Promise<Tried['outcome']> {
  const signed = await deps.signDelivery(endpoint, delivery, timestamp)
  if (signed === undefined) return { kind: 'failed', failure: 'not-signed' }
  const headers = { ...deliveryHeaders, ...signed.headers }
  return deps.guardedFetch.post({ url: endpoint.url, group: endpoint.id, headers, body: signed.body })
}

function isWorthASecond({ outcome, durationMs }: Tried): boolean {
  return outcome.kind === 'failed' && durationMs < secondTryMsMax && secondTryFailures.has(outcome.failure)
}

function judge(deps: SendDeps, endpoint: EndpointRow, delivery: DueRow, tries: readonly Tried[]): Sent {
  const last = tries.at(-1)
  if (last === undefined) throw new Error('a delivery was judged that was not tried')
  const { outcome } = last
  const isSuccess = isTaken(outcome)
  const isGone = outcome.kind === 'responded' && outcome.status === 410
  const retryAfter = outcome.kind === 'responded' ? outcome.retryAfter : undefined
  const now = deps.clock.now()
  const dueAt = isSuccess || isGone ? undefined : nextAttemptAt({ step: delivery.step, retryAfter }, { ...deps, now })
  // Within a millisecond ids do not sort by themselves, and the list of attempts is ordered by them.
  const ids = tries.map(() => newId('att', deps)).sort()
  return {
    endpoint,
    isGone,
    attempts: tries.map((tried, index) => {
      const isLast = tried === last
      const id = ids[index] ?? newId('att', deps)
      const next = isLast ? (dueAt ?? null) : now
      return {
        id,
        ...recordOf(delivery, tried, index),
        nextAttemptAt: next,
        stepAfter: isLast ? delivery.step + 1 : null,
      }
    }),
    status: isSuccess ? 'succeeded' : dueAt === undefined ? 'dead' : 'pending',
  }
}

function recordOf(
  delivery: DueRow,
  { outcome, beganAt, durationMs }: Tried,
  index: number,
): Omit<NewAttempt, 'id' | 'nextAttemptAt' | 'stepAfter'> {
  const isSuccess = isTaken(outcome)
  const isResponse = outcome.kind === 'responded'
  return {
    deliveryId: delivery.id,
    webhookId: delivery.webhookId,
    attempt: delivery.attempts + index + 1,
    isSuccess,
    responseStatus: isResponse ? outcome.status : null,
    responseBody: isResponse ? outcome.body : null,
    durationMs,
    error: isSuccess ? null : isResponse ? 'not-accepted' : outcome.failure,
    createdAt: beganAt,
  }
}

function isTaken(outcome: Tried['outcome']): boolean {
  return outcome.kind === 'responded' && outcome.status >= 200 && outcome.status < 300
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
 * Returns the body of an attempt at this time, in Unix seconds, with the headers that authenticate it to its endpoint; undefined if a key cannot be
 * opened: nothing is sent unsigned.
 */
export type SignDelivery = (
  endpoint: EndpointRow,
  delivery: Pick<DueRow, 'eventId' | 'type' | 'payload'>,
  timestamp: number,
) => Promise<{ readonly headers: WebhookHeaders; readonly body: Uint8Array } | undefined>

export function createSignDelivery(deps: Pick<Deps, 'sealer' | 'log'> & ServiceSealPort): SignDelivery {
  // Kept while the endpoint's row is in use, about a second. A rotated secret arrives with the next read of the row.
  const signers = new WeakMap<EndpointRow, WebhookSigner>()
  const signerOf = (endpoint: EndpointRow): WebhookSigner => {
    const known = signers.get(endpoint)
    if (known !== undefined) return known
    const of = { webhookId: endpoint.id, organisationId: endpoint.organisationId }
    const secrets = endpoint.secrets.map((sealed) => openSecret(deps, sealed, of))
    const signer = createWebhookSigner(secrets, macOf)
    signers.set(endpoint, signer)
    return signer
  }
  const compose = createComposer(deps)
  return async (endpoint, delivery, timestamp) => {
    try {
      const sign = signerOf(endpoint)
      const { text, body, ed25519 } = await compose(endpoint, delivery, timestamp)
      return { body, headers: sign({ id: delivery.eventId, timestamp, text }, ed25519) }
    } catch (error) {
      deps.log.error({ err: error, webhookId: endpoint.id }, 'a webhook could not be signed')
      return undefined
    }
  }
}

interface Composed {
  /** The signing input, of which the body is the end. */
  readonly text: Uint8Array
  readonly body: Uint8Array
  readonly ed25519: Uint8Array
}

/** Most events whose messages are kept; the oldest is dropped first. */
const composedMax = 256

/**
 * Returns the message of an event for one second, which is the same for all endpoints, since they are of the event's tenant: bytes, id and signature by
 * the service's key to the tenant. They are kept for that second, and a failure is not kept.
 */
function createComposer({ serviceSeal }: ServiceSealPort) {
  let keptOf = Number.NaN
  const kept = new Map<string, Promise<Composed>>()
  let forgetting: NodeJS.Timeout | undefined
  const compose = async (...[endpoint, delivery, timestamp]: Parameters<SignDelivery>): Promise<Composed> => {
    const head = `${delivery.eventId}.${timestamp}.`
    const text = Buffer.from(head + bodyOf(delivery))
    return { text, body: text.subarray(head.length), ed25519: await serviceSeal.signTo(endpoint, text) }
  }
  return (...[endpoint, delivery, timestamp]: Parameters<SignDelivery>): Promise<Composed> => {
    if (timestamp !== keptOf) {
      kept.clear()
      clearTimeout(forgetting)
      forgetting = setTimeout(() => kept.clear(), second).unref()
    }
    keptOf = timestamp
    const known = kept.get(delivery.eventId)
    if (known !== undefined) return known
    const composed = compose(endpoint, delivery, timestamp)
    if (kept.size >= composedMax) kept.delete(kept.keys().next().value ?? '')
    kept.set(delivery.eventId, composed)
    // The endpoint that is next signs again; those that wait for this signature get the error.
    composed.catch(() => {
      if (kept.get(delivery.eventId) === composed) kept.delete(delivery.eventId)
    })
    return composed
  }
}

function macOf(key: Uint8Array): WebhookMac {
  const prepared = createSecretKey(key)
  return (message, encoding) => createHmac('sha256', prepared).update(message).digest(encoding)
}

/** The headers of every delivery beside its signatures, to a webhook or to a listener. */
export const deliveryHeaders = {
  'content-type': 'application/json',
  'user-agent': 'Purser-Webhooks/1.0',
  'x-service-version': apiVersion,
} as const
