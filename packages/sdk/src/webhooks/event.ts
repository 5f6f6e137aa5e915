import { type EventPayloads, type EventType, eventTypes, findPayloadFault, isEventType } from '@purser/protocol'
import { isRecord } from '../problem.ts'

/** The payload of each event type. Amounts are decimals in whole tokens, times ISO 8601 in UTC. */
export type WebhookPayloads = EventPayloads
export type WebhookEventType = EventType

/** An event of a type that this version knows. `type` determines the payload. */
export type KnownWebhookEvent = {
  readonly [T in WebhookEventType]: { readonly eventId: string; readonly type: T; readonly payload: WebhookPayloads[T] }
}[WebhookEventType]

/**
 * An event of a type that was added after this version. Respond with 2xx as for any event. Otherwise the service
 * retries it for more than a day.
 */
export type UnrecognizedWebhookEvent = {
  readonly eventId: string
  readonly type: 'unrecognized'
  /** The type that was sent. */
  readonly sentType: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** The event of a delivery. An event may be delivered more than once, with the same `eventId`. */
export type WebhookEvent = KnownWebhookEvent | UnrecognizedWebhookEvent

type Sent = { readonly eventId: string; readonly type: string; readonly payload: Readonly<Record<string, unknown>> }

/** Every event type that this version knows. */
export const webhookEventTypes: readonly WebhookEventType[] = eventTypes

/**
 * Returns the event in a delivery's parsed body, or the JSON Pointer to the first member that is missing or of the wrong type
 * (empty for the body as a whole).
 */
export function readWebhookEvent(body: unknown): WebhookEvent | { readonly faultAt: string } {
  if (!isRecord(body)) return { faultAt: '' }
  const { eventId, type, payload } = body
  if (typeof eventId !== 'string' || eventId === '') return { faultAt: '/eventId' }
  if (typeof type !== 'string' || type === '') return { faultAt: '/type' }
  if (!isRecord(payload)) return { faultAt: '/payload' }
  if (!isEventType(type)) return { eventId, type: 'unrecognized', sentType: type, payload }
  const sent = { eventId, type, payload }
  return isKnown(sent) ? sent : { faultAt: `/payload/${findPayloadFault(type, payload)}` }
}

function isKnown(sent: Sent): sent is KnownWebhookEvent {
  return isEventType(sent.type) && findPayloadFault(sent.type, sent.payload) === undefined
}
