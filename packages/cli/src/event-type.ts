import { type WebhookEventType, webhookEventTypes } from '@purser/sdk/webhooks'
import { CannotDo } from './command.ts'

/** The type of event that was named. Throws a `CannotDo` for one that does not exist: a mistyped one would stay silent for ever. */
export function eventTypeIn(text: string): WebhookEventType {
  if (!isEventType(text)) throw new CannotDo(`There is no event ${text}. purser trigger --list names them all.`)
  return text
}

function isEventType(text: string): text is WebhookEventType {
  return webhookEventTypes.includes(text)
}
