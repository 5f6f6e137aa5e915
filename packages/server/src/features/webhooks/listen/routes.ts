import { z } from 'zod'
import { failPlatform } from '../../../platform/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { deliveryHeaders } from '../delivery/send.ts'
import { fail as failWebhook } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { limitRedeliveries, sampleEventCost } from '../redeliveries.ts'
import { Event, EventParams } from '../schema.ts'
import { fail } from './errors.ts'
import { listen } from './open.ts'
import { EventSamples, ListenerSecret, ListenQuery, Resend, ResendRequest, TriggerRequest } from './schema.ts'
import { listenerSecret } from './secret.ts'
import { eventSamples, resendEvent, triggerEvent } from './trigger.ts'

const deliveryExample = {
  eventId: 'evt_01h455vb4pex5vsknk084sn02q',
  type: 'vault.sealed',
  headers: {
    ...deliveryHeaders,
    'x-service-signature': 'sha256=5a233e9a5f98f823c77175e0b12e4386dc3d4060f2fe9ee90234319b0afb9ce4',
    'x-service-timestamp': '1795348800',
    'webhook-id': 'evt_01h455vb4pex5vsknk084sn02q',
    'webhook-timestamp': '1795348800',
    'webhook-signature': 'v1,HsTexTw/CbEMFsCFqeIVCuQsLVX4eTqn/Kh4OLrZ7o0=',
  },
  body: '{"eventId":"evt_01h455vb4pex5vsknk084sn02q","type":"vault.sealed","payload":{"vaultId":"vlt_01h455vb4pex5vsknk084sn02q","summary":"Research done","sealedAt":"2026-11-22T12:00:00.000Z","manifestHash":"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"}}',
}

/** The start of a stream and one delivery, signed with the secret that the example of `events.listener` has. */
const streamExample = `retry: 2000

id: ${deliveryExample.eventId}
data: ${JSON.stringify(deliveryExample)}

`

export const listenOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'events.types',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/events/types',
    summary: 'List every event type, each with a sample payload.',
    description: 'With the meaning of each member. `events.trigger` sends such a payload.',
    output: EventSamples,
    run: (ctx) => eventSamples(ctx),
  }),
  operation({
    id: 'events.trigger',
    needs: { role: 'member', scope: 'webhooks' },
    method: 'POST',
    path: '/events/trigger',
    summary: 'Send a sample event of a type to every webhook and listener. Test environment only.',
    description: 'Tests a receiver. Only the delivery happens.',
    input: TriggerRequest,
    output: Event,
    status: 201,
    errors: { 'test-environment-only': fail.table['test-environment-only'] },
    cost: () => sampleEventCost,
    settingCost: 0.1,
    run: (ctx, { body }) => triggerEvent(ctx, body),
  }),
  operation({
    id: 'events.resend',
    needs: { role: 'member', scope: 'webhooks' },
    method: 'POST',
    path: '/events/{eventId}/resend',
    summary: 'Send an event again, to every subscribed webhook and listener or to one webhook.',
    description: 'The `eventId` stays the same, so that a receiver can recognize duplicates.',
    params: EventParams,
    input: ResendRequest,
    output: Resend,
    status: 202,
    errors: {
      'event-not-found': failWebhook.table['event-not-found'],
      archived: failWebhook.table.archived,
      'webhook-not-found': fail.table['webhook-not-found'],
      'webhook-disabled': failWebhook.table['webhook-disabled'],
    },
    settingCost: 0.1,
    run: (ctx, { params, body }) =>
      limitRedeliveries(
        ctx,
        ({ deliveries }) => deliveries,
        () => resendEvent(ctx, params.eventId, body),
      ),
  }),
  operation({
    id: 'events.listener',
    needs: { role: 'member', scope: 'webhooks' },
    whileSuspended: true,
    method: 'POST',
    path: '/events/listener',
    summary: 'Get the secret that signs the deliveries to listeners of this API key.',
    description: 'Deliveries of `events.stream` are verified with it. It stays the same for the key.',
    output: ListenerSecret,
    secretResponse: true,
    run: (ctx) => listenerSecret(ctx),
  }),
  operation({
    id: 'events.stream',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/events/stream',
    summary: "Follow the organisation's events as signed deliveries, as server-sent events.",
    description: [
      'Each is `id:` and one `data:` line of JSON: `eventId, type, headers, body`, where headers and body are those of a webhook, signed when sent with the',
      'secret of `POST /events/listener`. Without `from` and `Last-Event-ID` the stream begins now; with the last id',
      'it continues strictly after it. It ends when the API key is revoked.',
    ].join(' '),
    query: ListenQuery,
    streamsOutput: 'text/event-stream',
    streamExample,
    otherOutputs: { 204: z.undefined() },
    errors: {
      'event-not-found': fail.table['event-not-found'],
      'service-unavailable': failPlatform.table['service-unavailable'],
    },
    run: (ctx, { query, headers }) => listen(ctx, { query, lastEventId: headers['last-event-id'] }),
  }),
]
