import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Item, Json, Query, ResponseBody } from './operations.ts'
import type { Listing, PageQuery } from './paging.ts'
import { type ListenOptions, type ListenQuery, listen, type SignedDelivery } from './signed-deliveries.ts'
import type { CallOptions, Open, Send } from './transport.ts'

export type NewWebhook = Body<operations['webhooks.create']>
/** A new webhook with its secret, which no later response shows. */
export type CreatedWebhook = ResponseBody<operations['webhooks.create']>
export type Webhook = ResponseBody<operations['webhooks.get']>
export type WebhookChange = Body<operations['webhooks.update']>
export type WebhookAttempt = Item<operations['webhooks.attempts.list']>
export type WebhookAttemptQuery = Query<operations['webhooks.attempts.list']>
/** One delivery by its id, or all deliveries that failed permanently since a time. */
export type ReplayRequest = Body<operations['webhooks.replay']>
export type Replayed = Json<operations['webhooks.replay']['responses'][202]>
export type TestedWebhook = ResponseBody<operations['webhooks.test']>
export type RotatedSecret = ResponseBody<operations['webhooks.rotateSecret']>

/** The operations on webhooks. Receivers verify deliveries with `@purser/sdk/webhooks`. */
export function webhooksOf(send: Send) {
  const at = (webhookId: string, options?: CallOptions) => ({ ...options, params: { webhookId } })
  return {
    /** Registers a webhook. Only this response contains its secret. */
    create: (body: NewWebhook, options?: CallOptions): Promise<CreatedWebhook> =>
      call(send, 'POST', '/webhooks', { ...options, body }),
    /** Webhooks without their secrets, newest first. */
    list: (query?: PageQuery, options?: CallOptions): Listing<Webhook> =>
      list(send, '/webhooks', { ...options, query }),
    /** Returns a webhook. Throws `NotFoundError` for an unknown id. */
    get: (webhookId: string, options?: CallOptions): Promise<Webhook> =>
      call(send, 'GET', '/webhooks/{webhookId}', at(webhookId, options)),
    /** Changes the URL or event types of a webhook, or enables or disables it. */
    update: (webhookId: string, body: WebhookChange, options?: CallOptions): Promise<Webhook> =>
      call(send, 'PATCH', '/webhooks/{webhookId}', { ...at(webhookId, options), body }),
    /** Deletes a webhook. Its pending deliveries are not sent. */
    delete: (webhookId: string, options?: CallOptions): Promise<void> =>
      call(send, 'DELETE', '/webhooks/{webhookId}', at(webhookId, options)),
    attempts: {
      /** Delivery attempts of a webhook, newest first. */
      list: (webhookId: string, query?: WebhookAttemptQuery, options?: CallOptions): Listing<WebhookAttempt> =>
        list(send, '/webhooks/{webhookId}/attempts', { ...at(webhookId, options), query }),
    },
    /** Delivers again: one delivery, or all dead deliveries since a time. The event ids stay the same. */
    replay: (webhookId: string, body: ReplayRequest, options?: CallOptions): Promise<Replayed> =>
      call(send, 'POST', '/webhooks/{webhookId}/replay', { ...at(webhookId, options), body }),
    /** Sends the event `webhook.test` to this webhook. */
    test: (webhookId: string, options?: CallOptions): Promise<TestedWebhook> =>
      call(send, 'POST', '/webhooks/{webhookId}/test', at(webhookId, options)),
    /** Creates a new secret. Only this response contains it; the old one signs in addition for 24 hours. */
    rotateSecret: (webhookId: string, options?: CallOptions): Promise<RotatedSecret> =>
      call(send, 'POST', '/webhooks/{webhookId}/rotate-secret', at(webhookId, options)),
  }
}

export type RecordedEvent = Item<operations['events.list']>
export type EventQuery = Query<operations['events.list']>

export type EventSamples = ResponseBody<operations['events.types']>
export type TriggeredEvent = ResponseBody<operations['events.trigger']>
export type TriggerRequest = Body<operations['events.trigger']>
/** A resend to one webhook, or to all subscribed webhooks and every listener. */
export type ResendRequest = Body<operations['events.resend']>
export type Resent = Json<operations['events.resend']['responses'][202]>
export type ListenerSecret = ResponseBody<operations['events.listener']>

/** The operations on events: those of the last thirty days, and the live stream. */
export function eventsOf(send: Send, open: Open) {
  return {
    /** Events of the last 30 days, newest first. */
    list: (query?: EventQuery, options?: CallOptions): Listing<RecordedEvent> =>
      list(send, '/events', { ...options, query }),
    /** Returns an event of the last 30 days. */
    get: (eventId: string, options?: CallOptions): Promise<RecordedEvent> =>
      call(send, 'GET', '/events/{eventId}', { ...options, params: { eventId } }),
    /** Every event type with a sample payload. */
    types: (options?: CallOptions): Promise<EventSamples> => call(send, 'GET', '/events/types', { ...options }),
    /** Sends a sample event to every webhook and listener. Test environment only. */
    trigger: (body: TriggerRequest, options?: CallOptions): Promise<TriggeredEvent> =>
      call(send, 'POST', '/events/trigger', { ...options, body }),
    /** Delivers an event again, to all webhooks and listeners or to one webhook. */
    resend: (eventId: string, body: ResendRequest, options?: CallOptions): Promise<Resent> =>
      call(send, 'POST', '/events/{eventId}/resend', { ...options, params: { eventId }, body }),
    /** The secret that signs the deliveries of this API key's event streams. */
    listener: (options?: CallOptions): Promise<ListenerSecret> =>
      call(send, 'POST', '/events/listener', { ...options }),
    /** Yields signed deliveries as they happen; see `ListenOptions`. */
    stream: (query?: ListenQuery, options?: ListenOptions): AsyncGenerator<SignedDelivery> =>
      listen(open, query, options),
  }
}
