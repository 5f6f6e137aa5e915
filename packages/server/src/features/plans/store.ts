import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { StoredBigInt } from '../../platform/db/columns.ts'
import { type Db, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import type { LastWrite } from '../../platform/db/last-writes.ts'
import { id, type OrganisationId } from '../../platform/ids.ts'
import { freePlan, type Plan, PlanName, plans } from './plans.ts'
import type { Sharers, UsageKind } from './quotas.ts'

const Used = z.object({ used: z.bigint() })
const PlanRow = z.object({ plan: PlanName })
const KindUsed = Used.extend({ kind: z.string() })

/** Returns the organisation's present plan. */
export async function planOf(db: Queryable, organisationId: OrganisationId): Promise<Plan> {
  const row = await db.one(PlanRow, sql`select plan from organisations where id = ${organisationId}`)
  return plans[row.plan]
}

/**
 * A condition: whether an organisation counts for its account. A deleted one does for 31 days, so that whoever deletes and makes organisations gains
 * nothing. `organisation` is the name of the table.
 */
export function isCounted(organisation: Sql): Sql {
  return sql`coalesce(${isRecent(sql`${organisation}.deleted_at`)}, true)`
}

/** A condition: whether the time is less than 31 days ago, so that it is in this month or the last days of the previous one. */
function isRecent(time: Sql): Sql {
  return sql`${time} > now() - interval '31 days'`
}

/** Returns the name of the lock under which the payments of a tenant are recorded. */
export function paymentsLockName({ organisationId, environment }: Tenant): string {
  return `payments:${organisationId}/${environment}`
}

/**
 * Selects the ids of the organisations that share this one's quotas: itself, and on the free plan all of its account's. `organisationId` is an id, or an
 * SQL expression for it.
 */
export function sharersOf(organisationId: OrganisationId | Sql): Sql {
  return sql`
    select ${organisationId}::text as id union
    select other.id from organisations as own join organisations as other on other.quota_account_id = own.quota_account_id
    where own.id = ${organisationId} and own.plan = ${freePlan} and other.plan = ${freePlan} and ${isCounted(sql`other`)}`
}

/**
 * Selects the ids of the organisations whose use counts toward this one's quotas: those that share them, and on the free plan those that shared them less than
 * 31 days ago, before another account owned them. The quotas of those do not depend on this one, and nothing of theirs is released for it.
 */
export function countedOf(organisationId: OrganisationId | Sql): Sql {
  return sql`
    ${sharersOf(organisationId)} union
    select former.organisation_id from organisations as own
    join former_quota_accounts as former on former.account_id = own.quota_account_id and ${isRecent(sql`former.moved_at`)}
    join organisations as other on other.id = former.organisation_id
    where own.id = ${organisationId} and own.plan = ${freePlan} and other.plan = ${freePlan} and ${isCounted(sql`other`)}`
}

/** Returns the organisations whose use counts toward this one's quotas. */
export async function sharersWith(db: Queryable, { organisationId, environment }: Tenant): Promise<Sharers> {
  const rows = await db.many(z.object({ id: id('org') }), countedOf(organisationId))
  return { organisationIds: rows.map((row) => row.id), environment }
}

/**
 * Selects the owner to which an organisation's share of a process's resources counts: on the free plan its account, so that an account with several
 * organisations has one share; otherwise the organisation itself. `organisationId` is an SQL expression for the organisation's id.
 */
export function shareOwnerSql(organisationId: Sql): Sql {
  return sql`(
    select case when owned.plan = ${freePlan} then coalesce(owned.quota_account_id, owned.id) else owned.id end
    from organisations as owned where owned.id = ${organisationId})`
}

/** Returns the name of the lock under which organisations that share a quota count; no row where the organisation shares none. */
export function sharedLockName({ organisationId, environment }: Tenant, kind: UsageKind): Sql {
  return sql`
    select 'quota:' || quota_account_id || '/' || ${environment}::text || '/' || ${kind}::text as name
    from organisations where id = ${organisationId} and plan = ${freePlan} and quota_account_id is not null`
}

/**
 * Locks the counter until the transaction ends and returns what counts toward the quota, so that parallel writers each see what the
 * previous one wrote. A writer locks it before the rows that it counts. Counters of organisations that share the quota are locked too, all
 * of one kind before the next kind, in the order of the organisations.
 */
export async function lockCounter(tx: Tx, tenant: Tenant, kind: UsageKind, period: string): Promise<number> {
  const shared = await tx.many(
    z.object({}),
    sql`select pg_advisory_xact_lock(hashtextextended(name, 0))::text from (${sharedLockName(tenant, kind)}) as named`,
  )
  return shared.length === 0 ? lockOwn(tx, tenant, kind, period) : lockShared(tx, tenant, kind, period)
}

async function lockShared(tx: Tx, tenant: Tenant, kind: UsageKind, period: string): Promise<number> {
  await ensureRow(tx, tenant, kind, period)
  const rows = await tx.many(
    Used,
    sql`
    select used from usage_counters
    where organisation_id in (${countedOf(tenant.organisationId)}) and environment = ${tenant.environment} and kind = ${kind} and period = ${period}
    order by organisation_id collate "C" for update`,
  )
  return rows.reduce((sum, { used }) => sum + Number(used), 0)
}

async function lockOwn(tx: Tx, tenant: Tenant, kind: UsageKind, period: string): Promise<number> {
  const known = await lockRow(tx, tenant, kind, period)
  if (known !== undefined) return known
  await ensureRow(tx, tenant, kind, period)
  const made = await lockRow(tx, tenant, kind, period)
  if (made === undefined) throw new Error('a usage counter disappeared')
  return made
}

async function ensureRow(tx: Tx, tenant: Tenant, kind: UsageKind, period: string): Promise<void> {
  await tx.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used)
    values (${tenant.organisationId}, ${tenant.environment}, ${kind}, ${period}, 0) on conflict do nothing`)
}

async function lockRow(tx: Tx, tenant: Tenant, kind: UsageKind, period: string): Promise<number | undefined> {
  const row = await tx.maybeOne(
    Used,
    sql`
    select used from usage_counters
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and kind = ${kind} and period = ${period}
    for update`,
  )
  return row === undefined ? undefined : Number(row.used)
}

/** Adds to a counter (a negative `n` subtracts). Call it in the transaction that changes the counted rows. */
export async function addToCounter(tx: Tx, { tenant, kind, period, n }: CounterChange): Promise<void> {
  await tx.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used)
    values (${tenant.organisationId}, ${tenant.environment}, ${kind}, ${period}, ${n})
    on conflict (organisation_id, environment, kind, period) do update set used = usage_counters.used + excluded.used`)
}

export interface CounterChange {
  readonly tenant: Tenant
  readonly kind: UsageKind
  readonly period: string
  /** Negative subtracts. */
  readonly n: number
}

/** Changes counters of any tenants, in one statement that locks their rows in one order. */
export async function changeCounters(tx: Tx, changes: readonly CounterChange[]): Promise<void> {
  const rows = changes.filter(({ n }) => n !== 0).map(({ tenant, ...change }) => ({ ...tenant, ...change }))
  if (rows.length === 0) return
  await tx.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used)
    select "organisationId", environment, kind, period, sum(n)
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given ("organisationId" text, environment text, kind text, period text, n bigint)
    group by "organisationId", environment, kind, period
    order by "organisationId" collate "C", environment collate "C", kind collate "C", period
    on conflict (organisation_id, environment, kind, period) do update set used = usage_counters.used + excluded.used`)
}

export interface CounterToCheck {
  readonly kind: UsageKind
  readonly period: string
  /** Selects the correct value of the counter. */
  readonly counting: Sql
}

const Drift = z.object({ drift: z.bigint(), rebuilds: z.number() })
export type Drift = z.output<typeof Drift>

/**
 * Returns by how much the rows differ from their counter, both as of one instant, and how often the counter was rebuilt before. Takes no locks: rows
 * and counter always change in one transaction, so concurrent changes do not alter the difference.
 */
export function findDrift(db: Queryable, tenant: Tenant, { kind, period, counting }: CounterToCheck): Promise<Drift> {
  return db.one(
    Drift,
    sql`
    select ((${counting}) - coalesce(max(used), 0))::bigint as drift, coalesce(max(rebuilds), 0) as rebuilds from usage_counters
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and kind = ${kind} and period = ${period}`,
  )
}

/** Adds the difference to the counter, unless another rebuild has done so since. */
export async function correctCounter(
  tx: Tx,
  tenant: Tenant,
  { kind, period }: CounterToCheck,
  { drift, rebuilds }: Drift,
): Promise<void> {
  await ensureRow(tx, tenant, kind, period)
  await tx.run(sql`
    update usage_counters set used = used + ${drift.toString()}::bigint, rebuilds = rebuilds + 1
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and kind = ${kind} and period = ${period}
      and rebuilds = ${rebuilds}`)
}

/** Returns what counts toward the quota now, without a lock. */
export async function usedOf(
  db: Queryable,
  tenant: Tenant,
  kind: UsageKind | 'proofs',
  period: string,
): Promise<number> {
  const row = await db.one(
    Used,
    sql`
    select coalesce(sum(used), 0)::bigint as used from usage_counters
    where organisation_id in (${countedOf(tenant.organisationId)}) and environment = ${tenant.environment} and kind = ${kind} and period = ${period}`,
  )
  return Number(row.used)
}

/**
 * Returns what counts toward the quotas of a month and toward those without a period; a kind that was never counted is missing.
 */
export async function listCounters(db: Queryable, tenant: Tenant, month: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db.many(
    KindUsed,
    sql`
    select kind, sum(used)::bigint as used from usage_counters
    where organisation_id in (${countedOf(tenant.organisationId)}) and environment = ${tenant.environment} and period in (${month}, 'all')
    group by kind`,
  )
  return new Map(rows.map(({ kind, used }) => [kind, Number(used)]))
}

/**
 * Runs reads in a read-only snapshot of one instant, whatever commits meanwhile. Not for callers that are already in a
 * transaction.
 */
export function readAtOneInstant<T>(db: Db, read: (tx: Tx) => Promise<T>): Promise<T> {
  return db.tx(async (tx) => {
    await tx.run(sql`set transaction isolation level repeatable read, read only`)
    return read(tx)
  })
}

/** The budget of a day on one network, of an organisation in one environment. */
export interface GasBudget {
  readonly tenant: Tenant
  readonly network: string
  readonly day: string
}

/**
 * Returns the reserved and used amounts of a day's budgets, by network, in billionths of a US dollar, of all organisations that share the quotas,
 * without a lock.
 */
export async function listGasTaken(db: Queryable, tenant: Tenant, day: string): Promise<ReadonlyMap<string, bigint>> {
  const rows = await db.many(
    z.object({ network: z.string(), nanoUsd: StoredBigInt }),
    sql`
    select network, sum(nano_usd) as nano_usd from gas_budgets
    where organisation_id in (${countedOf(tenant.organisationId)}) and environment = ${tenant.environment} and day = ${day} group by network`,
  )
  return new Map(rows.map((row) => [row.network, row.nanoUsd]))
}

/** Returns the reserved and used amounts of the daily budgets of a period, oldest first. */
export function gasByDay(db: Queryable, tenant: Tenant, { from, to }: { readonly from: Date; readonly to: Date }) {
  return db.many(
    z.object({ day: z.string(), network: z.string(), nanoUsd: StoredBigInt }),
    sql`
    select to_char(day, 'YYYY-MM-DD') as day, network, greatest(nano_usd, 0) as nano_usd from gas_budgets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and nano_usd > 0
      and day >= (${from}::timestamptz at time zone 'UTC')::date and day < ${to}::timestamptz at time zone 'UTC'
    order by day, network`,
  )
}

/**
 * Returns the name of the lock of an organisation's budgets on a network. A transaction that takes from budgets with a limit locks those of all of its
 * networks first, and then that of the shared quota of payments (`sharedLockName`), until it ends. They are locked by name, because the row of a day does
 * not exist before its first payment.
 */
export function gasLockName({ tenant: { organisationId, environment }, network }: Omit<GasBudget, 'day'>): string {
  return `gas-budget:${organisationId}/${environment}/${network}`
}

/**
 * Locks the budgets of these networks and returns the reserved and used amounts of all organisations that share the quotas, by network. Where some do,
 * it takes also the lock under which their payments are recorded, which take from the same budgets. A transaction calls it once: a second call would
 * take the lock of a network after the shared one.
 */
export async function lockGasTaken(
  tx: Tx,
  { tenant, networks, day }: { readonly tenant: Tenant; readonly networks: readonly string[]; readonly day: string },
): Promise<ReadonlyMap<string, bigint>> {
  const lockNames = networks.map((network) => gasLockName({ tenant, network }))
  await tx.run(sql`
    select pg_advisory_xact_lock(hashtextextended(name, 0)) from (
      select name from (select unnest(${lockNames}::text[]) as name union ${sharedLockName(tenant, 'payments')}) as given
      order by name collate "C" offset 0) as ordered`)
  return listGasTaken(tx, tenant, day)
}

export interface GasChange extends GasBudget {
  /** Negative returns gas to the budget. */
  readonly nanoUsd: bigint
}

/** Adds to budgets of any organisations. */
export async function changeGas(tx: Queryable, changes: readonly GasChange[]): Promise<void> {
  const statement = changeOf(changes)
  if (statement !== undefined) await tx.run(statement)
}

/** One statement, which locks the rows of the budgets in one order; undefined if nothing changes. */
function changeOf(changes: readonly GasChange[]): Sql | undefined {
  const rows = changes
    .filter(({ nanoUsd }) => nanoUsd !== 0n)
    .map(({ tenant: { organisationId, environment }, network, day, nanoUsd }) => {
      return { organisationId, environment, network, day, nanoUsd: nanoUsd.toString() }
    })
  if (rows.length === 0) return undefined
  return sql`
    insert into gas_budgets (organisation_id, environment, network, day, nano_usd)
    select "organisationId", environment, network, day, sum("nanoUsd")
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given ("organisationId" text, environment text, network text, day date, "nanoUsd" numeric)
    group by "organisationId", environment, network, day
    order by "organisationId" collate "C", environment collate "C", network collate "C", day
    on conflict (organisation_id, environment, network, day) do update set nano_usd = gas_budgets.nano_usd + excluded.nano_usd`
}

const gasChanges: LastWrite<GasChange> = { rank: 1, prepare: async (_tx, changes) => changeOf(changes) }

/** Adds to budgets when the transaction is about to commit, before its audit records. */
export function changeGasLast(tx: Tx, changes: readonly GasChange[]): void {
  tx.writeLast(gasChanges, changes)
}

/** A plan's quota of a kind in a calendar month (UTC). */
export interface MonthlyQuota {
  readonly kind: UsageKind
  readonly limit: number
  readonly month: string
}

/** Returns the shares of the quota that were reported. */
export async function listReported(
  db: Queryable,
  tenant: Tenant,
  { kind, limit, month }: MonthlyQuota,
): Promise<readonly number[]> {
  const rows = await db.many(
    z.object({ percent: z.number() }),
    sql`
    select percent from usage_thresholds
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and kind = ${kind} and month = ${month}
      and quota = ${limit}`,
  )
  return rows.map(({ percent }) => percent)
}

/** Records the shares that were reported; the caller has locked the counter. */
export async function insertReported(
  tx: Tx,
  tenant: Tenant,
  { kind, limit, month }: MonthlyQuota,
  { percents, reachedAt }: { readonly percents: readonly number[]; readonly reachedAt: Date },
): Promise<void> {
  await tx.run(sql`
    insert into usage_thresholds (organisation_id, environment, kind, month, percent, quota, reached_at)
    select ${tenant.organisationId}, ${tenant.environment}, ${kind}, ${month}, percent, ${limit}, ${reachedAt}
    from unnest(${percents}::int[]) as percent`)
}
