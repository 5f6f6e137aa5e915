import {
  type EventPayloads,
  type EventSample,
  type EventType,
  eventCatalogue,
  eventTypes,
  newTypeId,
} from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { type EventId, newId } from '../../../platform/ids.ts'
import { insertDeliveries, lockQueues } from '../delivery/queue-store.ts'
import { fail as failWebhook } from '../errors.ts'
import { findEvent } from '../event-store.ts'
import { oldestKept, refuseEvent } from '../history.ts'
import type { Ctx } from '../ports.ts'
import type { Event } from '../schema.ts'
import { lockWebhook, type WebhookId } from '../store.ts'
import { fail } from './errors.ts'
import type { EventSamples, Resend, ResendRequest, TriggerRequest } from './schema.ts'
import { insertResend, listSubscribed } from './store.ts'

/**
 * Creates a sample event and publishes it as a feature would: every webhook and every listener gets it. Not possible in the live
 * environment, because receivers act on live events.
 */
export function triggerEvent(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'publish' | 'random' | 'tenant'>,
  { type }: TriggerRequest,
): Promise<Event> {
  if (ctx.tenant.environment !== 'test') throw fail('test-environment-only')
  return ctx.db.tx(async (tx) => {
    const eventId = await ctx.publish(tx, type, samplePayload(type, ctx))
    await ctx.audit(tx, { action: 'events.trigger', target: eventId, details: { type } })
    const event = await findEvent(tx, ctx.tenant, eventId, oldestKept(ctx))
    if (event === undefined) throw new Error('an event that was just written is not there')
    return event
  })
}

type Source = Pick<Deps, 'clock' | 'random'>

/** A sample payload. Ids, hashes and addresses are new each time, so that receivers that deduplicate by id accept each one. */
export function samplePayload<T extends EventType>(type: T, deps: Source): EventPayloads[T]
export function samplePayload(type: EventType, deps: Source): Readonly<Record<string, unknown>> {
  const fields = Object.entries(eventCatalogue[type].fields)
  return Object.fromEntries(fields.map(([name, { sample }]) => [name, sampleValue(sample, deps)]))
}

/** Each type with the members of its payload and one sample. */
export function eventSamples(deps: Source): EventSamples {
  return {
    types: eventTypes.map((type) => {
      const { description, fields } = eventCatalogue[type]
      const members = Object.entries(fields).map(([name, field]) => ({
        name,
        type: field.isTime ? ('time' as const) : field.type,
        nullable: field.isNullable,
        description: field.description,
      }))
      return { type, description, members, payload: samplePayload(type, deps) }
    }),
  }
}

function sampleValue(sample: EventSample, deps: Source): string | number | null {
  if ('value' in sample) return sample.value
  if ('id' in sample) return newTypeId(sample.id, deps.clock.now().getTime(), deps.random.bytes(10))
  if ('secondsFromNow' in sample)
    return instantOf(deps.clock.now().getTime() + sample.secondsFromNow * 1_000).toISOString()
  const bytes = sample.random === 'hash' ? 32 : 20
  return `0x${Buffer.from(deps.random.bytes(bytes)).toString('hex')}`
}

/**
 * Sends an event again with the same `eventId`: to every active webhook that subscribes to its type and to every listener, or to
 * the one named webhook. Existing deliveries do not change.
 */
export function resendEvent(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'eventsCommitted' | 'random' | 'tenant'>,
  eventId: EventId,
  { webhookId }: ResendRequest,
): Promise<Resend> {
  return ctx.db.tx(async (tx) => {
    const event = (await findEvent(tx, ctx.tenant, eventId, oldestKept(ctx))) ?? (await refuseEvent(tx, ctx, eventId))
    const webhookIds = webhookId === undefined ? await lockSubscribed(tx, ctx, event.type) : [webhookId]
    if (webhookId === undefined) {
      await insertResend(tx, ctx.tenant, { id: newId('del', ctx), eventId, createdAt: ctx.clock.now() })
    } else await holdActive(tx, ctx, webhookId)
    await deliver(tx, ctx, event, webhookIds)
    await ctx.audit(tx, { action: 'events.resend', target: eventId, details: { deliveries: webhookIds.length } })
    tx.afterCommit(() => ctx.eventsCommitted?.({ haveSubscribers: true }))
    return { eventId, deliveries: webhookIds.length }
  })
}

/** Locks the queues of the subscribed webhooks and returns those that are still active and not deleted. */
async function lockSubscribed(tx: Tx, ctx: Pick<Ctx, 'tenant'>, type: string): Promise<readonly WebhookId[]> {
  const subscribed = await listSubscribed(tx, ctx.tenant, type)
  await lockQueues(tx, subscribed)
  const still = new Set(await listSubscribed(tx, ctx.tenant, type))
  return subscribed.filter((webhookId) => still.has(webhookId))
}

async function holdActive(tx: Tx, ctx: Pick<Ctx, 'tenant'>, webhookId: WebhookId): Promise<void> {
  const webhook = await lockWebhook(tx, ctx.tenant, webhookId)
  if (webhook === undefined) throw fail('webhook-not-found')
  if (!webhook.isActive) throw failWebhook('webhook-disabled')
}

async function deliver(
  tx: Tx,
  ctx: Pick<Ctx, 'clock' | 'random'>,
  event: Event,
  webhookIds: readonly WebhookId[],
): Promise<void> {
  const ids = webhookIds.map(() => newId('del', ctx))
  const eventIds = webhookIds.map(() => event.id)
  const types = webhookIds.map(() => event.type)
  if (ids.length > 0) await insertDeliveries(tx, { ids, eventIds, types, webhookIds, now: ctx.clock.now() })
}
