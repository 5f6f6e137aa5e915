import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** Returns tenants, in any order, of organisations that were deleted by `deletedBy` and still have persisted vaults. */
export function listDeletedTenants(db: Queryable, deletedBy: Date, limit: number): Promise<Tenant[]> {
  return db.many(
    TenantRow,
    sql`
    select organisations.id as organisation_id, each.environment from organisations cross join (values ('test'), ('live')) as each (environment)
    where organisations.deleted_at <= ${deletedBy} and exists (
      select from vaults where vaults.organisation_id = organisations.id and vaults.environment = each.environment and vaults.persisted_at is not null)
    limit ${limit}`,
  )
}

/** Whether the organisation was deleted by then. It cannot be restored until the transaction ends. */
export async function isDeleted(tx: Tx, { organisationId }: Tenant, deletedBy: Date): Promise<boolean> {
  const row = await tx.maybeOne(
    z.object({ id: id('org') }),
    sql`select id from organisations where id = ${organisationId} and deleted_at <= ${deletedBy} for share`,
  )
  return row !== undefined
}

const KeptVault = z.object({ id: id('vlt'), bytes: z.bigint().transform(Number), manifestHash: z.string().nullable() })

/** Locks persisted vaults, and skips those that another process has locked. */
export function lockPersisted(tx: Tx, tenant: Tenant, limit: number): Promise<z.output<typeof KeptVault>[]> {
  return tx.many(
    KeptVault,
    sql`
    select id, bytes, manifest_hash from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and persisted_at is not null
    order by id limit ${limit} for update skip locked`,
  )
}
