export type { WebhookHeaders } from '@purser/protocol'
export { type WebhookRefusal, WebhookVerificationError } from './error.ts'
export {
  type KnownWebhookEvent,
  type UnrecognizedWebhookEvent,
  type WebhookEvent,
  type WebhookEventType,
  type WebhookPayloads,
  webhookEventTypes,
} from './event.ts'
export type { ReceivedHeaders } from './received-headers.ts'
export { type TestHeadersOptions, testHeaders } from './test-headers.ts'
export { type UnwrapOptions, unwrap } from './unwrap.ts'
