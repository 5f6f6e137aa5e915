import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql } from '../../platform/db/db.ts'
import type { Id } from '../../platform/ids.ts'
import type { VaultId } from './schema.ts'
import { Manifest } from './schema.ts'

const StoredProof = z.object({ manifest: Manifest, statement: z.string() })
export type StoredProof = z.output<typeof StoredProof>

function sealed(tenant: Tenant, vaultId: VaultId): Sql {
  return sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId} and sealed_at is not null`
}

/** Returns the manifest and its signed statement; undefined if the vault is gone or not sealed. */
export function findProof(db: Queryable, tenant: Tenant, vaultId: VaultId): Promise<StoredProof | undefined> {
  return db.maybeOne(StoredProof, sql`select manifest, statement from vaults where ${sealed(tenant, vaultId)}`)
}

/** Returns only the signed statement: a manifest may be megabytes. */
export async function findStatement(db: Queryable, tenant: Tenant, vaultId: VaultId): Promise<string | undefined> {
  const row = await db.maybeOne(
    z.object({ statement: z.string() }),
    sql`select statement from vaults where ${sealed(tenant, vaultId)}`,
  )
  return row?.statement
}

/** Stores the tree of a seal if the vault still exists. A stored tree never differs. */
export async function insertSealTree(
  db: Queryable,
  tenant: Tenant,
  vaultId: VaultId,
  nodes: Uint8Array,
): Promise<void> {
  await db.run(sql`
    insert into vault_seal_trees (vault_id, organisation_id, environment, nodes)
    select id, organisation_id, environment, ${nodes}::bytea from vaults where ${sealed(tenant, vaultId)}
    on conflict do nothing`)
}

/** Returns the nodes at these positions of a seal's tree, in hex and in their order; undefined if no tree is stored. */
export async function findSealNodes(
  db: Queryable,
  tenant: Tenant,
  vaultId: VaultId,
  positions: readonly number[],
): Promise<string[] | undefined> {
  const row = await db.maybeOne(
    z.object({ nodes: z.array(z.string()) }),
    sql`
    select array(
      select encode(substring(nodes from position * 32 + 1 for 32), 'hex')
      from unnest(${positions}::int[]) with ordinality as requested (position, turn) order by turn) as nodes
    from vault_seal_trees
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId}`,
  )
  return row?.nodes
}

const PlacedItem = z.object({
  name: z.string(),
  mimeType: z.string().nullable(),
  size: z.bigint().transform(Number),
  sha256: z.string(),
  position: z.bigint().transform(Number),
})
export type PlacedItem = z.output<typeof PlacedItem>

/**
 * Returns a sealed vault's document or file and the number of items before it: manifests are ordered by ids, and ids of documents
 * come before those of files.
 */
export function findPlaced(
  db: Queryable,
  tenant: Tenant,
  vaultId: VaultId,
  itemId: Id<'doc'> | Id<'fil'>,
): Promise<PlacedItem | undefined> {
  const mine = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId}`
  return db.maybeOne(
    PlacedItem,
    itemId.startsWith('doc_')
      ? sql`
        select name, null as mime_type, size::bigint as size, sha256,
          (select count(*) from vault_documents where ${mine} and id collate "C" < ${itemId}) as position
        from vault_documents where ${mine} and id = ${itemId}`
      : sql`
        select name, mime_type, size, sha256, (select count(*) from vault_documents where ${mine})
          + (select count(*) from vault_files where ${mine} and id collate "C" < ${itemId}) as position
        from vault_files where ${mine} and id = ${itemId}`,
  )
}
