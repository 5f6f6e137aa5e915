import type { Tx } from '../../../platform/db/db.ts'
import { type EventId, newId } from '../../../platform/ids.ts'
import { insertDeliveries, lockQueues } from '../delivery/queue-store.ts'
import { fail as failWebhook } from '../errors.ts'
import { findEvent } from '../event-store.ts'
import { oldestKept, refuseEvent } from '../history.ts'
import type { Ctx } from '../ports.ts'
import { lockWebhook, type WebhookId } from '../store.ts'
import { fail } from './errors.ts'
import type { Resend, ResendRequest } from './schema.ts'
import { insertResend, listSubscribed } from './store.ts'

/**
 * Sends an event again with the same `eventId`: to every active webhook that subscribes to its type and to every listener, or to
 * the one named webhook. Existing deliveries do not change.
 */
export function resendEvent(ctx: Ctx, eventId: EventId, { webhookId }: ResendRequest): Promise<Resend> {
  return ctx.db.tx(async (tx) => {
    const event = (await findEvent(tx, ctx.tenant, eventId, oldestKept(ctx))) ?? (await refuseEvent(tx, ctx, eventId))
    const webhookIds = webhookId === undefined ? await lockSubscribed(tx, ctx, event.type) : [webhookId]
    if (webhookId === undefined) {
      await insertResend(tx, ctx.tenant, { id: newId('del', ctx), eventId, createdAt: ctx.clock.now() })
    } else await holdActive(tx, ctx, webhookId)
    await deliver(tx, ctx, eventId, webhookIds)
    await ctx.audit(tx, { action: 'events.resend', target: eventId, details: { deliveries: webhookIds.length } })
    if (ctx.eventsCommitted !== undefined) tx.afterCommit(ctx.eventsCommitted)
    return { eventId, deliveries: webhookIds.length }
  })
}

/** Locks the queues of the subscribed webhooks and returns those that are still active and not deleted. */
async function lockSubscribed(tx: Tx, ctx: Ctx, type: string): Promise<readonly WebhookId[]> {
  const subscribed = await listSubscribed(tx, ctx.tenant, type)
  await lockQueues(tx, subscribed)
  const still = new Set(await listSubscribed(tx, ctx.tenant, type))
  return subscribed.filter((webhookId) => still.has(webhookId))
}

async function holdActive(tx: Tx, ctx: Ctx, webhookId: WebhookId): Promise<void> {
  const webhook = await lockWebhook(tx, ctx.tenant, webhookId)
  if (webhook === undefined) throw fail('webhook-not-found')
  if (!webhook.isActive) throw failWebhook('webhook-disabled')
}

async function deliver(tx: Tx, ctx: Ctx, eventId: EventId, webhookIds: readonly WebhookId[]): Promise<void> {
  const ids = webhookIds.map(() => newId('del', ctx))
  const eventIds = webhookIds.map(() => eventId)
  if (ids.length > 0) await insertDeliveries(tx, { ids, eventIds, webhookIds, now: ctx.clock.now() })
}
