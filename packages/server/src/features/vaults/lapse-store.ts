import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { VaultRow, vaultColumns } from './store.ts'
import type { VaultId } from './vault.ts'

const Counted = z.object({ vaults: z.bigint().transform(Number), bytes: z.bigint().transform(Number) })
export type Counted = z.output<typeof Counted>

/** What is gone by now and yet not swept: how many vaults the active counter still holds for it, and how many bytes. */
export function countLapsed(db: Queryable, tenant: Tenant, now: Date): Promise<Counted> {
  return db.one(
    Counted,
    sql`
    select count(*) as vaults, coalesce(sum(bytes), 0)::bigint as bytes from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and expires_at <= ${now}`,
  )
}

/** How many present vaults belong to payments that nobody has asked to settle yet. */
export async function countUnpaid(db: Queryable, tenant: Tenant, now: Date): Promise<number> {
  const row = await db.one(
    z.object({ vaults: z.bigint().transform(Number) }),
    sql`
    select count(*) as vaults from vaults join payments on payments.id = vaults.payment_id and payments.status = 'verified'
    where vaults.organisation_id = ${tenant.organisationId} and vaults.environment = ${tenant.environment} and vaults.expires_at > ${now}`,
  )
  return row.vaults
}

/** Ends vaults now, unless they are kept for good. */
export async function markOver(tx: Tx, vaultIds: readonly VaultId[], now: Date): Promise<void> {
  await tx.run(sql`update vaults set expires_at = ${now} where id = any(${vaultIds}::text[]) and expires_at > ${now}`)
}

/** How many vaults of a kind there are, counted from the records. */
export async function countVaults(db: Queryable, tenant: Tenant, countedAs: 'active' | 'persisted'): Promise<number> {
  const row = await db.one(
    z.object({ vaults: z.bigint().transform(Number) }),
    sql`
    select count(*) as vaults from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and counted_as = ${countedAs}`,
  )
  return row.vaults
}

/** The bytes of all documents, files and emitted events, summed from their own rows. */
export async function sumBytes(db: Queryable, tenant: Tenant): Promise<number> {
  const { organisationId, environment } = tenant
  const row = await db.one(
    z.object({ bytes: z.bigint().transform(Number) }),
    sql`
    select coalesce(sum(held.bytes), 0)::bigint as bytes from vaults
    cross join lateral (
      select coalesce((select sum(size) from vault_documents where vault_id = vaults.id), 0)
        + coalesce((select sum(size) from vault_files where vault_id = vaults.id), 0)
        + coalesce((select sum(size) from vault_events where vault_id = vaults.id), 0) as bytes
    ) as held
    where organisation_id = ${organisationId} and environment = ${environment}`,
  )
  return row.bytes
}

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** Tenants, in any order, of whom a vault's end is due to be told or to be carried out. The one list across tenants: background work begins with it. */
export function listTenantsWithDueVaults(db: Queryable, now: Date, limit: number): Promise<Tenant[]> {
  return db.many(
    TenantRow,
    sql`
    select organisation_id, environment from vaults where expires_at <= ${now}
    union
    select organisation_id, environment from vaults where expiring_due <= ${now}
    limit ${limit}`,
  )
}

interface DueBatch {
  readonly now: Date
  readonly limit: number
}

const LapsingRow = z.object({
  id: id('vlt'),
  expiresAt: z.date(),
  expiringDue: z.date().nullable(),
  bytes: z.bigint().transform(Number),
})
export type LapsingRow = z.output<typeof LapsingRow>

/** Holds vaults whose end has come, past those that another process holds. */
export function lockLapsed(tx: Tx, tenant: Tenant, { now, limit }: DueBatch): Promise<LapsingRow[]> {
  return tx.many(
    LapsingRow,
    sql`
    select id, expires_at, expiring_due, bytes from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and expires_at <= ${now}
    order by expires_at limit ${limit} for update skip locked`,
  )
}

/** Holds vaults whose end is to be told and has not come, past those that another process holds. */
export function lockExpiring(tx: Tx, tenant: Tenant, { now, limit }: DueBatch): Promise<VaultRow[]> {
  return tx.many(
    VaultRow,
    sql`
    select ${vaultColumns} from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and expiring_due <= ${now} and expires_at > ${now}
    order by expiring_due limit ${limit} for update skip locked`,
  )
}

/** Remembers that the end was told; the caller holds the row. */
export async function markExpiringTold(tx: Tx, tenant: Tenant, vaultId: VaultId): Promise<void> {
  await tx.run(sql`
    update vaults set expiring_due = null
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}`)
}
