import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { queueingDeletions } from './files/store.ts'
import type { VaultId } from './schema.ts'

/** Most rows that one statement deletes. A document is up to a megabyte. */
const rowsMax = 5_000
const documentsMax = 500
/** Most deleted vaults of a tenant in one transaction. */
const vaultsMax = 50

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })
const QueuedRow = z.object({ vaultId: id('vlt') })

/** A condition: whether any deleted vault has contents left. */
export const areContentsLeft = sql`exists (select from deleted_vaults)`

/** Returns each tenant with a deleted vault whose contents are left, by one step in the index for each. */
export function listTenantsWithContents(db: Queryable): Promise<Tenant[]> {
  return db.many(
    TenantRow,
    sql`
    with recursive tenant as (
      (select organisation_id, environment from deleted_vaults order by organisation_id, environment limit 1)
      union all
      select after.organisation_id, after.environment from tenant cross join lateral (
        select organisation_id, environment from deleted_vaults
        where (organisation_id, environment) > (tenant.organisation_id, tenant.environment) order by organisation_id, environment limit 1
      ) as after
    )
    select organisation_id, environment from tenant`,
  )
}

/** Locks some of the tenant's deleted vaults with contents until the transaction ends. */
export async function lockDeletedVaults(tx: Tx, { organisationId, environment }: Tenant): Promise<VaultId[]> {
  const rows = await tx.many(
    QueuedRow,
    sql`
    select vault_id from deleted_vaults where organisation_id = ${organisationId} and environment = ${environment}
    order by vault_id limit ${vaultsMax} for update`,
  )
  return rows.map(({ vaultId }) => vaultId)
}

/**
 * Deletes some tokens, files, events and documents of deleted vaults, which are locked; the blobs of the files are queued for deletion. Forgets the
 * vaults when nothing of them is left.
 */
export async function deleteSomeContents(
  tx: Tx,
  tenant: Tenant,
  { vaultIds, now }: { readonly vaultIds: readonly VaultId[]; readonly now: Date },
): Promise<void> {
  const { organisationId, environment } = tenant
  const own = sql`organisation_id = ${organisationId} and environment = ${environment} and vault_id = any(${vaultIds}::text[])`
  if ((await deleteSome(tx, sql`vault_tokens`, own, rowsMax)) === rowsMax) return
  if ((await deleteSomeFiles(tx, own, { organisationId, now })) === rowsMax) return
  if ((await deleteSome(tx, sql`vault_events`, own, rowsMax)) === rowsMax) return
  if ((await deleteSome(tx, sql`vault_documents`, own, documentsMax)) === documentsMax) return
  await tx.run(sql`delete from deleted_vaults where ${own}`)
}

function deleteSome(tx: Tx, from: Sql, where: Sql, limit: number): Promise<number> {
  return tx.run(deletionOfSome(from, where, limit))
}

function deletionOfSome(from: Sql, where: Sql, limit: number): Sql {
  return sql`delete from ${from} where ctid = any(array(select ctid from ${from} where ${where} limit ${limit}))`
}

async function deleteSomeFiles(
  tx: Tx,
  where: Sql,
  { organisationId, now }: { readonly organisationId: string; readonly now: Date },
): Promise<number> {
  const { count } = await tx.one(
    z.object({ count: z.bigint().transform(Number) }),
    sql`
    with deleted as (${deletionOfSome(sql`vault_files`, where, rowsMax)} returning blob_key),
    queued as (${queueingDeletions(sql`deleted`, sql`${organisationId}`, now)})
    select count(*) as count from deleted`,
  )
  return count
}
