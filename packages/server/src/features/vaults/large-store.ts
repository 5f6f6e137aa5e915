import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql } from '../../platform/db/db.ts'
import { DocumentRow, FileRow } from './document-store.ts'
import { Manifest, type VaultId } from './schema.ts'

/** Most rows of one read. */
export const rowsMax = 500

/** Returns documents of a vault behind one, oldest first. The first ones have their data as long as all of it fits the limit. */
export function listDocumentsAfter(
  db: Queryable,
  tenant: Tenant,
  vaultId: VaultId,
  { after, dataBytesMax }: { readonly after: string; readonly dataBytesMax: number },
): Promise<DocumentRow[]> {
  return db.many(
    DocumentRow,
    sql`
    select id, name, case when sum(size) over (order by id) <= ${dataBytesMax} then data end as data, size, sha256, created_at
    from (
      select * from vault_documents
      where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId} and id > ${after}
      order by id limit ${rowsMax}) as page
    order by id`,
  )
}

/** Returns files of a vault behind one, oldest first. */
export function listFilesAfter(db: Queryable, tenant: Tenant, vaultId: VaultId, after: string): Promise<FileRow[]> {
  return db.many(
    FileRow,
    sql`
    select id, name, mime_type, size, sha256, created_at from vault_files
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId} and id > ${after}
    order by id limit ${rowsMax}`,
  )
}

const SealedHead = z.object({ head: Manifest.omit({ items: true }), statement: z.string() })

/** Returns the manifest of a sealed vault without its items, and the signed statement. It parses the whole manifest. */
export function getSealedHead(db: Queryable, tenant: Tenant, vaultId: VaultId): Promise<z.output<typeof SealedHead>> {
  return db.one(
    SealedHead,
    sql`
    select manifest::jsonb - 'items' as head, statement from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId} and sealed_at is not null`,
  )
}
