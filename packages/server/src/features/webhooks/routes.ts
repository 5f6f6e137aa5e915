import { z } from 'zod'
import type { Operation } from '../../platform/operation.ts'
import { PageQuery } from '../../platform/wire.ts'
import { planErrors } from '../plans/index.ts'
import { fail } from './errors.ts'
import { getEvent, pageOfAttempts, pageOfEvents } from './history.ts'
import { type Deps, operation } from './ports.ts'
import { countCost, limitRedeliveries, sampleEventCost } from './redeliveries.ts'
import { replayDeliveries, testWebhook } from './replay.ts'
import {
  Attempt,
  AttemptQuery,
  Delivery,
  Event,
  EventParams,
  EventQuery,
  NewWebhook,
  Replay,
  ReplayRequest,
  Webhook,
  WebhookChange,
  WebhookParams,
  WebhookWithSecret,
} from './schema.ts'
import { rotateSecret } from './secrets.ts'
import { changeWebhook, createWebhook, deleteWebhook, getWebhook, pageOfWebhooks } from './webhooks.ts'

const notFound = { 'webhook-not-found': fail.table['webhook-not-found'] }
const badUrl = { 'webhook-url-not-allowed': fail.table['webhook-url-not-allowed'] }
const disabled = { 'webhook-disabled': fail.table['webhook-disabled'] }

export const webhookOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'webhooks.create',
    settingCost: 1,
    needs: { role: 'admin', scope: 'webhooks', gives: 'read' },
    method: 'POST',
    path: '/webhooks',
    summary: 'Create a webhook.',
    description:
      'Store `secret`, which signs each delivery and cannot be read later. Counts towards the webhooks of the plan. Next, call `webhooks.test`.',
    input: NewWebhook,
    output: WebhookWithSecret,
    status: 201,
    errors: { ...badUrl, 'webhook-limit-reached': planErrors['webhook-limit-reached'] },
    secretResponse: true,
    run: (ctx, { body }) => createWebhook(ctx, body),
  }),
  operation({
    id: 'webhooks.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/webhooks',
    summary: 'List webhooks, newest first.',
    description: 'Without their secrets.',
    query: PageQuery,
    output: Webhook,
    list: true,
    run: (ctx, { query }) => pageOfWebhooks(ctx, query),
  }),
  operation({
    id: 'webhooks.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/webhooks/{webhookId}',
    summary: 'Get one webhook.',
    description: 'Without its secret. `webhooks.attempts.list` shows how deliveries went.',
    params: WebhookParams,
    output: Webhook,
    errors: notFound,
    run: (ctx, { params }) => getWebhook(ctx, params.webhookId),
  }),
  operation({
    id: 'webhooks.update',
    settingCost: 1,
    needs: { role: 'admin', scope: 'webhooks', gives: 'read' },
    method: 'PATCH',
    path: '/webhooks/{webhookId}',
    summary: 'Update the URL or the event types of a webhook, or disable it.',
    description: 'Omitted fields stay as they are. `isActive: true` enables a webhook that the service disabled.',
    params: WebhookParams,
    input: WebhookChange,
    output: Webhook,
    errors: { ...notFound, ...badUrl },
    run: (ctx, { params, body }) => changeWebhook(ctx, params.webhookId, body),
  }),
  operation({
    id: 'webhooks.delete',
    needs: { role: 'admin', scope: 'webhooks' },
    method: 'DELETE',
    path: '/webhooks/{webhookId}',
    summary: 'Delete a webhook.',
    description: 'The events stay readable with `events.list`.',
    params: WebhookParams,
    errors: notFound,
    run: (ctx, { params }) => deleteWebhook(ctx, params.webhookId),
  }),
  operation({
    id: 'webhooks.attempts.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/webhooks/{webhookId}/attempts',
    summary: 'List attempts to deliver, newest first.',
    description: 'With the response of the receiver. Attempts are kept for 30 days.',
    params: WebhookParams,
    query: AttemptQuery,
    output: Attempt,
    list: true,
    errors: notFound,
    run: (ctx, { params, query }) => pageOfAttempts(ctx, params.webhookId, query),
  }),
  operation({
    id: 'webhooks.replay',
    needs: { role: 'member', scope: 'webhooks' },
    method: 'POST',
    path: '/webhooks/{webhookId}/replay',
    summary: 'Deliver again: one delivery, or all that died since a time.',
    description:
      'By `deliveryId` or `since`. The `eventId` stays the same, so that a receiver can recognize duplicates.',
    params: WebhookParams,
    input: ReplayRequest,
    output: z.union([Delivery, Replay]),
    status: 202,
    errors: { ...notFound, ...disabled, 'delivery-not-found': fail.table['delivery-not-found'] },
    cost: ({ dryRun }) => (dryRun ? countCost : 1),
    settingCost: 0.1,
    run: (ctx, { params, body }) => {
      const replay = () => replayDeliveries(ctx, params.webhookId, body)
      // A dry run writes nothing, so it neither counts as deliveries nor waits for those before it.
      if (body.dryRun) return replay()
      return limitRedeliveries(ctx, (done) => ('replayed' in done ? done.replayed : 1), replay)
    },
  }),
  operation({
    id: 'webhooks.test',
    needs: { role: 'member', scope: 'webhooks' },
    method: 'POST',
    path: '/webhooks/{webhookId}/test',
    summary: 'Send the event webhook.test to this webhook.',
    description: 'Returns the delivery; `webhooks.attempts.list` shows how it went.',
    params: WebhookParams,
    output: Delivery,
    errors: { ...notFound, ...disabled },
    cost: () => sampleEventCost,
    settingCost: 1,
    run: (ctx, { params }) => testWebhook(ctx, params.webhookId),
  }),
  operation({
    id: 'webhooks.rotateSecret',
    settingCost: 1,
    needs: { role: 'admin', scope: 'webhooks' },
    method: 'POST',
    path: '/webhooks/{webhookId}/rotate-secret',
    summary: 'Create a new secret; the old one also signs for 24 hours.',
    description: 'Store `secret`, which cannot be read later. For 24 hours each delivery has a signature of both.',
    params: WebhookParams,
    output: WebhookWithSecret,
    errors: notFound,
    secretResponse: true,
    run: (ctx, { params }) => rotateSecret(ctx, params.webhookId),
  }),
]

export const eventOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'events.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/events',
    summary: 'List the events of the last 30 days, newest first.',
    description: 'Also those that no webhook received.',
    query: EventQuery,
    output: Event,
    list: true,
    run: (ctx, { query }) => pageOfEvents(ctx, query),
  }),
  operation({
    id: 'events.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/events/{eventId}',
    summary: 'Get one event of the last 30 days.',
    description: 'With the payload that webhooks receive.',
    params: EventParams,
    output: Event,
    errors: { 'event-not-found': fail.table['event-not-found'], archived: fail.table.archived },
    run: (ctx, { params }) => getEvent(ctx, params.eventId),
  }),
]
