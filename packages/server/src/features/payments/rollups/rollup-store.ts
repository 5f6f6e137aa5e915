import { z } from 'zod'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Db, isSerializationFailure, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { conjunction, idLagMsMax, type Period } from '../../../platform/db/page.ts'

/** Tenants whose day is counted by one statement, so that none reads too many rows. */
const dayTenantsMax = 20
/**
 * Most bytes of the routes that keep rows of their own, of a tenant in a quarter of an hour and in a day; a route counts `routeBytes` more than it
 * has. Without a bound, a payer who requests a new path each time would make as many rows as payments.
 */
const ownRouteBytesMax = { quarter: 16_384, day: 65_536 }
const routeBytes = 100

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
    await countDays(tx, { sealedUntil, until })
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

/** The quarter of an hour to count next, so that one statement counts no more; those before the first payment are left out. */
function nextStep(
  tx: Tx,
  { sealedUntil, markedUntil }: { readonly sealedUntil: Date; readonly markedUntil: Date },
): Promise<Step> {
  return tx.one(
    Step,
    sql`
    select first, least(${markedUntil}::timestamptz, first + ${quarterMs}::float8 * interval '1 ms', date_trunc('day', first, 'UTC') + interval '1 day') as until
    from (
      select least(${markedUntil}::timestamptz, greatest(${sealedUntil}::timestamptz, coalesce(date_bin('15 minutes', (
        select created_at - ${lag} - ${lag} from payments where id >= first_id_at('pay', ${sealedUntil}::timestamptz - ${lag}) order by id limit 1
      ), 'epoch'), 'infinity'))) as first
    ) as step`,
  )
}

/** A UTC day of a tenant. */
const TenantDay = z.object({ organisationId: z.string(), environment: z.string(), day: z.date() })
type TenantDay = z.output<typeof TenantDay>

/**
 * Counts quarters again in which payments changed, a day of a tenant at a time. A day that fails delays no other: the first error is thrown after
 * all days were tried.
 */
export async function recountChanged(db: Db, stopping?: AbortSignal): Promise<void> {
  const errors: unknown[] = []
  let changed = await findChangedDay(db)
  while (changed !== undefined && stopping?.aborted !== true) {
    try {
      if (!(await recountDay(db, changed))) break
    } catch (error) {
      errors.push(error)
    }
    changed = await findChangedDay(db, changed)
  }
  if (errors.length > 0) throw errors[0]
}

/** The first day with a changed quarter that was counted, after a given day of a tenant. */
function findChangedDay(db: Db, after?: TenantDay): Promise<TenantDay | undefined> {
  const from =
    after === undefined
      ? sql`true`
      : sql`(organisation_id, environment, at) >= (${after.organisationId}, ${after.environment}, ${after.day}::timestamptz + interval '1 day')`
  return db.maybeOne(
    TenantDay,
    sql`
    select organisation_id, environment, date_trunc('day', at, 'UTC') as day from payment_rollup_changes
    where at < (select sealed_until from payment_rollup_state) and ${from}
    order by organisation_id, environment, at limit 1`,
  )
}

const Quarter = z.object({ at: z.date() })

function recountDay(db: Db, { organisationId, environment, day }: TenantDay): Promise<boolean> {
  return inSnapshot(db, async (tx, { sealedUntil }) => {
    const own = sql`organisation_id = ${organisationId} and environment = ${environment}`
    const end = sql`${day}::timestamptz + interval '1 day'`
    const quarters = await tx.many(
      Quarter,
      sql`
      with deleted as (
        delete from payment_rollup_changes where ${own} and at >= ${day} and at < ${end} and at < ${sealedUntil} returning at
      )
      select distinct at from deleted`,
    )
    for (const { at } of quarters) {
      await tx.run(sql`delete from payment_rollups where ${own} and span = 15 and at = ${at}`)
      await tx.run(sql`delete from settlement_times where ${own} and at = ${at}`)
      await countPayments(tx, { first: at, until: instantOf(at.getTime() + quarterMs) }, own)
    }
    await tx.run(sql`delete from payment_rollups where ${own} and span = 1440 and at = ${day}`)
    await writeDays(tx, sql`${own} and at >= ${day} and at < ${end} and ${end} <= ${sealedUntil}`)
    return true
  })
}

const lag = sql`${idLagMsMax}::float8 * interval '1 ms'`
const dimensions = sql`protocol, wallet_id, api_key_id, token, decimals, status, failure_reason`

/** Writes the rollups of these quarters: for all tenants by the payments' ids, for one by those of its logs. */
async function countPayments(tx: Tx, { first, until }: Step, own?: Sql): Promise<void> {
  const made = (id: Sql, prefix: string) =>
    sql`${id} >= first_id_at(${prefix}, ${first}::timestamptz - ${lag}) and ${id} < first_id_at(${prefix}, ${until}::timestamptz + ${lag})`
  // The ids of payments leave out the partitions of other months; those of logs have the index of a tenant.
  const ofTenant = own === undefined ? sql`true` : sql`${own} and ${made(sql`log_id`, 'plog')}`
  const counted = sql`
    payments where ${ofTenant} and ${made(sql`id`, 'pay')} and created_at >= ${first} and created_at < ${until}`
  const quarter = sql`date_bin('15 minutes', created_at, 'epoch')`
  await writeRollups(
    tx,
    { span: 15, bytesMax: ownRouteBytesMax.quarter },
    sql`
    select organisation_id, environment, ${quarter} as at, route, false as other_routes, ${dimensions}, count(*) as payments, sum(raw_amount) as raw_amount
    from ${counted} group by organisation_id, environment, ${quarter}, route, ${dimensions}`,
  )
  await tx.run(sql`
    insert into settlement_times (organisation_id, environment, at, ms, payments)
    select organisation_id, environment, ${quarter}, settlement_ms(created_at, settled_at), count(*) from ${counted} and ${settledOnChain}
    group by organisation_id, environment, ${quarter}, settlement_ms(created_at, settled_at)`)
}

const Tenants = z.object({ organisationId: z.string(), environment: z.string() })

/** Writes the rollups of the days that end once quarters are counted until a time, of a few tenants at a time. */
async function countDays(tx: Tx, { sealedUntil, until }: { readonly sealedUntil: Date; readonly until: Date }) {
  const quarters = sql`at >= date_trunc('day', ${sealedUntil}::timestamptz, 'UTC') and at < date_trunc('day', ${until}::timestamptz, 'UTC')`
  const tenants = await tx.many(
    Tenants,
    sql`select distinct organisation_id, environment from payment_rollups where span = 15 and ${quarters} order by organisation_id, environment`,
  )
  for (let first = 0; first < tenants.length; first += dayTenantsMax) {
    const some = tenants.slice(first, first + dayTenantsMax)
    const ids = sql`unnest(${some.map((one) => one.organisationId)}::text[], ${some.map((one) => one.environment)}::text[])`
    await writeDays(tx, sql`${quarters} and (organisation_id, environment) in (select * from ${ids})`)
  }
}

/** Writes the rollups of days, from those of their quarters. */
function writeDays(tx: Tx, quarters: Sql): Promise<void> {
  const day = sql`date_trunc('day', at, 'UTC')`
  return writeRollups(
    tx,
    { span: 1440, bytesMax: ownRouteBytesMax.day },
    sql`
    select organisation_id, environment, ${day} as at, route, other_routes, ${dimensions}, sum(payments) as payments, sum(raw_amount) as raw_amount
    from payment_rollups where span = 15 and ${quarters} group by organisation_id, environment, ${day}, route, other_routes, ${dimensions}`,
  )
}

/** Writes counts as rollups. The most paid routes of a tenant and period keep their own rows, and the other ones share rows. */
async function writeRollups(
  tx: Tx,
  { span, bytesMax }: { readonly span: number; readonly bytesMax: number },
  counts: Sql,
): Promise<void> {
  await tx.run(sql`
    with counts as materialized (${counts}), ordered as (
      select organisation_id, environment, at, route, sum(${routeBytes}::int + octet_length(route)) over (
        partition by organisation_id, environment, at order by sum(payments) desc, route collate "C" rows unbounded preceding
      ) as bytes
      from counts where route is not null group by organisation_id, environment, at, route
    ), folded as (
      select counts.*, own.route as own_route, other_routes or (counts.route is not null and own.route is null) as is_other
      from counts left join (select * from ordered where bytes <= ${bytesMax}) as own using (organisation_id, environment, at, route)
    )
    insert into payment_rollups (organisation_id, environment, span, at, route, other_routes, ${dimensions}, payments, raw_amount)
    select organisation_id, environment, ${span}, at, own_route, is_other, ${dimensions}, sum(payments), sum(raw_amount)
    from folded group by organisation_id, environment, at, own_route, is_other, ${dimensions}`)
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
 * changed after they were counted are read from their payments. `route` is null too for payments of routes without a rollup of their own; with
 * a filter by route, these are read from their payments, as long as they are not archived.
 */
export function countsOf(tenant: Tenant, period: Period, grain: Grain, filters: RollupFilters = {}): Sql {
  const own = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
  const { route } = filters
  const ofRoute = route === undefined ? sql`true` : sql`route = ${route}`
  const matching = conjunction(
    (
      [
        [sql`protocol`, filters.protocol],
        [sql`wallet_id`, filters.walletId],
        [sql`api_key_id`, filters.apiKeyId],
      ] as const
    ).flatMap(([column, value]) => (value === undefined ? [] : [sql`${column} = ${value}`])),
  )
  const columns = sql`route, protocol, token, decimals, status, failure_reason`
  return sql`(
    ${partsOf(tenant, period, grain, route === undefined ? undefined : { route, matching })}
    select at, ${columns}, payments, raw_amount from ranges cross join lateral (
      select payment_rollups.span, at, ${columns}, payments, raw_amount from payment_rollups
      where ${own} and span = ranges.span and at >= ranges.first and at < ranges.until and ${ofRoute} and ${matching} offset 0
    ) as rolled where not exists (select from excluded where excluded.span = rolled.span and excluded.at = rolled.at)
    union all
    select single.* from direct cross join lateral (
      select created_at as at, ${columns}, 1::bigint as payments, raw_amount from payments where ${own} and ${inDirect} and ${ofRoute} and ${matching} offset 0
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
// Payments and their logs have the same times in their ids. The condition on the id leaves out the partitions of all other months.
const inDirect = sql`log_id >= first_id_at('plog', direct.first - ${lag}) and log_id < first_id_at('plog', direct.until + ${lag})
  and id >= first_id_at('pay', direct.first - ${lag}) and id < first_id_at('pay', direct.until + ${lag})
  and created_at >= direct.first and created_at < direct.until`

/** Divides a period into ranges of rollups, and periods of which the payments are read. */
function partsOf(
  tenant: Tenant,
  period: Period,
  grain: Grain,
  only?: { readonly route: string; readonly matching: Sql },
): Sql {
  const from = Math.max(0, period.from?.getTime() ?? 0)
  const to = Math.max(from, period.to?.getTime() ?? never)
  const [first, last] =
    grain === 'none' ? [to, to] : [Math.ceil(from / quarterMs) * quarterMs, Math.floor(to / quarterMs) * quarterMs]
  const firstDay = grain === 'day' ? Math.ceil(from / dayMs) * dayMs : never
  const own = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
  // Quarters in which the route has no row of its own, and days in which its row may be too small.
  const [folded, incomplete] =
    only === undefined
      ? [sql`select 'epoch'::timestamptz as at where false`, sql`select 'epoch'::timestamptz as at where false`]
      : [
          sql`
      select at from payment_rollups as other, cut
      where ${own} and span = 15 and other_routes and at >= ${at(first)} and at < until and ${only.matching} and not exists (
        select from payment_rollups as named where ${own} and span = 15 and named.at = other.at and route = ${only.route})`,
          sql`
      select at from payment_rollups, cut where ${own} and span = 1440 and other_routes and at >= ${at(firstDay)} and at < days_until`,
        ]
  return sql`
    with cut as materialized (
      select until, greatest(${at(firstDay)}, date_trunc('day', until, 'UTC')) as days_until
      from (select least(${at(last)}, greatest(sealed_until, ${at(first)})) as until from payment_rollup_state) as sealed
    ), dirty as materialized (
      select changed.at from payment_rollup_changes as changed, cut where ${own} and changed.at >= ${at(first)} and changed.at < until
      union ${folded}
    ), incomplete as materialized (
      ${incomplete}
    ), excluded as materialized (
      select 15::smallint as span, at from dirty union all select 1440, date_trunc('day', at, 'UTC') from dirty union all select 1440, at from incomplete
    ), ranges as materialized (
      select 1440 as span, ${at(firstDay)} as first, days_until as until from cut
      union all select 15, ${at(first)}, least(${at(firstDay)}, until) from cut
      union all select 15, days_until, until from cut
      union all select 15, day, day + interval '1 day' from (
        select distinct at as day from excluded where span = 1440
      ) as by_quarters, cut where day >= ${at(firstDay)} and day < days_until
    ), direct as materialized (
      select ${at(from)} as first, ${at(Math.min(first, to))} as until
      union all select greatest(${at(first)}, until), ${at(to)} from cut
      union all select at, at + interval '15 minutes' from dirty
    )`
}

function at(unixMs: number): Sql {
  return sql`${instantOf(unixMs)}::timestamptz`
}
