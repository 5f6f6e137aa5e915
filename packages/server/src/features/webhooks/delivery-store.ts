import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Db, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import {
  boundsOf,
  filtered,
  firstIdAt,
  type ListedRows,
  listRows,
  type Period,
  within,
} from '../../platform/db/page.ts'
import { type Id, id } from '../../platform/ids.ts'
import { deliveryStatuses } from './schema.ts'
import type { WebhookId } from './store.ts'

export const DeliveryRow = z.object({
  id: id('del'),
  eventId: id('evt'),
  type: z.string(),
  status: z.enum(deliveryStatuses),
  createdAt: z.date(),
})
export type DeliveryRow = z.output<typeof DeliveryRow>

/** Writes a delivery that is due at once, and makes the endpoint's queue due. The caller has locked the webhook's queue. */
export async function insertDelivery(
  tx: Tx,
  tenant: Tenant,
  webhookId: WebhookId,
  delivery: Omit<DeliveryRow, 'status'>,
): Promise<void> {
  const { id: deliveryId, eventId, type, createdAt } = delivery
  await tx.run(sql`
    insert into webhook_deliveries (id, organisation_id, environment, webhook_id, event_id, type, status, due_at, created_at)
    values (${deliveryId}, ${tenant.organisationId}, ${tenant.environment}, ${webhookId}, ${eventId}, ${type}, 'pending', ${createdAt}, ${createdAt})`)
  await makeQueueDue(tx, webhookId, createdAt)
}

/** Makes the endpoint's queue due now. A process that already serves it reads it again before it releases the lease. */
export async function makeQueueDue(tx: Tx, webhookId: WebhookId, now: Date): Promise<void> {
  await tx.run(sql`
    update webhook_queues set look_at = ${now}
    where webhook_id = ${webhookId} and lease is null and (look_at is null or look_at > ${now})`)
}

/** Locks a delivery of the webhook until the transaction ends, unless its event is older than the bound. */
export function lockDelivery(
  tx: Tx,
  tenant: Tenant,
  webhookId: WebhookId,
  { deliveryId, oldest }: { readonly deliveryId: Id<'del'>; readonly oldest: Date },
): Promise<DeliveryRow | undefined> {
  return tx.maybeOne(
    DeliveryRow,
    sql`
    select id, event_id, type, status, created_at from webhook_deliveries
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and webhook_id = ${webhookId}
      and id = ${deliveryId} and event_id >= ${firstIdAt('evt', oldest.getTime())}
    for update`,
  )
}

/** Locks deliveries of events since `oldest` that died since then and have no replacement, oldest first, until the transaction ends. */
export function lockDead(
  tx: Tx,
  tenant: Tenant,
  webhookId: WebhookId,
  bounds: { readonly since: Date; readonly oldest: Date; readonly limit: number },
): Promise<DeliveryRow[]> {
  return tx.many(
    DeliveryRow,
    sql`
    select id, event_id, type, status, created_at from webhook_deliveries where ${isDead(tenant, webhookId, bounds)}
    order by ended_at, id limit ${bounds.limit} for update`,
  )
}

/** Counts those that `lockDead` returns, without a lock. */
export async function countDead(
  db: Queryable,
  tenant: Tenant,
  webhookId: WebhookId,
  bounds: Parameters<typeof lockDead>[3],
): Promise<number> {
  const { count } = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from (
      select from webhook_deliveries where ${isDead(tenant, webhookId, bounds)} limit ${bounds.limit}) as dead`,
  )
  return Number(count)
}

function isDead(
  { organisationId, environment }: Tenant,
  webhookId: WebhookId,
  { since, oldest }: { readonly since: Date; readonly oldest: Date },
): Sql {
  return sql`organisation_id = ${organisationId} and environment = ${environment} and webhook_id = ${webhookId}
    and status = 'dead' and replayed_by is null and ended_at >= ${since} and event_id >= ${firstIdAt('evt', oldest.getTime())}`
}

/** Replaces each delivery by a new one that is due at once. The caller has locked the webhook's queue and the old deliveries. */
export async function replaceDeliveries(
  tx: Tx,
  tenant: Tenant,
  webhookId: WebhookId,
  replaced: { readonly oldIds: readonly string[]; readonly newIds: readonly string[]; readonly now: Date },
): Promise<void> {
  const { oldIds, newIds, now } = replaced
  await tx.run(sql`
    insert into webhook_deliveries (id, organisation_id, environment, webhook_id, event_id, type, status, due_at, created_at)
    select given.new_id, d.organisation_id, d.environment, d.webhook_id, d.event_id, d.type, 'pending', ${now}, ${now}
    from unnest(${[...oldIds]}::text[], ${[...newIds]}::text[]) as given (old_id, new_id)
    join webhook_deliveries d on d.id = given.old_id
    where d.organisation_id = ${tenant.organisationId} and d.environment = ${tenant.environment} and d.webhook_id = ${webhookId}`)
  await tx.run(sql`
    update webhook_deliveries d set replayed_by = given.new_id,
      status = case d.status when 'pending' then 'dead' else d.status end,
      due_at = null, ended_at = coalesce(d.ended_at, ${now})
    from unnest(${[...oldIds]}::text[], ${[...newIds]}::text[]) as given (old_id, new_id)
    where d.organisation_id = ${tenant.organisationId} and d.environment = ${tenant.environment} and d.webhook_id = ${webhookId}
      and d.id = given.old_id`)
  await makeQueueDue(tx, webhookId, now)
}

/** Most deliveries that one transaction ends, so that what waits for their locks waits a moment, however many are pending. */
const endedMax = 1_000

/**
 * Ends what is pending of a webhook that is turned off: up to 1,000 deliveries now, and the others in later transactions (`endNext`). The
 * caller has locked the webhook's queue, so that no delivery follows.
 */
export async function endPending(tx: Tx, tenant: Tenant, webhookId: WebhookId, endedAt: Date): Promise<void> {
  if (!(await endSome(tx, tenant, webhookId, endedAt))) return
  await tx.run(sql`insert into webhook_endings (webhook_id) values (${webhookId}) on conflict do nothing`)
}

/** The webhook that had the last turn; empty if none had one. */
export interface EndingPlace {
  after: string
}

/**
 * Ends up to 1,000 deliveries of one webhook that is off and has more than a transaction ends. If the webhook is on again, its remaining deliveries
 * are sent. Such webhooks take turns: `place` is moved on to this one. Returns whether it found one.
 */
export function endNext(db: Db, now: Date, place: EndingPlace): Promise<boolean> {
  return db.tx(
    async (tx) => {
      const next = (await lockEnding(tx, place.after)) ?? (await lockEnding(tx, ''))
      if (next === undefined) return false
      const { webhookId, isActive, ...tenant } = next
      place.after = webhookId
      const isMore = !isActive && (await endSome(tx, tenant, webhookId, now))
      if (!isMore) await tx.run(sql`delete from webhook_endings where webhook_id = ${webhookId}`)
      return true
    },
    { readsInOrder: true },
  )
}

/** A condition: whether deliveries of a webhook that is off wait for their end. */
export const isAnyEndDue = sql`(select webhook_id from webhook_endings limit 1) is not null`

const Ending = z.object({
  webhookId: id('wh'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  isActive: z.boolean(),
})

/** Locks the queue of the next webhook behind the given one whose deliveries wait for their end, if one is free. */
function lockEnding(tx: Tx, after: string): Promise<z.output<typeof Ending> | undefined> {
  return tx.maybeOne(
    Ending,
    sql`
    select e.webhook_id, w.organisation_id, w.environment, w.is_active
    from webhook_endings e join webhook_queues q on q.webhook_id = e.webhook_id join webhooks w on w.id = e.webhook_id
    where e.webhook_id > ${after} order by e.webhook_id limit 1 for update of e, q skip locked`,
  )
}

/**
 * Ends up to 1,000 deliveries and returns whether more are pending. Rows are locked in the order of ids, as where outcomes are stored, so
 * that the two cannot deadlock.
 */
async function endSome(tx: Tx, tenant: Tenant, webhookId: WebhookId, endedAt: Date): Promise<boolean> {
  const pending = sql`
    from webhook_deliveries
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and webhook_id = ${webhookId}
      and status = 'pending'`
  await tx.run(sql`
    update webhook_deliveries set status = 'dead', due_at = null, ended_at = ${endedAt}
    where id in (
      select id from webhook_deliveries where status = 'pending' and id = any(array(
        select id ${pending} order by due_at limit ${endedMax}))
      order by id for no key update)`)
  const { isMore } = await tx.one(z.object({ isMore: z.boolean() }), sql`select exists (select ${pending}) as is_more`)
  return isMore
}

export const AttemptRow = z.object({
  id: id('att'),
  deliveryId: id('del'),
  eventId: id('evt'),
  type: z.string(),
  attempt: z.number(),
  status: z.enum(['succeeded', 'failed']),
  responseStatus: z.number().nullable(),
  responseBody: z.string().nullable(),
  durationMs: z.number(),
  error: z.string().nullable(),
  nextAttemptAt: z.date().nullable(),
  createdAt: z.date(),
})
export type AttemptRow = z.output<typeof AttemptRow>

/** Returns the webhook's attempts, newest first, one more than the limit. */
export function listAttempts(
  db: Queryable,
  tenant: Tenant,
  filters: Period & { readonly webhookId: WebhookId; readonly status?: AttemptRow['status'] | undefined },
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<AttemptRow>> {
  const bounds = { ...boundsOf('att', filters, page.after), hasPartitions: true }
  const { where, order } = filtered([[sql`a.status`, filters.status]], sql`a.id`, bounds)
  return listRows(
    db,
    AttemptRow,
    page.limit,
    sql`
    select a.id, a.delivery_id, d.event_id, d.type, a.attempt, a.status, a.response_status, a.response_body, a.duration_ms, a.error,
      a.next_attempt_at, a.created_at
    from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id
    where a.organisation_id = ${tenant.organisationId} and a.environment = ${tenant.environment} and a.webhook_id = ${filters.webhookId}
      and ${where} and ${within(sql`a.created_at`, filters)}
    order by ${order}`,
  )
}
