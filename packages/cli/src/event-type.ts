import { type WebhookEventType, webhookEventTypes } from '@purser/sdk/webhooks'
import { CommandError } from './command.ts'

/** Returns the event type. Throws a `CommandError` for an unknown one, which would otherwise never match an event. */
export function eventTypeIn(text: string): WebhookEventType {
  if (!isEventType(text))
    throw new CommandError(`There is no event type ${text}. Run purser trigger --list to see all types.`)
  return text
}

function isEventType(text: string): text is WebhookEventType {
  return webhookEventTypes.some((type) => type === text)
}
