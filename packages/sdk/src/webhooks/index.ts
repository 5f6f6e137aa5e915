export type { WebhookHeaders } from '@purser/protocol'
export { type WebhookRefusal, WebhookVerificationError } from './error.ts'
export {
  type KnownWebhookEvent,
  type UnrecognizedWebhookEvent,
  type WebhookEvent,
  webhookEventTypes,
} from './event.ts'
export type { WebhookEventType, WebhookPayloads } from './payloads.ts'
export type { ReceivedHeaders } from './received-headers.ts'
export { type TestHeadersOptions, testHeaders } from './test-headers.ts'
export { type UnwrapOptions, unwrap } from './unwrap.ts'
