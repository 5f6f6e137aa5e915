import { z } from 'zod'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Db, isSerializationFailure, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { conjunction, idLagMsMax, type Period } from '../../../platform/db/page.ts'

const stepMs = 3_600_000
const recountsMax = 50

/**
 * Marks the quarters that ended more than 65 minutes ago. These payments are more than an hour old, so every
 * transaction that changes one from now on records that change in a row.
 */
export async function markQuarters(db: Db): Promise<void> {
  await db.run(sql`
    update payment_rollup_state set marked_until = date_bin('15 minutes', clock_timestamp() - interval '65 minutes', 'epoch'),
      marked_xid = pg_current_xact_id()
    where marked_until <= sealed_until and marked_until < date_bin('15 minutes', clock_timestamp() - interval '65 minutes', 'epoch')`)
}

const State = z.object({ sealedUntil: z.date(), markedUntil: z.date(), markedXid: z.string() })
type State = z.output<typeof State>

/** Counts the next marked quarters, at most an hour. Returns whether it did; not while a transaction from before the mark is open. */
export async function countNextQuarter(db: Db): Promise<boolean> {
  const ready = await findReadyMark(db)
  if (ready === undefined) return false
  return inSnapshot(db, async (tx, { sealedUntil, markedUntil, markedXid }) => {
    if (markedXid !== ready.markedXid || sealedUntil >= markedUntil) return false
    const { first, until } = await nextStep(tx, { sealedUntil, markedUntil })
    if (first < until) await countPayments(tx, { first, until })
    await countDays(
      tx,
      sql`at >= date_trunc('day', ${sealedUntil}::timestamptz, 'UTC') and at < date_trunc('day', ${until}::timestamptz, 'UTC')`,
    )
    await tx.run(sql`update payment_rollup_state set sealed_until = ${until}`)
    return true
  })
}

/**
 * The mark with quarters to count, once every transaction that wrote payments before it has ended. Must run before the snapshot that counts:
 * what has ended here is visible there. Transactions of other databases of the server have older ids too, but hold no lock on these payments.
 */
function findReadyMark(db: Db) {
  return db.maybeOne(
    State.pick({ markedXid: true }),
    sql`
    with locks as materialized (
      select locktype, relation, mode, virtualtransaction, transactionid from pg_locks
      where database = (select oid from pg_database where datname = current_database()) or locktype = 'transactionid'
    )
    select marked_xid::text as marked_xid from payment_rollup_state
    where marked_until > sealed_until and (marked_xid < pg_snapshot_xmin(pg_current_snapshot()) or not exists (
      select from locks as writing join locks as begun using (virtualtransaction)
      where writing.locktype = 'relation' and writing.relation = 'payments'::regclass and writing.mode = 'RowExclusiveLock'
        and begun.locktype = 'transactionid' and begun.mode = 'ExclusiveLock' and age(begun.transactionid) > age(marked_xid::xid)
    ))`,
  )
}

const Step = z.object({ first: z.date(), until: z.date() })
type Step = z.output<typeof Step>

/** The quarters to count next, all of one day; those before the first payment are left out. */
function nextStep(
  tx: Tx,
  { sealedUntil, markedUntil }: { readonly sealedUntil: Date; readonly markedUntil: Date },
): Promise<Step> {
  return tx.one(
    Step,
    sql`
    select first, least(${markedUntil}::timestamptz, first + ${stepMs}::float8 * interval '1 ms', date_trunc('day', first, 'UTC') + interval '1 day') as until
    from (
      select least(${markedUntil}::timestamptz, greatest(${sealedUntil}::timestamptz, coalesce(date_bin('15 minutes', (
        select created_at - ${lag} - ${lag} from payments where id >= first_id_at('pay', ${sealedUntil}::timestamptz - ${lag}) order by id limit 1
      ), 'epoch'), 'infinity'))) as first
    ) as step`,
  )
}

const Changed = z.object({ organisationId: z.string(), environment: z.string(), at: z.date() })

/** Counts quarters again in which payments changed. Returns whether there may be more. */
export function recountChanged(db: Db): Promise<boolean> {
  return inSnapshot(db, async (tx, { sealedUntil }) => {
    const quarters = await tx.many(
      Changed,
      sql`
      with picked as (
        select distinct organisation_id, environment, at from payment_rollup_changes where at < ${sealedUntil} limit ${recountsMax}
      ), deleted as (
        delete from payment_rollup_changes as changed using picked
        where changed.organisation_id = picked.organisation_id and changed.environment = picked.environment and changed.at = picked.at
      )
      select * from picked`,
    )
    for (const quarter of quarters) await recount(tx, quarter, sealedUntil)
    return quarters.length === recountsMax
  })
}

async function recount(tx: Tx, { organisationId, environment, at }: z.output<typeof Changed>, sealedUntil: Date) {
  const own = sql`organisation_id = ${organisationId} and environment = ${environment}`
  await tx.run(sql`delete from payment_rollups where ${own} and span = 15 and at = ${at}`)
  await tx.run(sql`delete from settlement_times where ${own} and at = ${at}`)
  const until = instantOf(at.getTime() + quarterMs)
  await countPayments(tx, { first: at, until }, own)
  const day = sql`date_trunc('day', ${at}::timestamptz, 'UTC')`
  await tx.run(sql`delete from payment_rollups where ${own} and span = 1440 and at = ${day}`)
  await countDays(
    tx,
    sql`${own} and at >= ${day} and at < ${day} + interval '1 day' and ${day} + interval '1 day' <= ${sealedUntil}`,
  )
}

const lag = sql`${idLagMsMax}::float8 * interval '1 ms'`
const dimensions = sql`route, protocol, wallet_id, api_key_id, token, decimals, status, failure_reason`

/** Writes the rollups of these quarters: for all tenants by the payments' ids, for one by those of its logs. */
async function countPayments(tx: Tx, { first, until }: Step, own?: Sql): Promise<void> {
  const [id, prefix] = own === undefined ? [sql`id`, 'pay'] : [sql`log_id`, 'plog']
  const counted = sql`
    payments where ${own ?? sql`true`} and ${id} >= first_id_at(${prefix}, ${first}::timestamptz - ${lag})
      and ${id} < first_id_at(${prefix}, ${until}::timestamptz + ${lag}) and created_at >= ${first} and created_at < ${until}`
  const quarter = sql`date_bin('15 minutes', created_at, 'epoch')`
  await tx.run(sql`
    insert into payment_rollups (organisation_id, environment, span, at, ${dimensions}, payments, raw_amount)
    select organisation_id, environment, 15, ${quarter}, ${dimensions}, count(*), sum(raw_amount) from ${counted}
    group by organisation_id, environment, ${quarter}, ${dimensions}`)
  await tx.run(sql`
    insert into settlement_times (organisation_id, environment, at, ms, payments)
    select organisation_id, environment, ${quarter}, settlement_ms(created_at, settled_at), count(*) from ${counted} and ${settledOnChain}
    group by organisation_id, environment, ${quarter}, settlement_ms(created_at, settled_at)`)
}

/** Writes the rollups of days, from those of their quarters. */
async function countDays(tx: Tx, quarters: Sql): Promise<void> {
  const day = sql`date_trunc('day', at, 'UTC')`
  await tx.run(sql`
    insert into payment_rollups (organisation_id, environment, span, at, ${dimensions}, payments, raw_amount)
    select organisation_id, environment, 1440, ${day}, ${dimensions}, sum(payments), sum(raw_amount) from payment_rollups
    where span = 15 and ${quarters} group by organisation_id, environment, ${day}, ${dimensions}`)
}

/**
 * Runs the work in one snapshot, by one process at a time. Returns false if another process has changed the state
 * since: that one does the work.
 */
async function inSnapshot(db: Db, run: (tx: Tx, state: State) => Promise<boolean>): Promise<boolean> {
  try {
    return await db.tx(async (tx) => {
      await tx.run(sql`set transaction isolation level repeatable read`)
      const state = await tx.one(
        State,
        sql`select sealed_until, marked_until, marked_xid::text as marked_xid from payment_rollup_state for update`,
      )
      return run(tx, state)
    })
  } catch (error) {
    if (isSerializationFailure(error)) return false
    throw error
  }
}

/** Only the payments with these values. */
export interface RollupFilters {
  readonly route?: string | undefined
  readonly protocol?: string | undefined
  readonly walletId?: string | undefined
  readonly apiKeyId?: string | undefined
}

/** The largest rollups that may be read; `none` reads each payment. */
export type Grain = 'day' | 'quarter' | 'none'

export const quarterMs = 900_000
const dayMs = 86_400_000
const never = Date.UTC(9999, 0)

/**
 * Selects the counts of a tenant's payments as `at` (when a rollup or payment begins), `route`, `protocol`, `token`, `decimals`, `status`,
 * `failure_reason`, `payments` and `raw_amount`. Exact at the statement's instant: quarters that have no rollup, that are not whole, or that
 * changed after they were counted are read from their payments.
 */
export function countsOf(tenant: Tenant, period: Period, grain: Grain, filters: RollupFilters = {}): Sql {
  const own = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
  const matching = conjunction(
    (
      [
        [sql`route`, filters.route],
        [sql`protocol`, filters.protocol],
        [sql`wallet_id`, filters.walletId],
        [sql`api_key_id`, filters.apiKeyId],
      ] as const
    ).flatMap(([column, value]) => (value === undefined ? [] : [sql`${column} = ${value}`])),
  )
  const columns = sql`route, protocol, token, decimals, status, failure_reason`
  return sql`(
    ${partsOf(tenant, period, grain)}
    select rolled.* from ranges cross join lateral (
      select at, ${columns}, payments, raw_amount from payment_rollups
      where ${own} and span = ranges.span and at >= ranges.first and at < ranges.until and ${matching}
        and not exists (select from dirty where dirty.at >= payment_rollups.at and dirty.at < payment_rollups.at + ranges.span * interval '1 minute')
      offset 0
    ) as rolled
    union all
    select single.* from direct cross join lateral (
      select created_at as at, ${columns}, 1::bigint as payments, raw_amount from payments where ${own} and ${inDirect} and ${matching} offset 0
    ) as single
  )`
}

/** Selects how many payments took how many rounded milliseconds to settle, as `at`, `ms` and `payments`. Stubs settle on no chain and do not count. */
export function settlementTimesOf(tenant: Tenant, period: Period, grain: Exclude<Grain, 'day'>): Sql {
  const own = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
  return sql`(
    ${partsOf(tenant, period, grain)}
    select rolled.* from ranges cross join lateral (
      select at, ms, payments from settlement_times
      where ${own} and at >= ranges.first and at < ranges.until and not exists (select from dirty where dirty.at = settlement_times.at) offset 0
    ) as rolled where ranges.span = 15
    union all
    select single.* from direct cross join lateral (
      select created_at as at, settlement_ms(created_at, settled_at) as ms, 1::bigint as payments from payments
      where ${own} and ${inDirect} and ${settledOnChain} offset 0
    ) as single
  )`
}

/** A payment whose time to settle counts. */
export const settledOnChain = sql`status = 'settled' and tx_hash is not null and settled_at is not null`
const inDirect = sql`log_id >= first_id_at('plog', direct.first - ${lag}) and log_id < first_id_at('plog', direct.until + ${lag})
  and created_at >= direct.first and created_at < direct.until`

/** Divides a period into ranges of rollups, and periods of which the payments are read. */
function partsOf(tenant: Tenant, period: Period, grain: Grain): Sql {
  const from = Math.max(0, period.from?.getTime() ?? 0)
  const to = Math.max(from, period.to?.getTime() ?? never)
  const [first, last] =
    grain === 'none' ? [to, to] : [Math.ceil(from / quarterMs) * quarterMs, Math.floor(to / quarterMs) * quarterMs]
  const firstDay = grain === 'day' ? Math.ceil(from / dayMs) * dayMs : never
  return sql`
    with cut as materialized (
      select until, greatest(${at(firstDay)}, date_trunc('day', until, 'UTC')) as days_until
      from (select least(${at(last)}, greatest(sealed_until, ${at(first)})) as until from payment_rollup_state) as sealed
    ), dirty as materialized (
      select distinct changed.at from payment_rollup_changes as changed, cut
      where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and changed.at >= ${at(first)} and changed.at < until
    ), ranges as materialized (
      select 1440 as span, ${at(firstDay)} as first, days_until as until from cut
      union all select 15, ${at(first)}, least(${at(firstDay)}, until) from cut
      union all select 15, days_until, until from cut
      union all select distinct 15, date_trunc('day', dirty.at, 'UTC'), date_trunc('day', dirty.at, 'UTC') + interval '1 day' from dirty, cut
        where dirty.at >= ${at(firstDay)} and dirty.at < days_until
    ), direct as materialized (
      select ${at(from)} as first, ${at(Math.min(first, to))} as until
      union all select greatest(${at(first)}, until), ${at(to)} from cut
      union all select at, at + interval '15 minutes' from dirty
    )`
}

function at(unixMs: number): Sql {
  return sql`${instantOf(unixMs)}::timestamptz`
}
