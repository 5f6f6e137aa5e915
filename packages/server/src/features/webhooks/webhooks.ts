import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { parseCustomerUrl } from '../../platform/customer-url.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import { refuseEndedCaller } from '../callers/index.ts'
import { addToCounter, countOrRefuse, lockCounter, periodOf } from '../plans/index.ts'
import { endPending, makeQueueDue } from './delivery-store.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { NewWebhook, Webhook, WebhookChange, WebhookWithSecret } from './schema.ts'
import { makeSecret } from './secrets.ts'
import {
  findWebhook,
  insertWebhook,
  listActive,
  listWebhooks,
  lockWebhook,
  markDeleted,
  markDisabled,
  updateWebhook,
  type WebhookId,
  type WebhookRow,
} from './store.ts'

/**
 * Registers an address for events, and returns the secret this once. The plan's counter is locked until the webhook is stored, so
 * that parallel requests together never exceed the limit.
 */
export function createWebhook(ctx: Ctx, { url, events }: NewWebhook): Promise<WebhookWithSecret> {
  refuseUrl(ctx, url)
  return ctx.db.tx(async (tx) => {
    await countOrRefuse(tx, ctx, 'webhooks')
    const webhook: WebhookRow = { id: newId('wh', ctx), url, events, isActive: true, createdAt: ctx.clock.now() }
    await insertWebhook(tx, ctx.tenant, webhook)
    await refuseEndedCaller(ctx, tx, 'admin')
    const secret = await makeSecret(tx, ctx, webhook.id)
    await ctx.audit(tx, { action: 'webhooks.create', target: webhook.id, details: { host: hostIn(url), events } })
    return { ...webhook, secret }
  })
}

export async function getWebhook(ctx: Pick<Ctx, 'db' | 'tenant'>, webhookId: WebhookId): Promise<Webhook> {
  const webhook = await findWebhook(ctx.db, ctx.tenant, webhookId)
  if (webhook === undefined) throw fail('webhook-not-found')
  return webhook
}

export async function pageOfWebhooks(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: z.output<typeof PageQuery>,
): Promise<Page<Webhook>> {
  const rows = await listWebhooks(ctx.db, ctx.tenant, { limit: query.limit, after: openCursor(query.cursor) })
  return pageOf(rows, query.limit, (row) => row.id)
}

/**
 * Changes the address, the event types, or whether events are sent. Turning a webhook off ends its pending deliveries; they can
 * be replayed once it is on again. Deliveries that are still pending then are sent.
 */
export function changeWebhook(
  ctx: Pick<Ctx, 'actor' | 'audit' | 'clock' | 'customerUrls' | 'db' | 'person' | 'tenant'>,
  webhookId: WebhookId,
  change: WebhookChange,
): Promise<Webhook> {
  if (change.url !== undefined) refuseUrl(ctx, change.url)
  return ctx.db.tx(async (tx) => {
    const webhook = await lockWebhook(tx, ctx.tenant, webhookId)
    if (webhook === undefined) throw fail('webhook-not-found')
    await refuseEndedCaller(ctx, tx, 'admin')
    const { url = webhook.url, events = webhook.events, isActive = webhook.isActive } = change
    const changed = { ...webhook, url, events, isActive }
    if (isDeepStrictEqual(changed, webhook)) return webhook
    await updateWebhook(tx, ctx.tenant, changed)
    const now = ctx.clock.now()
    if (webhook.isActive && !isActive) await endPending(tx, ctx.tenant, webhookId, now)
    if (!webhook.isActive && isActive) await makeQueueDue(tx, webhookId, now)
    const details = { host: hostIn(url), events, isActive }
    await ctx.audit(tx, { action: 'webhooks.update', target: webhookId, details })
    return changed
  })
}

/**
 * Deletes the webhook: its pending deliveries are not sent, and its place in the plan is free. Returns, or throws 404 for one that is deleted, when the
 * witness covers it.
 */
export async function deleteWebhook(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'tenant' | 'witness'>,
  webhookId: WebhookId,
): Promise<void> {
  const wasPresent = await ctx.db.tx(async (tx) => {
    const now = ctx.clock.now()
    const period = periodOf('webhooks', now)
    await lockCounter(tx, ctx.tenant, 'webhooks', period)
    const webhook = await lockWebhook(tx, ctx.tenant, webhookId)
    tx.beforeReturn(webhook === undefined ? ctx.witness.coverRepetition : ctx.witness.cover)
    if (webhook === undefined) return false
    await markDeleted(tx, ctx.tenant, webhookId, now)
    await endPending(tx, ctx.tenant, webhookId, now)
    await addToCounter(tx, { tenant: ctx.tenant, kind: 'webhooks', period, n: -1 })
    await ctx.audit(tx, { action: 'webhooks.delete', target: webhookId })
    return true
  })
  if (!wasPresent) throw fail('webhook-not-found')
}

/** Turns off all webhooks of a tenant and ends their pending deliveries. Returns the number of webhooks that were on. */
export async function disableWebhooks(tx: Tx, tenant: Tenant, now: Date): Promise<number> {
  const webhooks = await listActive(tx, tenant)
  for (const { id } of webhooks) {
    await lockWebhook(tx, tenant, id)
    if (await markDisabled(tx, tenant, id)) await endPending(tx, tenant, id, now)
  }
  return webhooks.length
}

/** Refuses a URL that no address could make valid. What its name resolves to is checked at each delivery. */
function refuseUrl({ customerUrls }: Pick<Ctx, 'customerUrls'>, url: string): void {
  const parsed = parseCustomerUrl(url, customerUrls)
  if (typeof parsed !== 'string') return
  const { detail } = fail.table['webhook-url-not-allowed']
  throw fail('webhook-url-not-allowed', { reason: parsed, detail: `${detail} This URL: ${parsed}.` })
}

/** Returns the host for the audit log: paths and queries may contain a receiver's secrets. */
function hostIn(url: string): string {
  return new URL(url).host
}
