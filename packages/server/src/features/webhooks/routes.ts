import { z } from 'zod'
import type { Operation } from '../../platform/operation.ts'
import { PageQuery } from '../../platform/wire.ts'
import { planErrors } from '../plans/index.ts'
import { fail } from './errors.ts'
import { getEvent, pageOfAttempts, pageOfEvents } from './history.ts'
import { type Deps, operation } from './ports.ts'
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
    needs: { role: 'admin', scope: 'webhooks' },
    method: 'POST',
    path: '/webhooks',
    summary: 'Register an address for events.',
    input: NewWebhook,
    output: WebhookWithSecret,
    status: 201,
    errors: { ...badUrl, 'webhook-limit-reached': planErrors['webhook-limit-reached'] },
    secretAnswer: true,
    run: (ctx, { body }) => createWebhook(ctx, body),
  }),
  operation({
    id: 'webhooks.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/webhooks',
    summary: 'List webhooks, newest first.',
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
    params: WebhookParams,
    output: Webhook,
    errors: notFound,
    run: (ctx, { params }) => getWebhook(ctx, params.webhookId),
  }),
  operation({
    id: 'webhooks.update',
    needs: { role: 'admin', scope: 'webhooks' },
    method: 'PATCH',
    path: '/webhooks/{webhookId}',
    summary: 'Change where events go, which ones, or whether any do.',
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
    summary: 'Send no more events to an address.',
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
    params: WebhookParams,
    input: ReplayRequest,
    output: z.union([Delivery, Replay]),
    status: 202,
    errors: { ...notFound, ...disabled, 'delivery-not-found': fail.table['delivery-not-found'] },
    run: (ctx, { params, body }) => replayDeliveries(ctx, params.webhookId, body),
  }),
  operation({
    id: 'webhooks.test',
    needs: { role: 'member', scope: 'webhooks' },
    method: 'POST',
    path: '/webhooks/{webhookId}/test',
    summary: 'Send the event webhook.test to this webhook.',
    params: WebhookParams,
    output: Delivery,
    errors: { ...notFound, ...disabled },
    run: (ctx, { params }) => testWebhook(ctx, params.webhookId),
  }),
  operation({
    id: 'webhooks.rotateSecret',
    needs: { role: 'admin', scope: 'webhooks' },
    method: 'POST',
    path: '/webhooks/{webhookId}/rotate-secret',
    summary: 'Make a new secret; the old one signs beside it for 24 hours.',
    params: WebhookParams,
    output: WebhookWithSecret,
    errors: notFound,
    secretAnswer: true,
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
    params: EventParams,
    output: Event,
    errors: { 'event-not-found': fail.table['event-not-found'] },
    run: (ctx, { params }) => getEvent(ctx, params.eventId),
  }),
]
