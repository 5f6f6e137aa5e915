import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Db, type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { firstIdAt, idLagMsMax } from '../../../platform/db/page.ts'
import { type AccountId, type ApiKeyId, type EventId, type Id, id } from '../../../platform/ids.ts'
import type { WebhookId } from '../store.ts'

/** A position in the order of what listeners receive: after that entry of that transaction. */
export const StreamPosition = z.object({ writtenBy: z.string(), id: z.string() })
export type StreamPosition = z.output<typeof StreamPosition>

/** The position before everything. A client that has received nothing yet stores its id. */
export const beginning: StreamPosition = { writtenBy: '0', id: '0' }

/** The beginning of a stream: with what is written from now on, or with what was written after an instant. */
export type Since = 'now' | Date

/** Returns the last entry that a listener does not receive, read at one moment; undefined if it receives everything. */
export function findStart(db: Db, tenant: Tenant, since: Since): Promise<StreamPosition | undefined> {
  const { organisationId, environment } = tenant
  const own = sql`organisation_id = ${organisationId} and environment = ${environment}`
  const statement = sql`
    with bound as materialized (select coalesce(${firstAfter(own, since)}, pg_snapshot_xmin(pg_current_snapshot())) as written_by)
    select written_by::text as written_by, id from (
      (select written_by, id from events
        where ${own} and written_by < (select written_by from bound) order by events.written_by desc, id desc limit 1)
      union all
      (select written_by, id from event_resends
        where ${own} and written_by < (select written_by from bound) order by event_resends.written_by desc, id desc limit 1)
    ) as entry
    order by entry.written_by desc, id desc limit 1`
  return db.tx((tx) => tx.maybeOne(StreamPosition, statement), { readsInOrder: true })
}

/**
 * Selects the first transaction that wrote an event after an instant. An event gets its id, its time and its transaction within a minute, so
 * the search begins where the events of a minute before were written, and does not read what the tenant wrote until then. In a restored database
 * the transactions of another cluster may have greater numbers: the first event after that minute bounds the search too. A tenant without an event
 * before is read from its first one: the event with the least id may have been written by a later transaction than others.
 */
function firstAfter(own: Sql, since: Since): Sql {
  if (since === 'now') return sql`null`
  const least = firstIdAt('evt', since.getTime() - idLagMsMax)
  return sql`(
    select written_by from events
    where ${own} and id >= ${least} and created_at > ${since} and written_by < pg_snapshot_xmin(pg_current_snapshot())
      and written_by >= coalesce((
        select least(before.written_by, (select written_by from events where ${own} and id >= ${least} order by id limit 1))
        from events as before where ${own} and id < ${least} order by id desc limit 1), '0')
    order by written_by, id limit 1)`
}

/**
 * Returns the position of an entry that was sent before; undefined if it does not exist. An entry of a future transaction comes
 * from another cluster through a restored dump: no entry could follow it.
 */
export function findPosition(db: Queryable, tenant: Tenant, entryId: string): Promise<StreamPosition | undefined> {
  const { organisationId, environment } = tenant
  const own = sql`organisation_id = ${organisationId} and environment = ${environment} and id = ${entryId}`
  return db.maybeOne(
    StreamPosition,
    sql`
    select written_by::text as written_by, id from (
      select written_by, id from events where ${own} union all select written_by, id from event_resends where ${own}
    ) as entry
    where written_by < pg_snapshot_xmax(pg_current_snapshot())`,
  )
}

/** A listener's filter and position. */
export interface Following {
  readonly tenant: Tenant
  readonly position: StreamPosition
  /** Undefined for all types. */
  readonly types: readonly string[] | undefined
}

const News = z.object({
  /** Position in the list of requested listeners, from 1. */
  position: z.bigint().transform(Number),
  /** Everything written by an earlier transaction can be read. */
  horizon: z.string(),
  /** No transaction before the read has this number or a later one. */
  begunBefore: z.string(),
  writtenBy: z.string().nullable(),
  id: z.string().nullable(),
  eventId: id('evt').nullable(),
  type: z.string().nullable(),
  /** Whether it is the last entry that the read looked at, and more may follow. */
  isLimit: z.boolean(),
  /** Null for an entry that the listener does not receive, and where there is none. */
  payload: z.string().nullable(),
})

/** Most entries that one read examines for a listener with a type filter, so that entries of other types do not delay other listeners. */
const lookedAtMax = 1_000

/** An entry to send. */
export interface Entry {
  readonly position: StreamPosition
  readonly eventId: EventId
  readonly type: string
  /** JSON as the database stores it: the same bytes that webhooks get. */
  readonly payload: string
}

export interface Page {
  readonly entries: readonly Entry[]
  /** The position at which the next read continues: after the last entry, after the last one that was looked at, or after everything that exists. */
  readonly next: StreamPosition
  /** Whether more may follow; the page itself may be empty. */
  readonly isFull: boolean
  /** Whatever a transaction of this number or a later one writes is newer than the read. */
  readonly begunBefore: bigint
}

/** The end of a page: its most entries, and the bytes of payloads of which its last entry is the first to reach them. */
export interface PageBounds {
  readonly entriesMax: number
  readonly bytesMax: number
}

/**
 * Returns what to send to each of several listeners, in order, up to the bounds for each: in one statement for those of all types, which reads no more
 * than they receive, and in one for the others. It stops at the oldest transaction that is still running: what others have committed since then waits
 * for it, so that nothing can appear before a position that was read.
 */
export async function listPages(
  db: Queryable,
  following: readonly Following[],
  bounds: PageBounds,
): Promise<readonly Page[]> {
  const pages = new Map<Following, Page>()
  for (const [isFiltered, own] of Map.groupBy(following, ({ types }) => types !== undefined)) {
    const lookedAt = isFiltered ? lookedAtMax : bounds.entriesMax
    const rows = await db.many(News, newsOf(own, { ...bounds, lookedAt }))
    const grouped = Map.groupBy(rows, ({ position }) => position)
    for (const [index, one] of own.entries()) pages.set(one, pageFrom(grouped.get(index + 1) ?? [], bounds))
  }
  return following.flatMap((one) => pages.get(one) ?? [])
}

function newsOf(
  following: readonly Following[],
  { entriesMax, bytesMax, lookedAt }: PageBounds & { readonly lookedAt: number },
): Sql {
  return sql`
    with horizon as (select pg_snapshot_xmin(pg_current_snapshot()) as written_by, pg_snapshot_xmax(pg_current_snapshot()) as begun_before)
    select f.position, horizon.written_by::text as horizon, horizon.begun_before::text as begun_before, entry.written_by::text as written_by, entry.id, entry.event_id, entry.type,
      coalesce(entry.looked_at = ${lookedAt}, false) as is_limit,
      case when entry.bytes_before < ${bytesMax} then entry.payload end as payload
    from unnest(${following.map(({ tenant }) => tenant.organisationId)}::text[], ${following.map(({ tenant }) => tenant.environment)}::text[],
      ${following.map(({ position }) => position.writtenBy)}::text[]::xid8[], ${following.map(({ position }) => position.id)}::text[],
      ${following.map(({ types }) => types?.join() ?? null)}::text[])
      with ordinality as f (organisation_id, environment, written_by, id, types, position)
    cross join horizon
    left join lateral (
      select sized.*, coalesce(sum(octet_length(payload)) over (position rows between unbounded preceding and 1 preceding), 0) as bytes_before
      from (
        select written_by, id, event_id, type, looked_at, case when is_received and received <= ${entriesMax} then payload::text end as payload
        from (
          select looked.*, row_number() over position as looked_at, f.types is null or type = any(string_to_array(f.types, ',')) as is_received,
            count(*) filter (where f.types is null or type = any(string_to_array(f.types, ','))) over position as received
          from (
            (select e.written_by, e.id, e.id as event_id, e.type, e.payload from events e
              where e.organisation_id = f.organisation_id and e.environment = f.environment
                and (e.written_by, e.id) > (f.written_by, f.id) and e.written_by < horizon.written_by
              order by e.written_by, e.id limit ${lookedAt})
            union all
            (select r.written_by, r.id, r.event_id, e.type, e.payload from event_resends r join events e on e.id = r.event_id
              where r.organisation_id = f.organisation_id and r.environment = f.environment
                and (r.written_by, r.id) > (f.written_by, f.id) and r.written_by < horizon.written_by
              order by r.written_by, r.id limit ${lookedAt})
            order by written_by, id limit ${lookedAt}
          ) as looked
          window position as (order by written_by, id)
        ) as received
      ) as sized
      window position as (order by written_by, id)
    ) as entry on (entry.payload is not null and entry.bytes_before < ${bytesMax}) or entry.looked_at = ${lookedAt}
    order by f.position, entry.written_by, entry.id`
}

function pageFrom(rows: readonly z.output<typeof News>[], { entriesMax, bytesMax }: PageBounds): Page {
  const entries = rows.flatMap(({ writtenBy, id, eventId, type, payload }) =>
    writtenBy === null || id === null || eventId === null || type === null || payload === null
      ? []
      : [{ position: { writtenBy, id }, eventId, type, payload }],
  )
  const horizon = rows[0]?.horizon ?? beginning.writtenBy
  const bytes = entries.reduce((sum, { payload }) => sum + Buffer.byteLength(payload), 0)
  const last = entries.length === entriesMax || bytes >= bytesMax ? entries.at(-1)?.position : lastLookedAt(rows)
  const begunBefore = BigInt(rows[0]?.begunBefore ?? horizon)
  return { entries, isFull: last !== undefined, next: last ?? { writtenBy: horizon, id: '' }, begunBefore }
}

/** The last entry that a read examined; undefined if the read stayed below `lookedAtMax`. */
function lastLookedAt(rows: readonly z.output<typeof News>[]): StreamPosition | undefined {
  const last = rows.at(-1)
  if (last === undefined || last.writtenBy === null || last.id === null || !last.isLimit) return undefined
  return { writtenBy: last.writtenBy, id: last.id }
}

const SecretRow = z.object({ secret: z.instanceof(Uint8Array) })

/** Stores a secret for the listeners of a key; false if it has one. */
export async function insertSecretOnce(
  tx: Tx,
  tenant: Tenant,
  secret: { readonly apiKeyId: ApiKeyId | AccountId; readonly sealed: Uint8Array; readonly createdAt: Date },
): Promise<boolean> {
  const inserted = await tx.run(sql`
    insert into listener_secrets (api_key_id, organisation_id, environment, secret, created_at)
    values (${secret.apiKeyId}, ${tenant.organisationId}, ${tenant.environment}, ${secret.sealed}, ${secret.createdAt})
    on conflict do nothing`)
  return inserted === 1
}

export async function findSecret(
  db: Queryable,
  tenant: Tenant,
  apiKeyId: ApiKeyId | AccountId,
): Promise<Uint8Array | undefined> {
  const row = await db.maybeOne(
    SecretRow,
    sql`
    select secret from listener_secrets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and api_key_id = ${apiKeyId}`,
  )
  return row?.secret
}

/** Makes listeners receive an event once more. */
export async function insertResend(
  tx: Tx,
  tenant: Tenant,
  resend: { readonly id: Id<'del'>; readonly eventId: EventId; readonly createdAt: Date },
): Promise<void> {
  await tx.run(sql`
    insert into event_resends (id, organisation_id, environment, event_id, created_at)
    values (${resend.id}, ${tenant.organisationId}, ${tenant.environment}, ${resend.eventId}, ${resend.createdAt})`)
}

/** Returns the active webhooks that subscribe to a type. */
export async function listSubscribed(db: Queryable, tenant: Tenant, type: string): Promise<WebhookId[]> {
  const rows = await db.many(
    z.object({ id: id('wh') }),
    sql`
    select id from webhooks
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and deleted_at is null and is_active
      and (events @> array[${type}::text] or events @> array['*'])
    order by id`,
  )
  return rows.map((row) => row.id)
}
