import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type Id, id } from '../../platform/ids.ts'
import type { VaultId } from './schema.ts'
import type { NewLink } from './store.ts'

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
interface NewDocumentRow extends Omit<DocumentRow, 'data'> {
  readonly content: string
}

/** A document to write, and the event that reports it. */
export interface AddedDocument {
  readonly document: NewDocumentRow
  readonly link: NewLink
}

/**
 * Writes documents with their events and moves their vaults' heads, in one statement. The caller has locked the vaults' rows; the documents of
 * one vault are in the order of their events. The tenant is compared without an index, as in `lockFreeVaults`.
 */
export async function insertDocuments(tx: Tx, tenant: Tenant, added: readonly AddedDocument[]): Promise<void> {
  const { organisationId, environment } = tenant
  const each = <T>(read: (one: AddedDocument) => T): T[] => added.map(read)
  const vaults = [...Map.groupBy(added, ({ link }) => link.event.vaultId)].map(([vaultId, own]) => headOf(vaultId, own))
  const ofVaults = <T>(read: (head: (typeof vaults)[number]) => T): T[] => vaults.map(read)
  await tx.run(sql`
    with documents as (
      insert into vault_documents (vault_id, id, organisation_id, environment, name, data, size, sha256, created_at)
      select vault_id, id, ${organisationId}, ${environment}, name, content::json, size, sha256, created_at from unnest(
        ${each(({ link }) => link.event.vaultId)}::text[], ${each(({ document }) => document.id)}::text[], ${each(({ document }) => document.name)}::text[],
        ${each(({ document }) => document.content)}::text[], ${each(({ document }) => document.size)}::int[],
        ${each(({ document }) => document.sha256)}::text[], ${each(({ document }) => document.createdAt.toISOString())}::timestamptz[]
      ) as given (vault_id, id, name, content, size, sha256, created_at)
    ), happened as (
      insert into vault_events (vault_id, sequence, id, organisation_id, environment, type, payload, size, created_at)
      select vault_id, sequence, id, ${organisationId}, ${environment}, type, payload::json, size, created_at from unnest(
        ${each(({ link }) => link.event.vaultId)}::text[], ${each(({ link }) => link.sequence)}::int[], ${each(({ link }) => link.event.eventId)}::text[],
        ${each(({ link }) => link.event.type)}::text[], ${each(({ link }) => JSON.stringify(link.event.payload))}::text[],
        ${each(({ link }) => link.size)}::int[], ${each(({ link }) => link.at.toISOString())}::timestamptz[]
      ) as given (vault_id, sequence, id, type, payload, size, created_at)
    )
    update vaults set event_count = head.event_count, event_hash = head.event_hash, event_at = head.event_at,
      document_count = document_count + head.documents, bytes = vaults.bytes + head.bytes
    from unnest(
      ${ofVaults(({ vaultId }) => vaultId)}::text[], ${ofVaults(({ last }) => last.sequence)}::int[], ${ofVaults(({ last }) => last.hash)}::text[],
      ${ofVaults(({ last }) => last.at.toISOString())}::timestamptz[], ${ofVaults(({ documents }) => documents)}::int[],
      ${ofVaults(({ bytes }) => bytes)}::bigint[]
    ) as head (id, event_count, event_hash, event_at, documents, bytes)
    where vaults.id = head.id and vaults.organisation_id is not distinct from ${organisationId} and vaults.environment is not distinct from ${environment}`)
}

/** Returns the head of a vault's events after its new documents, and what they add to its counts. */
function headOf(vaultId: VaultId, added: readonly AddedDocument[]) {
  const last = added.at(-1)?.link
  if (last === undefined) throw new Error('a vault has no new document')
  return { vaultId, last, documents: added.length, bytes: added.reduce((sum, { document }) => sum + document.size, 0) }
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
