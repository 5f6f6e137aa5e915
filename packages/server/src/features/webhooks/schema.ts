import { eventTypes } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { Instant, InstantInput, PageQuery, periodFilters, text } from '../../platform/wire.ts'
import { allEvents } from './event-types.ts'

/** The event types that a webhook subscribes to. An unknown type is refused, since a mistyped one would never match. */
const Subscriptions = z
  .array(z.enum([allEvents, ...eventTypes]))
  .min(1)
  .max(eventTypes.length + 1)
  .refine((types) => new Set(types).size === types.length, 'must name each event type once')

const WebhookUrl = text(2_048, 1).meta({ example: 'https://example.com/webhooks' })

export const NewWebhook = z.strictObject({ url: WebhookUrl, events: Subscriptions })
export type NewWebhook = z.output<typeof NewWebhook>

export const WebhookChange = z.strictObject({
  url: WebhookUrl.optional(),
  events: Subscriptions.optional(),
  isActive: z.boolean().optional(),
})
export type WebhookChange = z.output<typeof WebhookChange>

/** A webhook as the document defines it, without its secret. `isActive` is false once its owner or the service turned it off. */
export const Webhook = z.strictObject({
  id: id('wh'),
  url: z.string(),
  events: z.array(z.string()),
  isActive: z.boolean(),
  createdAt: Instant,
})
export type Webhook = z.input<typeof Webhook>

/** A webhook with its secret, only in the responses that create one. */
export const WebhookWithSecret = Webhook.extend({
  secret: z.string().meta({ description: 'whsec_… Shown this once.' }),
})
export type WebhookWithSecret = z.input<typeof WebhookWithSecret>

export const WebhookParams = z.strictObject({ webhookId: id('wh') })

export const deliveryStatuses = ['pending', 'succeeded', 'dead'] as const

/** The delivery of one event to one webhook. */
export const Delivery = z.strictObject({
  id: id('del'),
  eventId: id('evt'),
  type: z.string(),
  status: z.enum(deliveryStatuses),
  createdAt: Instant,
})
export type Delivery = z.input<typeof Delivery>

const AttemptStatus = z.enum(['succeeded', 'failed'])

export const Attempt = z.strictObject({
  id: id('att'),
  deliveryId: id('del'),
  eventId: id('evt'),
  type: z.string(),
  attempt: z.int(),
  status: AttemptStatus,
  responseStatus: z.int().nullable(),
  responseBody: z.string().nullable().meta({ description: 'The first kilobyte.' }),
  durationMs: z.int(),
  error: z.string().nullable(),
  nextAttemptAt: Instant.nullable(),
  createdAt: Instant,
})
export type Attempt = z.input<typeof Attempt>

export const AttemptQuery = PageQuery.extend({ ...periodFilters, status: AttemptStatus.optional() })
export type AttemptQuery = z.output<typeof AttemptQuery>

/** Which deliveries are replayed: the named one, or all that died since then. */
export const ReplayRequest = z
  .strictObject({ deliveryId: id('del').optional(), since: InstantInput.optional() })
  .refine(({ deliveryId, since }) => (deliveryId === undefined) !== (since === undefined), {
    message: 'give either deliveryId or since',
    path: ['deliveryId'],
  })
  .meta({ example: { deliveryId: 'del_01h455vb4pex5vsknk084sn02q' } })
export type ReplayRequest = z.output<typeof ReplayRequest>

export const Replay = z.strictObject({ replayed: z.int() })

/** An event as it is delivered, and when it happened. */
export const Event = z.strictObject({
  id: id('evt'),
  type: z.string(),
  payload: z.record(z.string(), z.unknown()),
  createdAt: Instant,
})
export type Event = z.input<typeof Event>

export const EventParams = z.strictObject({ eventId: id('evt') })
export const EventQuery = PageQuery.extend({ ...periodFilters, type: z.enum(eventTypes).optional() })

named({ NewWebhook, WebhookChange, Webhook, WebhookWithSecret, Delivery, Attempt, ReplayRequest, Replay, Event })
