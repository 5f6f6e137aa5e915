import { type EventField, type EventType, eventCatalogue, eventTypes } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { CreatedAt, Instant, InstantInput, PageQuery, periodFilters, text } from '../../platform/wire.ts'

/** The schema of each event type's payload, as openapi.json publishes it. */
export const eventPayloads: Readonly<Record<string, z.ZodObject>> = Object.fromEntries(
  eventTypes.map((type) => [type, payloadSchema(type)]),
)

/** Subscribes to every event type, including those that are added later. */
const allEvents = '*'

function payloadSchema(type: EventType): z.ZodObject {
  const { description, fields } = eventCatalogue[type]
  const members = Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)])
  return z.object(Object.fromEntries(members)).meta({ description })
}

function fieldSchema(field: EventField<string> | EventField<string | null> | EventField<number>): z.ZodType {
  const text = field.isTime ? z.iso.datetime() : z.string()
  const schema = field.type === 'integer' ? z.int() : text
  return (field.isNullable ? schema.nullable() : schema).meta({ description: field.description })
}

/** The type of an event. */
export const EventTypeName = z.enum(eventTypes)

/** An event type, or `*` for all. */
const SubscribedType = z.enum([allEvents, ...eventTypes])

/** The event types that a webhook subscribes to. An unknown type is refused, since a mistyped one would never match. */
const Subscriptions = z
  .array(SubscribedType)
  .min(1)
  .max(eventTypes.length + 1)
  .refine((types) => new Set(types).size === types.length, 'must name each event type once')

const WebhookUrl = text(2_048, 1).meta({ example: 'https://example.com/webhooks' })

export const NewWebhook = z.strictObject({
  url: WebhookUrl.describe('HTTPS URL that receives the events; it must be public.'),
  events: Subscriptions.describe('Event types to receive; `*` for all, also later ones.'),
})
export type NewWebhook = z.output<typeof NewWebhook>

export const WebhookChange = z.strictObject({
  url: WebhookUrl.optional().describe('New URL.'),
  events: Subscriptions.optional().describe('Replaces the subscribed event types.'),
  isActive: z
    .boolean()
    .optional()
    .describe('Whether events are delivered; `true` enables a webhook that the service disabled.'),
})
export type WebhookChange = z.output<typeof WebhookChange>

/** A webhook without its secret. `isActive` is false once its owner or the service turned it off. */
export const Webhook = z.strictObject({
  id: id('wh'),
  url: z.string().describe('URL that receives the events.'),
  events: z.array(z.string()).describe('Event types that it receives; `*` for all.'),
  isActive: z
    .boolean()
    .describe(
      'Whether events are delivered. False if you disabled it, its URL responded 410, or it accepted nothing for five days.',
    ),
  createdAt: CreatedAt,
})
export type Webhook = z.input<typeof Webhook>

/** A webhook with its secret, only in the responses that create one. */
export const WebhookWithSecret = Webhook.extend({
  secret: z
    .string()
    .meta({ description: 'The secret that signs the deliveries; it begins with `whsec_` and is shown only here.' }),
})
export type WebhookWithSecret = z.input<typeof WebhookWithSecret>

export const WebhookParams = z.strictObject({ webhookId: id('wh') })

export const deliveryStatuses = ['pending', 'succeeded', 'dead'] as const

/** The delivery of one event to one webhook. */
export const Delivery = z.strictObject({
  id: id('del'),
  eventId: id('evt'),
  type: z.string().describe('The event type.'),
  status: z.enum(deliveryStatuses).describe('`pending` until it succeeds; `dead` after the last attempt.'),
  createdAt: CreatedAt,
})
export type Delivery = z.input<typeof Delivery>

const AttemptStatus = z.enum(['succeeded', 'failed'])

export const Attempt = z.strictObject({
  id: id('att'),
  deliveryId: id('del'),
  eventId: id('evt'),
  type: z.string().describe('The event type.'),
  attempt: z.int().describe('Number of the attempt, from 1.'),
  status: AttemptStatus.describe('Whether the receiver returned a 2xx status.'),
  responseStatus: z.int().nullable().describe('HTTP status of the response; null without a response.'),
  responseBody: z.string().nullable().meta({ description: 'The first kilobyte.' }),
  durationMs: z.int().describe('Duration in milliseconds.'),
  error: z.string().nullable().describe('Code of the failure; null for a success.'),
  nextAttemptAt: Instant.nullable().describe('When the next attempt is due; null if there is none.'),
  createdAt: CreatedAt,
})
export type Attempt = z.input<typeof Attempt>

export const AttemptQuery = PageQuery.extend({
  ...periodFilters,
  status: AttemptStatus.optional().describe('Only attempts with this outcome.'),
})
export type AttemptQuery = z.output<typeof AttemptQuery>

/** The deliveries to replay: the named one, or all that died since then. */
export const ReplayRequest = z
  .strictObject({
    deliveryId: id('del').optional().describe('The delivery to send again.'),
    since: InstantInput.optional().describe('Send every delivery again that died since then (ISO 8601).'),
    dryRun: z.boolean().default(false).describe('With `since`: only count them.'),
  })
  .refine(({ deliveryId, since }) => (deliveryId === undefined) !== (since === undefined), {
    message: 'give either deliveryId or since',
    path: ['deliveryId'],
  })
  .refine(({ since, dryRun }) => !dryRun || since !== undefined, {
    message: 'give since with dryRun',
    path: ['dryRun'],
  })
  .meta({ example: { deliveryId: 'del_01h455vb4pex5vsknk084sn02q' } })
export type ReplayRequest = z.output<typeof ReplayRequest>

export const Replay = z.strictObject({ replayed: z.int().describe('Number of deliveries that will be sent again.') })

/** An event as it is delivered, and when it happened. */
export const Event = z.strictObject({
  id: id('evt'),
  type: z.string().describe('The event type.'),
  payload: z.record(z.string(), z.unknown()).describe('What happened; its members depend on the type.'),
  createdAt: CreatedAt,
})
export type Event = z.input<typeof Event>

export const EventParams = z.strictObject({ eventId: id('evt') })
export const EventQuery = PageQuery.extend({
  ...periodFilters,
  type: EventTypeName.optional().describe('Only events of this type.'),
})

named({
  EventTypeName,
  SubscribedType,
  NewWebhook,
  WebhookChange,
  Webhook,
  WebhookWithSecret,
  Delivery,
  Attempt,
  ReplayRequest,
  Replay,
  Event,
})
