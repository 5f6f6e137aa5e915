import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import type { Sharers } from '../plans/index.ts'
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

/**
 * Returns each tenant with a vault whose end is due to be reported or carried out, by two steps in an index for each tenant, however many vaults
 * are due. Background work starts from this only list across tenants.
 */
export function listTenantsWithDueVaults(db: Queryable, now: Date): Promise<Tenant[]> {
  return db.many(
    TenantRow,
    sql`
    with recursive tenant as (
      (select organisation_id, environment from vaults where expires_at is not null order by organisation_id, environment limit 1)
      union all
      select after.organisation_id, after.environment from tenant cross join lateral (
        select organisation_id, environment from vaults
        where expires_at is not null and (organisation_id, environment) > (tenant.organisation_id, tenant.environment)
        order by organisation_id, environment limit 1
      ) as after
    )
    select organisation_id, environment from tenant
    where exists (
      select from vaults where vaults.organisation_id = tenant.organisation_id and vaults.environment = tenant.environment and expires_at <= ${now})
    or exists (
      select from vaults where vaults.organisation_id = tenant.organisation_id and vaults.environment = tenant.environment and expiring_due <= ${now})`,
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
