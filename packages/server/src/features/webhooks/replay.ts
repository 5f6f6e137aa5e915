import type { Tx } from '../../platform/db/db.ts'
import { type Id, newId } from '../../platform/ids.ts'
import { countDead, insertDelivery, lockDead, lockDelivery, replaceDeliveries } from './delivery-store.ts'
import { fail } from './errors.ts'
import { markFannedOut } from './event-store.ts'
import { oldestKept } from './history.ts'
import type { Ctx } from './ports.ts'
import type { Delivery, ReplayRequest } from './schema.ts'
import { lockWebhook, type WebhookId } from './store.ts'
import { getWebhook } from './webhooks.ts'

/** Most deliveries that one request replays, and that one transaction does; the next request continues. */
const replaysMax = 10_000
const pageMax = 1_000

/**
 * Sends deliveries again, as new deliveries with the same `eventId`: the named one, or the oldest 10,000 that died since a time.
 * Each replaces the old one, so that a second request does not find it.
 */
export function replayDeliveries(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'deliveriesWaiting' | 'random' | 'tenant'>,
  webhookId: WebhookId,
  { deliveryId, since, dryRun }: ReplayRequest,
): Promise<Delivery | { readonly replayed: number }> {
  if (since !== undefined) return (dryRun ? countSince : replaySince)(ctx, webhookId, since)
  return ctx.db.tx(async (tx) => {
    await lockActive(tx, ctx, webhookId)
    if (deliveryId === undefined) throw new Error('a replay names neither a delivery nor a time')
    return replayOne(tx, ctx, webhookId, deliveryId)
  })
}

/** Counts what a replay would send again, and changes nothing. */
async function countSince(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  webhookId: WebhookId,
  since: Date,
): Promise<{ readonly replayed: number }> {
  const { isActive } = await getWebhook(ctx, webhookId)
  if (!isActive) throw fail('webhook-disabled')
  const bounds = { since, oldest: oldestKept(ctx), limit: replaysMax }
  return { replayed: await countDead(ctx.db, ctx.tenant, webhookId, bounds) }
}

/** In transactions of 1,000 deliveries, so that what waits for the webhook waits a moment. */
async function replaySince(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'deliveriesWaiting' | 'random' | 'tenant'>,
  webhookId: WebhookId,
  since: Date,
): Promise<{ readonly replayed: number }> {
  let replayed = 0
  while (replayed < replaysMax) {
    const count = await ctx.db.tx((tx) => replayPage(tx, ctx, webhookId, since))
    replayed += count
    if (count < pageMax) break
  }
  return { replayed }
}

async function replayPage(
  tx: Tx,
  ctx: Pick<Ctx, 'audit' | 'clock' | 'deliveriesWaiting' | 'random' | 'tenant'>,
  webhookId: WebhookId,
  since: Date,
): Promise<number> {
  await lockActive(tx, ctx, webhookId)
  const dead = await lockDead(tx, ctx.tenant, webhookId, { since, oldest: oldestKept(ctx), limit: pageMax })
  const deadIds = dead.map(({ id }) => id)
  await replace(tx, ctx, webhookId, deadIds)
  return dead.length
}

/** Sends `webhook.test` to this webhook, whatever it subscribes to. */
export function testWebhook(
  ctx: Pick<Ctx, 'clock' | 'db' | 'deliveriesWaiting' | 'publish' | 'random' | 'tenant'>,
  webhookId: WebhookId,
): Promise<Delivery> {
  return ctx.db.tx(async (tx) => {
    await lockActive(tx, ctx, webhookId)
    const type = 'webhook.test'
    const eventId = await ctx.publish(tx, type, { webhookId })
    await markFannedOut(tx, eventId)
    const delivery = { id: newId('del', ctx), eventId, type, createdAt: ctx.clock.now() }
    await insertDelivery(tx, ctx.tenant, webhookId, delivery)
    wake(tx, ctx)
    return { ...delivery, status: 'pending' }
  })
}

async function replayOne(
  tx: Tx,
  ctx: Pick<Ctx, 'audit' | 'clock' | 'deliveriesWaiting' | 'random' | 'tenant'>,
  webhookId: WebhookId,
  deliveryId: Id<'del'>,
): Promise<Delivery> {
  const old = await lockDelivery(tx, ctx.tenant, webhookId, { deliveryId, oldest: oldestKept(ctx) })
  if (old === undefined) throw fail('delivery-not-found')
  const [newDeliveryId = deliveryId] = await replace(tx, ctx, webhookId, [deliveryId])
  return { ...old, id: newDeliveryId, status: 'pending', createdAt: ctx.clock.now() }
}

async function replace(
  tx: Tx,
  ctx: Pick<Ctx, 'audit' | 'clock' | 'deliveriesWaiting' | 'random' | 'tenant'>,
  webhookId: WebhookId,
  oldIds: readonly Id<'del'>[],
): Promise<Id<'del'>[]> {
  if (oldIds.length === 0) return []
  const newIds = oldIds.map(() => newId('del', ctx))
  await replaceDeliveries(tx, ctx.tenant, webhookId, { oldIds, newIds, now: ctx.clock.now() })
  await ctx.audit(tx, { action: 'webhooks.replay', target: webhookId, details: { deliveries: oldIds.length } })
  wake(tx, ctx)
  return newIds
}

async function lockActive(tx: Tx, ctx: Pick<Ctx, 'tenant'>, webhookId: WebhookId): Promise<void> {
  const webhook = await lockWebhook(tx, ctx.tenant, webhookId)
  if (webhook === undefined) throw fail('webhook-not-found')
  if (!webhook.isActive) throw fail('webhook-disabled')
}

function wake(tx: Tx, { deliveriesWaiting }: Pick<Ctx, 'deliveriesWaiting'>): void {
  if (deliveriesWaiting !== undefined) tx.afterCommit(deliveriesWaiting)
}
