import type { RecordedEvent, WebhookAttempt } from '@purser/sdk'

/** An attempt's request without its signatures, which need the secret. */
export interface SentRequest {
  readonly id: string
  /** Unix seconds. */
  readonly timestamp: string
  readonly body: string
}

/** The request of an attempt: the service derives it from the event and the time of the attempt. */
export function sentRequest(
  { eventId, createdAt }: WebhookAttempt,
  event: Pick<RecordedEvent, 'type' | 'payload'>,
): SentRequest {
  const timestamp = String(Math.floor(Date.parse(createdAt) / 1_000))
  return { id: eventId, timestamp, body: sentBody(eventId, event) }
}

/** The bytes of the body: payloads are flat, and PostgreSQL, which writes them, has a space after each colon and comma. */
function sentBody(eventId: string, { type, payload }: Pick<RecordedEvent, 'type' | 'payload'>): string {
  const members = Object.entries(payload).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  return `{"eventId":${JSON.stringify(eventId)},"type":${JSON.stringify(type)},"payload":{${members.join(', ')}}}`
}
