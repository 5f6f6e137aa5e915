import { z } from 'zod'
import { anyLength, type Db, type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { idIn } from '../../../platform/db/page.ts'
import { id } from '../../../platform/ids.ts'
import { type DueCursors, listDueChecks } from '../../plans/index.ts'
import type { WebhookId } from '../store.ts'

/*
 * The statements of the work role, which serves all tenants at once: rows are named by ids that were read with their tenant. A
 * process with the lease of a webhook’s queue is the only one that delivers to it.
 */

/** A condition: whether there are queues to lease. */
export function isAnyQueueDue(now: Date): Sql {
  return sql`(select look_at from webhook_queues where look_at <= ${now} order by look_at limit 1) is not null`
}

/** Locks queues in one order everywhere, so that no webhook is turned off or deleted between the read and the write. */
export async function lockQueues(tx: Tx, webhookIds: readonly WebhookId[]): Promise<void> {
  await tx.run(sql`
    select 1 from webhook_queues where webhook_id = any(${anyLength(webhookIds)}) order by webhook_id for update`)
}

export interface NewDeliveries {
  readonly ids: readonly string[]
  readonly eventIds: readonly string[]
  /** Types of the events, in the order of `eventIds`. */
  readonly types: readonly string[]
  readonly webhookIds: readonly WebhookId[]
  readonly now: Date
}

/**
 * Writes deliveries and makes their queues due. For a webhook that is turned off they are dead from the start, so that they can
 * be replayed. The caller has locked the queues, and has read the events as those of the webhooks' tenants.
 */
export async function insertDeliveries(
  tx: Tx,
  { ids, eventIds, types, webhookIds, now }: NewDeliveries,
): Promise<void> {
  await tx.run(sql`
    with given as (
      select * from unnest(${anyLength(ids)}, ${anyLength(eventIds)}, ${anyLength(types)}, ${anyLength(webhookIds)})
        as given (id, event_id, type, webhook_id)),
    woken as (
      update webhook_queues q set look_at = ${now} from (select distinct webhook_id from given) as news
      where q.webhook_id = news.webhook_id and q.lease is null and (q.look_at is null or q.look_at > ${now}))
    insert into webhook_deliveries (id, organisation_id, environment, webhook_id, event_id, type, status, due_at, ended_at, created_at)
    select given.id, w.organisation_id, w.environment, w.id, given.event_id, given.type,
      case when w.is_active then 'pending' else 'dead' end,
      case when w.is_active then ${now}::timestamptz end,
      case when w.is_active then null else ${now}::timestamptz end, ${now}
    from given
    join webhooks w on w.id = given.webhook_id and w.deleted_at is null`)
}

const QueueRow = z.object({ webhookId: id('wh') })

export interface DeliveryLease {
  /** Identifies the process. */
  readonly name: string
  readonly now: Date
  readonly until: Date
}

const OwnedQueue = z.object({ webhookId: id('wh'), organisationId: id('org') })
export type OwnedQueue = z.output<typeof OwnedQueue>

/**
 * Leases the queues that have waited longest, up to this many. Queues of a process that died become available when its lease
 * ends. The lease is in the queue's row: `platform/leases` has fixed shares of work, and queues begin and end with webhooks.
 */
export function leaseQueues(db: Queryable, lease: DeliveryLease, most: number): Promise<OwnedQueue[]> {
  return leaseOf(
    db,
    lease,
    sql`select webhook_id from webhook_queues where look_at <= ${lease.now} order by look_at limit ${most} for update skip locked`,
  )
}

/** Leases those of the queues that are still due and that nobody has locked. */
export function leaseGivenQueues(
  db: Queryable,
  lease: DeliveryLease,
  webhookIds: readonly WebhookId[],
): Promise<OwnedQueue[]> {
  return leaseOf(
    db,
    lease,
    sql`
      select webhook_id from webhook_queues where webhook_id = any(${anyLength(webhookIds)}) and look_at <= ${lease.now}
      order by webhook_id for update skip locked`,
  )
}

function leaseOf(db: Queryable, { name, until }: DeliveryLease, chosen: Sql): Promise<OwnedQueue[]> {
  return db.many(
    OwnedQueue,
    sql`
    update webhook_queues set lease = ${name}, look_at = ${until} where webhook_id in (${chosen})
    returning webhook_id, organisation_id`,
  )
}

/** Queues, as `listDueChecks` reads them. */
const dueQueues = sql`(select webhook_id as id, organisation_id, 'all' as network, look_at as check_at from webhook_queues)`

/** Returns up to `most` due queues, in shares of their owners. The transaction must read in order. */
export async function listQueuesByShares(
  tx: Tx,
  { now, most, cursors }: { readonly now: Date; readonly most: number; readonly cursors: DueCursors },
): Promise<OwnedQueue[]> {
  const at = sql`${now}::timestamptz`
  const dueIds = await listDueChecks(tx, { table: dueQueues, network: 'all', now: at, most, cursors })
  if (dueIds.length === 0) return []
  return tx.many(
    OwnedQueue,
    sql`
    select q.webhook_id, q.organisation_id
    from unnest(${dueIds}::text[]) with ordinality as given (due_id, position)
    cross join lateral (select webhook_id, organisation_id from webhook_queues where webhook_id = due_id limit 1) q
    order by given.position`,
  )
}

/** Extends leases; returns the queues that this process still leases. One that somebody has locked is extended with the next call. */
export async function renewQueues(
  db: Queryable,
  lease: DeliveryLease,
  webhookIds: readonly WebhookId[],
): Promise<WebhookId[]> {
  const rows = await db.many(
    QueueRow,
    sql`
    with own as (
      select webhook_id from webhook_queues where webhook_id = any(${anyLength(webhookIds)}) and lease = ${lease.name}),
    free as (
      select webhook_id from webhook_queues where webhook_id = any(${anyLength(webhookIds)}) and lease = ${lease.name}
      order by webhook_id for update skip locked),
    renewed as (
      update webhook_queues q set look_at = ${lease.until} from free where q.webhook_id = free.webhook_id)
    select webhook_id from own`,
  )
  return rows.map(({ webhookId }) => webhookId)
}

/**
 * Releases queues; each becomes due again when its next delivery is, behind those that already wait. Writers of deliveries lock
 * the queue, so that this statement either sees what they write or they see that nobody leases it. Returns those that are still leased,
 * because somebody has locked them.
 */
export function releaseQueues(
  db: Db,
  lease: Pick<DeliveryLease, 'name' | 'now'>,
  webhookIds: readonly WebhookId[],
): Promise<WebhookId[]> {
  return db.tx(
    async (tx) => {
      const own = sql`webhook_id = any(${anyLength(webhookIds)}) and lease = ${lease.name}`
      const free = await tx.many(
        QueueRow,
        sql`select webhook_id from webhook_queues where ${own} order by webhook_id for update skip locked`,
      )
      const freeIds = free.map(({ webhookId }) => webhookId)
      await tx.run(sql`
      update webhook_queues q set lease = null, look_at = case
        when exists (select from webhooks w where w.id = q.webhook_id and w.is_active) then (
          select greatest(min(d.due_at), ${lease.now}) from webhook_deliveries d
          where d.webhook_id = q.webhook_id and d.status = 'pending'
          having min(d.due_at) is not null) end
      where q.webhook_id = any(${anyLength(freeIds)})`)
      if (freeIds.length === webhookIds.length) return []
      const locked = await tx.many(QueueRow, sql`select webhook_id from webhook_queues where ${own}`)
      return locked.map(({ webhookId }) => webhookId)
    },
    { readsInOrder: true },
  )
}

const EndpointRow = z.object({
  id: id('wh'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  url: z.string(),
  failingSince: z.date().nullable(),
  secrets: z.array(z.instanceof(Uint8Array)),
})
export type EndpointRow = z.output<typeof EndpointRow>

/** Returns where and how to deliver now, for the queues that the process still leases. */
export function listEndpoints(
  db: Queryable,
  lease: Pick<DeliveryLease, 'name' | 'now'>,
  webhookIds: readonly WebhookId[],
): Promise<EndpointRow[]> {
  return db.many(
    EndpointRow,
    sql`
    select w.id, w.organisation_id, w.environment, w.url, w.failing_since, array(
      select s.secret from webhook_secrets s
      where s.webhook_id = w.id and (s.retires_at is null or s.retires_at > ${lease.now}) order by s.sequence desc) as secrets
    from webhooks w join webhook_queues q on q.webhook_id = w.id
    where w.id = any(${anyLength(webhookIds)}) and w.is_active and w.deleted_at is null and q.lease = ${lease.name}`,
  )
}

const DueRow = z.object({
  id: id('del'),
  webhookId: id('wh'),
  eventId: id('evt'),
  type: z.string(),
  attempts: z.number(),
  step: z.number(),
  payload: z.string(),
})
export type DueRow = z.output<typeof DueRow>

export interface Wanted {
  readonly webhookId: WebhookId
  /** Deliveries that the process has already read, and that may still be due in the table. */
  readonly inHand: readonly string[]
  /** Number of others to read at least, if there are as many. */
  readonly fresh: number
}

/**
 * Returns the deliveries that are due to several endpoints, oldest first, without those that are being sent. It reads no more of an endpoint's
 * deliveries than it returns, however many are due.
 */
export function listDue(db: Db, wanted: readonly Wanted[], now: Date): Promise<DueRow[]> {
  const webhookIds = wanted.map(({ webhookId }) => webhookId)
  const mosts = wanted.map(({ inHand, fresh }) => inHand.length + fresh)
  const inHand = wanted.flatMap((one) => one.inHand)
  const statement = sql`
    select d.id, d.webhook_id, d.event_id, d.type, d.attempts, d.step, e.payload::text as payload
    from unnest(${anyLength(webhookIds)}, ${anyLength(mosts, sql`integer`)}) as wanted (webhook_id, most)
    cross join lateral (
      select * from webhook_deliveries d
      where d.webhook_id = wanted.webhook_id and d.status = 'pending' and d.due_at <= ${now}
      order by d.due_at limit wanted.most) as d
    join events e on e.id = d.event_id
    where not exists (select 1 from unnest(${anyLength(inHand)}) as known (id) where known.id = d.id)
    order by d.due_at, d.id`
  return db.tx((tx) => tx.many(DueRow, statement), { readsInOrder: true })
}

/** One attempt, as it is stored. */
export interface NewAttempt {
  readonly id: string
  readonly deliveryId: string
  readonly webhookId: WebhookId
  readonly attempt: number
  readonly isSuccess: boolean
  readonly responseStatus: number | null
  readonly responseBody: string | null
  readonly durationMs: number
  readonly error: string | null
  readonly nextAttemptAt: Date | null
  readonly createdAt: Date
  /** The delivery's step in the schedule of retries after this attempt; null if a second attempt followed at once. */
  readonly stepAfter: number | null
}

/** Outcomes of several deliveries, stored together. */
export interface OutcomeBatch {
  readonly attempts: readonly NewAttempt[]
  /** Endpoints that accepted none of their deliveries, and those that accepted one. */
  readonly failing: readonly WebhookId[]
  readonly healthy: readonly WebhookId[]
  readonly now: Date
}

/**
 * Stores a batch of outcomes in one statement. It records since when endpoints fail, and clears that for those that accepted a
 * delivery, unless a request has the webhook locked: outcomes of others do not wait for that request, and the next outcome does it. It stores the attempts, whatever happened to their deliveries meanwhile; and it updates deliveries that were still
 * pending: one that was ended stays ended. A delivery's last attempt gives its state: succeeded, due again, or dead without a next attempt. Webhooks are
 * locked before deliveries, and both in the order of their ids, as everywhere. Pending deliveries are selected by `ended_at`: by status the planner would
 * use the index of all pending ones, which may be many.
 */
export async function storeOutcomes(db: Queryable, { attempts, failing, healthy, now }: OutcomeBatch): Promise<void> {
  const made = (name: keyof NewAttempt, type?: Sql): Sql =>
    anyLength(
      attempts.map((attempt) => attempt[name]),
      type,
    )
  // Times are text, because the driver's conversion of a `Date` to local time is many times slower.
  const times = (name: 'nextAttemptAt' | 'createdAt'): Sql =>
    anyLength(
      attempts.map((one) => one[name]?.toISOString() ?? null),
      sql`timestamptz`,
    )
  const deliveryIds = attempts.map(({ deliveryId }) => deliveryId)
  await db.run(sql`
    with health as (
      update webhooks set failing_since = case when failing_since is null then ${now}::timestamptz end
      where id in (
        select id from webhooks
        where (id = any(${anyLength(healthy)}) and failing_since is not null)
          or (id = any(${anyLength(failing)}) and failing_since is null)
        order by id for no key update skip locked)
      returning 1),
    given as materialized (
      select * from unnest(${made('id')}, ${made('webhookId')}, ${made('deliveryId')}, ${made('attempt', sql`integer`)}, ${made('isSuccess', sql`boolean`)},
        ${made('responseStatus', sql`integer`)}, ${made('responseBody')}, ${made('durationMs', sql`integer`)}, ${made('error')},
        ${times('nextAttemptAt')}, ${times('createdAt')}, ${made('stepAfter', sql`integer`)})
        as given (id, webhook_id, delivery_id, attempt, is_success, response_status, response_body, duration_ms, error,
          next_attempt_at, created_at, step)),
    made as (
      insert into webhook_attempts (id, organisation_id, environment, webhook_id, delivery_id, attempt, status, response_status,
        response_body, duration_ms, error, next_attempt_at, created_at)
      select given.id, w.organisation_id, w.environment, w.id, delivery_id, attempt,
        case when is_success then 'succeeded' else 'failed' end, response_status, response_body, duration_ms, error, next_attempt_at,
        given.created_at
      from given join webhooks w on w.id = given.webhook_id),
    waiting as materialized (
      select id from webhook_deliveries
      where ${idIn(sql`id`, deliveryIds)} and ended_at is null and (select count(*) from health) >= 0
      order by id for no key update)
    update webhook_deliveries d set attempts = given.attempt, step = given.step, due_at = given.next_attempt_at,
      status = case when given.is_success then 'succeeded' when given.next_attempt_at is null then 'dead' else 'pending' end,
      ended_at = case when given.next_attempt_at is null then ${now}::timestamptz end
    from given join waiting on waiting.id = given.delivery_id
    where d.id = waiting.id and given.step is not null`)
}

/** Returns the webhooks that have failed without a success since before the bound. */
export async function listFailingSince(
  db: Queryable,
  webhookIds: readonly WebhookId[],
  before: Date,
): Promise<WebhookId[]> {
  const rows = await db.many(
    QueueRow,
    sql`
    select id as webhook_id from webhooks
    where id = any(${anyLength(webhookIds)}) and is_active and deleted_at is null and failing_since <= ${before}`,
  )
  return rows.map(({ webhookId }) => webhookId)
}
