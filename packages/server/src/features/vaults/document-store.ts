import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type Id, id } from '../../platform/ids.ts'
import type { VaultId } from './schema.ts'

const Data = z.record(z.string(), z.unknown())

export const DocumentRow = z.object({
  id: id('doc'),
  name: z.string(),
  data: Data.nullable(),
  size: z.number(),
  sha256: z.string(),
  createdAt: z.date(),
})
export type DocumentRow = z.output<typeof DocumentRow>

/** A document to write; `content` is its data as canonical JSON. */
export interface NewDocumentRow extends Omit<DocumentRow, 'data'> {
  readonly content: string
}

/** Writes a document; the caller has locked its vault's row. */
export async function insertDocument(
  tx: Tx,
  tenant: Tenant,
  vaultId: VaultId,
  document: NewDocumentRow,
): Promise<void> {
  const { id, name, content, size, sha256, createdAt } = document
  await tx.run(sql`
    insert into vault_documents (vault_id, id, organisation_id, environment, name, data, size, sha256, created_at)
    values (${vaultId}, ${id}, ${tenant.organisationId}, ${tenant.environment}, ${name}, ${content}, ${size}, ${sha256}, ${createdAt})`)
}

export function findDocument(
  db: Queryable,
  tenant: Tenant,
  vaultId: VaultId,
  documentId: Id<'doc'>,
): Promise<DocumentRow | undefined> {
  return db.maybeOne(
    DocumentRow,
    sql`
    select id, name, data, size, sha256, created_at from vault_documents
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId} and id = ${documentId}`,
  )
}

/**
 * Returns a vault's documents, oldest first. The first ones have their data as long as all of it fits the limit; the data of the
 * others is null.
 */
export function listDocuments(
  db: Queryable,
  tenant: Tenant,
  vaultId: VaultId,
  dataBytesMax: number,
): Promise<DocumentRow[]> {
  return db.many(
    DocumentRow,
    sql`
    select id, name, case when sum(size) over (order by id) <= ${dataBytesMax} then data end as data, size, sha256, created_at
    from vault_documents
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId}
    order by id`,
  )
}

export const FileRow = z.object({
  id: id('fil'),
  name: z.string(),
  mimeType: z.string(),
  size: z.bigint().transform(Number),
  sha256: z.string(),
  createdAt: z.date(),
})
export type FileRow = z.output<typeof FileRow>

/** Returns a vault's files, oldest first. */
export function listFiles(db: Queryable, tenant: Tenant, vaultId: VaultId): Promise<FileRow[]> {
  return db.many(
    FileRow,
    sql`
    select id, name, mime_type, size, sha256, created_at from vault_files
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId}
    order by id`,
  )
}
