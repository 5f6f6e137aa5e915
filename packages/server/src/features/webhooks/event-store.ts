import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Db, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { deleteExpired, type Sweep } from '../../platform/db/delete-expired.ts'
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

/** Most rows that one statement looks at, and deletes. */
const lookedAtMax = 1_000

const LookedAt = z.object({ id: z.string(), eventId: z.string().optional(), isKept: z.boolean() })
type LookedAt = z.output<typeof LookedAt>

/**
 * Reads rows in an order, and changes those that are not kept. `select` returns those after a row, at most `lookedAtMax`: each statement looks at a
 * bounded number of rows, and a row that is kept is looked at once in a run, however many are.
 */
async function changeUnlessKept(
  { db, stopping }: Sweep<Db>,
  select: (after: LookedAt | undefined) => Sql,
  change: (ids: readonly string[]) => Sql,
): Promise<void> {
  let after: LookedAt | undefined
  while (stopping?.aborted !== true) {
    const statement = select(after)
    after = await db.tx(
      async (tx) => {
        const rows = await tx.many(LookedAt, statement)
        const ids = rows.filter(({ isKept }) => !isKept).map(({ id }) => id)
        if (ids.length > 0) await tx.run(change(ids))
        return rows.length < lookedAtMax ? undefined : rows.at(-1)
      },
      { readsInOrder: true },
    )
    if (after === undefined) return
  }
}

const locked = (table: Sql, ids: readonly string[]): Sql => sql`
  id = any(array(select id from ${table} where id = any(${ids}::text[]) order by id for update skip locked))`

/** Deletes rows in the order of their ids, except those that are kept. */
function deleteUnlessKept(sweep: Sweep<Db>, table: Sql, select: (after: string) => Sql): Promise<void> {
  return changeUnlessKept(
    sweep,
    (after) => select(after?.id ?? ''),
    (ids) => sql`delete from ${table} where ${locked(table, ids)}`,
  )
}

/**
 * Ends deliveries that were created before the bound and are still pending: they wait behind more than their endpoint accepts. They are found by their
 * events, in the index of pending deliveries, and ended by their keys: by status the planner could read all pending ones. A replay of an old event is a
 * delivery of its own and begins anew.
 */
export function endOldDeliveries(sweep: Sweep<Db>, { now, oldest }: { readonly now: Date; readonly oldest: Date }) {
  const eventsBefore = firstIdAt('evt', oldest.getTime() + idLagMsMax)
  const before = firstIdAt('del', oldest.getTime())
  return changeUnlessKept(
    sweep,
    (after) => sql`
    select id, event_id, id >= ${before} as is_kept from webhook_deliveries
    where status = 'pending' and event_id < ${eventsBefore} and (event_id, id) > (${after?.eventId ?? ''}, ${after?.id ?? ''})
    order by event_id, id limit ${lookedAtMax}`,
    (ids) => sql`
    update webhook_deliveries set status = 'dead', due_at = null, ended_at = ${now}
    where ended_at is null and ${locked(sql`webhook_deliveries`, ids)}`,
  )
}

/**
 * Deletes events older than the bound, unless a delivery is pending. A delivery, or a mark that the event has none yet, is found by an index for each
 * event: other pending deliveries are not read, however many a deployment has.
 */
export function deleteOldEvents(sweep: Sweep<Db>, oldest: Date): Promise<void> {
  const before = firstIdAt('evt', oldest.getTime() + idLagMsMax)
  return deleteUnlessKept(
    sweep,
    sql`events`,
    (after) => sql`
    select e.id, coalesce(due.is_kept, postponed.is_kept, pending.is_kept, false) as is_kept
    from (
      select id, organisation_id, environment from events
      where id > ${after} and id < ${before} and created_at < ${oldest} order by id limit ${lookedAtMax}
    ) as e
    left join lateral (select true as is_kept from events_due d where d.event_id = e.id limit 1) as due on true
    left join lateral (
      select true as is_kept from events_postponed p
      where p.organisation_id = e.organisation_id and p.environment = e.environment and p.event_id = e.id limit 1
    ) as postponed on true
    left join lateral (
      select true as is_kept from webhook_deliveries d where d.event_id = e.id and d.status = 'pending' limit 1
    ) as pending on true
    order by e.id`,
  )
}

/** Deletes attempts that are older than the bound. */
export async function deleteOldAttempts(sweep: Sweep, oldest: Date): Promise<void> {
  const where = sql`id < ${firstIdAt('att', oldest.getTime())}`
  await deleteExpired(sweep, { from: sql`webhook_attempts`, where, orderBy: sql`id`, key: sql`id` })
}

/** Deletes deliveries that are older than the bound and ended. */
export function deleteOldDeliveries(sweep: Sweep<Db>, oldest: Date): Promise<void> {
  const before = firstIdAt('del', oldest.getTime())
  return deleteUnlessKept(
    sweep,
    sql`webhook_deliveries`,
    (after) => sql`
    select id, ended_at is null as is_kept from webhook_deliveries where id > ${after} and id < ${before}
    order by id limit ${lookedAtMax}`,
  )
}

/** Deletes resends of events that are older than the bound. */
export async function deleteOldResends(sweep: Sweep, oldest: Date): Promise<void> {
  const where = sql`event_id < ${firstIdAt('evt', oldest.getTime())}`
  await deleteExpired(sweep, { from: sql`event_resends`, where, orderBy: sql`event_id` })
}

/** Deletes rows of webhooks that were deleted before the bound. Their deliveries ended by then, and `deleteOldDeliveries` deletes them by their age. */
export async function deleteOldWebhooks(sweep: Sweep, oldest: Date): Promise<void> {
  await deleteExpired(sweep, { from: sql`webhooks`, where: sql`deleted_at < ${oldest}`, orderBy: sql`deleted_at` })
}
