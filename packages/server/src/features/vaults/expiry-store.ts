import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import type { Sharers } from '../plans/index.ts'
import type { DueVaultsPlace } from './ports.ts'
import type { VaultId } from './schema.ts'
import { VaultRow, vaultColumns } from './store.ts'

const ExpiredCount = z.object({ vaults: z.bigint().transform(Number), bytes: z.bigint().transform(Number) })
export type ExpiredCount = z.output<typeof ExpiredCount>

/** Counts the vaults and bytes that have expired and are not swept, but are still in the counters. */
export function countExpired(
  db: Queryable,
  { organisationIds, environment }: Sharers,
  now: Date,
): Promise<ExpiredCount> {
  return db.one(
    ExpiredCount,
    sql`
    select sum(own.vaults)::bigint as vaults, sum(own.bytes)::bigint as bytes
    from unnest(${organisationIds}::text[]) as sharer (id) cross join lateral (
      select count(*) as vaults, coalesce(sum(bytes), 0)::bigint as bytes from vaults
      where organisation_id = sharer.id and environment = ${environment} and expires_at <= ${now}
    ) as own`,
  )
}

/** Counts existing vaults whose payments have no settlement request yet. */
export async function countUnpaid(
  db: Queryable,
  { organisationIds, environment }: Sharers,
  now: Date,
): Promise<number> {
  const row = await db.one(
    z.object({ vaults: z.bigint().transform(Number) }),
    sql`
    select sum(own.vaults)::bigint as vaults
    from unnest(${organisationIds}::text[]) as sharer (id) cross join lateral (
      select count(*) as vaults from vaults join payments on payments.id = vaults.payment_id and payments.status = 'verified'
      where vaults.organisation_id = sharer.id and vaults.environment = ${environment} and vaults.expires_at > ${now}
    ) as own`,
  )
  return row.vaults
}

/** Ends vaults now, unless they are persisted. */
export async function markOver(tx: Tx, vaultIds: readonly VaultId[], now: Date): Promise<void> {
  await tx.run(sql`update vaults set expires_at = ${now} where id = any(${vaultIds}::text[]) and expires_at > ${now}`)
}

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** A condition: whether the end of any vault is due to be reported or carried out. */
export function isAnyVaultDue(now: Date): Sql {
  return sql`coalesce((select expires_at from vaults where expires_at <= ${now} order by expires_at limit 1),
    (select expiring_due from vaults where expiring_due <= ${now} order by expiring_due limit 1)) is not null`
}

/** Most due vaults that a list reads in the order of their ends, and most organisations that it visits if more are due. */
const dueMax = 200
const organisationsMax = 200

const OldestRow = TenantRow.extend({ count: z.bigint() })
const VisitedRow = z.object({ organisationId: id('org'), environments: z.array(z.enum(['test', 'live'])) })

/**
 * Returns tenants with vaults whose end is due to be reported or carried out. Reads only due vaults if they are few. If many are due, it returns the
 * tenants of the oldest, and those of the next `organisationsMax` organisations with vaults that have such; `place` is moved on, so that some later list
 * returns each tenant, whoever has older vaults. Background work starts from this only list across tenants. The transaction must read in order.
 */
export async function listTenantsWithDueVaults(tx: Tx, now: Date, place: DueVaultsPlace): Promise<Tenant[]> {
  const oldest = await tx.many(
    OldestRow,
    sql`
    with due as materialized (
      (select organisation_id, environment from vaults where expires_at <= ${now} order by expires_at limit ${dueMax + 1})
      union all
      (select organisation_id, environment from vaults where expiring_due <= ${now} order by expiring_due limit ${dueMax + 1})
    )
    select organisation_id, environment, count(*) as count from due group by organisation_id, environment`,
  )
  const tenants = oldest.map(({ count: _, ...tenant }) => tenant)
  if (oldest.reduce((sum, { count }) => sum + count, 0n) <= dueMax) return tenants
  const visited = await visitOrganisations(tx, now, place)
  const known = new Set(tenants.map(({ organisationId, environment }) => `${organisationId}/${environment}`))
  return [...tenants, ...visited.filter((tenant) => !known.has(`${tenant.organisationId}/${tenant.environment}`))]
}

/** The tenants with due vaults of the next organisations that have vaults, by a few steps in an index for each. */
async function visitOrganisations(tx: Tx, now: Date, place: DueVaultsPlace): Promise<Tenant[]> {
  const next = (after: Sql): Sql => sql`
    select organisation_id from vaults where expires_at is not null and organisation_id > ${after} order by organisation_id, environment limit 1`
  const isDue = (column: Sql): Sql => sql`exists (
    select from vaults where vaults.organisation_id = visited.organisation_id and vaults.environment = of.environment and ${column} <= ${now})`
  const rows = await tx.many(
    VisitedRow,
    sql`
    with recursive visited as (
      (select organisation_id, 1 as position from (${next(sql`${place.after ?? ''}`)}) as first)
      union all
      select after.organisation_id, visited.position + 1 from visited cross join lateral (${next(sql`visited.organisation_id`)}) as after
      where visited.position < ${organisationsMax}
    )
    select organisation_id, array(
      select environment from unnest(array['test', 'live']) as of (environment)
      where ${isDue(sql`vaults.expires_at`)} or ${isDue(sql`vaults.expiring_due`)}) as environments
    from visited order by organisation_id`,
  )
  place.after = rows.length < organisationsMax ? undefined : rows.at(-1)?.organisationId
  return rows.flatMap(({ organisationId, environments }) =>
    environments.map((environment) => ({ organisationId, environment })),
  )
}

interface DueBatch {
  readonly now: Date
  readonly limit: number
}

const ExpiringRow = z.object({
  id: id('vlt'),
  expiresAt: z.date(),
  expiringDue: z.date().nullable(),
  bytes: z.bigint().transform(Number),
})
export type ExpiringRow = z.output<typeof ExpiringRow>

/** Locks vaults that have expired, and skips those that another process has locked. */
export function lockExpired(tx: Tx, tenant: Tenant, { now, limit }: DueBatch): Promise<ExpiringRow[]> {
  return tx.many(
    ExpiringRow,
    sql`
    select id, expires_at, expiring_due, bytes from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and expires_at <= ${now}
    order by expires_at limit ${limit} for update skip locked`,
  )
}

/** Locks vaults whose end is due to be reported and has not come, and skips those that another process has locked. */
export function lockExpiring(tx: Tx, tenant: Tenant, { now, limit }: DueBatch): Promise<VaultRow[]> {
  return tx.many(
    VaultRow,
    sql`
    select ${vaultColumns} from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and expiring_due <= ${now} and expires_at > ${now}
    order by expiring_due limit ${limit} for update skip locked`,
  )
}

/** Records that the ends were reported; the caller has locked the rows. */
export async function markExpiringReported(tx: Tx, tenant: Tenant, vaultIds: readonly VaultId[]): Promise<void> {
  await tx.run(sql`
    update vaults set expiring_due = null
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(${vaultIds}::text[])`)
}
