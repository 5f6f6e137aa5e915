import type { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import { isArchived } from '../../platform/db/archived-ids.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { EventId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import type { Recount } from '../plans/index.ts'
import { listAttempts } from './delivery-store.ts'
import { fail } from './errors.ts'
import { findEvent, listEvents } from './event-store.ts'
import type { Ctx, Deps } from './ports.ts'
import type { Attempt, AttemptQuery, Event, EventQuery } from './schema.ts'
import { countingWebhooks, findWebhook, type WebhookId } from './store.ts'

const dayMs = 86_400_000

/** Days for which events, deliveries and attempts are returned. Their rows stay for at least as long. */
const servedDays = 30

/** A request that begins in time may end after it. */
const deletionDelayMs = 3_600_000

/** Returns the oldest instant of which events are returned. */
export function oldestKept({ clock }: Pick<Ctx, 'clock'>): Date {
  return instantOf(clock.now().getTime() - servedDays * dayMs)
}

/** Returns the oldest instant of which rows stay. They stay longer than they are returned where months are archived. */
export function oldestRow({ clock, eventsKeptDays = servedDays }: Pick<Deps, 'clock' | 'eventsKeptDays'>): Date {
  return instantOf(clock.now().getTime() - Math.max(eventsKeptDays, servedDays) * dayMs - deletionDelayMs)
}

export async function pageOfAttempts(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  webhookId: WebhookId,
  { limit, cursor, ...filters }: AttemptQuery,
): Promise<Page<Attempt>> {
  if ((await findWebhook(ctx.db, ctx.tenant, webhookId)) === undefined) throw fail('webhook-not-found')
  const page = { limit, after: openCursor(cursor) }
  const rows = await listAttempts(ctx.db, ctx.tenant, { ...filters, webhookId }, page)
  return pageOf(rows, limit, (row) => row.id)
}

export async function getEvent(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, eventId: EventId): Promise<Event> {
  const event = await findEvent(ctx.db, ctx.tenant, eventId, oldestKept(ctx))
  return event ?? refuseEvent(ctx.db, ctx, eventId)
}

/** Refuses an event that was not found: 410 to the organisation of an archived one, otherwise 404. */
export async function refuseEvent(db: Queryable, { tenant }: Pick<Ctx, 'tenant'>, eventId: EventId): Promise<never> {
  throw fail((await isArchived(db, tenant, eventId)) ? 'archived' : 'event-not-found')
}

/** Returns a page of the organisation's events of the last 30 days, newest first. */
export async function pageOfEvents(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  query: z.output<typeof EventQuery>,
): Promise<Page<Event>> {
  const { limit, cursor, ...filters } = query
  const filter = { ...filters, oldest: oldestKept(ctx) }
  const rows = await listEvents(ctx.db, ctx.tenant, filter, { limit, after: openCursor(cursor) })
  return pageOf(rows, limit, (row) => row.id)
}

/** Recounts a tenant's webhooks, to rebuild the counter. */
export const webhookRecount: Recount = { kind: 'webhooks', counting: (tenant) => countingWebhooks(tenant) }
