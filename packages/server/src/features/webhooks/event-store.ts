import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Db, type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { deleteExpired } from '../../platform/db/delete-expired.ts'
import {
  boundsOf,
  filtered,
  firstIdAt,
  idLagMsMax,
  type ListedRows,
  listRows,
  type Period,
  within,
} from '../../platform/db/page.ts'
import { type EventId, id } from '../../platform/ids.ts'

export const EventRow = z.object({
  id: id('evt'),
  type: z.string(),
  payload: z.record(z.string(), z.unknown()),
  createdAt: z.date(),
})
export type EventRow = z.output<typeof EventRow>

const columns = sql`id, type, payload, created_at`

export function findEvent(
  db: Queryable,
  tenant: Tenant,
  eventId: EventId,
  oldest: Date,
): Promise<EventRow | undefined> {
  return db.maybeOne(
    EventRow,
    sql`
    select ${columns} from events
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${eventId} and created_at >= ${oldest}`,
  )
}

/** Returns events of a type or of all types, newest first, one more than the limit. */
export function listEvents(
  db: Queryable,
  tenant: Tenant,
  filter: Period & { readonly type?: string | undefined; readonly oldest: Date },
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<EventRow>> {
  const bounds = { ...boundsOf('evt', filter, page.after), hasPartitions: true }
  const { where, order } = filtered([[sql`type`, filter.type]], sql`id`, bounds)
  return listRows(
    db,
    EventRow,
    page.limit,
    sql`
    select ${columns} from events
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and created_at >= ${filter.oldest}
      and ${where} and ${within(sql`created_at`, filter)} order by ${order}`,
  )
}

/** Marks an event that the transaction wrote as fanned out, so that it gets no deliveries besides those that the caller writes. */
export async function markFannedOut(tx: Tx, eventId: EventId): Promise<void> {
  await tx.run(sql`delete from events_due where event_id = ${eventId}`)
}

/**
 * Deletes events older than the bound, unless a delivery is pending. The pending deliveries of such events, almost always none, are read by the index
 * of all pending ones, for which `readsInOrder` keeps the planner from reading all deliveries.
 */
export function deleteOldEvents(db: Db, oldest: Date, most: number): Promise<number> {
  const statement = sql`
    delete from events where id = any(array(
      select e.id from events e
      where e.created_at < ${oldest} and not exists (select 1 from events_due d where d.event_id = e.id)
        and not exists (
          select from events_postponed p
          where p.organisation_id = e.organisation_id and p.environment = e.environment and p.event_id = e.id)
        and e.id <> all(array(
          select event_id from webhook_deliveries where status = 'pending' and event_id < ${firstIdAt('evt', oldest.getTime() + idLagMsMax)}))
      order by e.created_at limit ${most} for update skip locked))`
  return db.tx((tx) => tx.run(statement), { readsInOrder: true })
}

/** Deletes attempts, ended deliveries and resends that are older than the bound, or of older events. */
export async function deleteOldAttempts(db: Queryable, oldest: Date): Promise<void> {
  const before = (prefix: 'att' | 'del' | 'evt'): string => firstIdAt(prefix, oldest.getTime())
  const byId = { orderBy: sql`id`, key: sql`id` }
  await deleteExpired(db, { from: sql`webhook_attempts`, where: sql`id < ${before('att')}`, ...byId })
  const ended = sql`id < ${before('del')} and ended_at is not null`
  await deleteExpired(db, { from: sql`webhook_deliveries`, where: ended, ...byId })
  await deleteExpired(db, { from: sql`event_resends`, where: sql`event_id < ${before('evt')}`, orderBy: sql`event_id` })
}

/** Deletes rows of webhooks that were deleted before the bound. Their deliveries ended by then, and `deleteOldAttempts` deletes them by their age. */
export async function deleteOldWebhooks(db: Queryable, oldest: Date): Promise<void> {
  await deleteExpired(db, { from: sql`webhooks`, where: sql`deleted_at < ${oldest}`, orderBy: sql`deleted_at` })
}
