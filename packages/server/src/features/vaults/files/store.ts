import { z } from 'zod'
import { type BlobKey, isBlobKey } from '../../../files/index.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { type Id, id } from '../../../platform/ids.ts'
import type { VaultId } from '../vault.ts'

const StoredKey = z.string().refine(isBlobKey, 'is no key of the blob store')

export const StoredFile = z.object({
  id: id('fil'),
  name: z.string(),
  mimeType: z.string(),
  size: z.bigint().transform(Number),
  sha256: z.string(),
  blobKey: StoredKey,
  createdAt: z.date(),
})
export type StoredFile = z.output<typeof StoredFile>

const PlacedFile = StoredFile.extend({ vaultId: id('vlt') })

const columns = sql`id, name, mime_type, size, sha256, blob_key, created_at`

/** Names a blob before its first byte is stored, so that a crash leaves none that nobody knows. */
export async function insertUpload(
  db: Queryable,
  tenant: Tenant,
  upload: { readonly blobKey: BlobKey; readonly vaultId: VaultId; readonly createdAt: Date },
): Promise<void> {
  await db.run(sql`
    insert into vault_uploads (blob_key, organisation_id, environment, vault_id, created_at)
    values (${upload.blobKey}, ${tenant.organisationId}, ${tenant.environment}, ${upload.vaultId}, ${upload.createdAt})`)
}

/**
 * Ends an upload in the transaction that binds its blob, or that gives it up. False when it has ended already: of binding it
 * and sweeping it one happens.
 */
export async function takeUpload(tx: Tx, tenant: Tenant, blobKey: BlobKey): Promise<boolean> {
  const taken = await tx.run(sql`
    delete from vault_uploads
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and blob_key = ${blobKey}`)
  return taken === 1
}

/** Binds a blob to a vault as a file; the caller holds the vault's row. */
export async function insertFile(tx: Tx, tenant: Tenant, vaultId: VaultId, file: StoredFile): Promise<void> {
  const { id, name, mimeType, size, sha256, blobKey, createdAt } = file
  await tx.run(sql`
    insert into vault_files (vault_id, id, organisation_id, environment, name, mime_type, size, sha256, blob_key, created_at)
    values (${vaultId}, ${id}, ${tenant.organisationId}, ${tenant.environment}, ${name}, ${mimeType}, ${size}, ${sha256}, ${blobKey}, ${createdAt})`)
}

export function findFile(
  db: Queryable,
  tenant: Tenant,
  vaultId: VaultId,
  fileId: Id<'fil'>,
): Promise<StoredFile | undefined> {
  return db.maybeOne(
    StoredFile,
    sql`
    select ${columns} from vault_files
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId} and id = ${fileId}`,
  )
}

/** A file by its id alone, for whoever knows no more. */
export function findFileById(
  db: Queryable,
  tenant: Tenant,
  fileId: Id<'fil'>,
): Promise<z.output<typeof PlacedFile> | undefined> {
  return db.maybeOne(
    PlacedFile,
    sql`
    select ${columns}, vault_id from vault_files
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${fileId}`,
  )
}

/** Takes a file out of its vault; undefined where there is none. The caller holds the vault's row and queues the blob. */
export function deleteFileRow(
  tx: Tx,
  tenant: Tenant,
  vaultId: VaultId,
  fileId: Id<'fil'>,
): Promise<StoredFile | undefined> {
  return tx.maybeOne(
    StoredFile,
    sql`
    delete from vault_files
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId} and id = ${fileId}
    returning ${columns}`,
  )
}

const Owner = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** Whose file it is, for a link that says so itself: its signature was checked before this is asked. */
export function findFileOwner(db: Queryable, vaultId: VaultId, fileId: Id<'fil'>): Promise<Tenant | undefined> {
  return db.maybeOne(
    Owner,
    sql`select organisation_id, environment from vault_files where vault_id = ${vaultId} and id = ${fileId}`,
  )
}

/** Queues a blob for deletion, unless a file is bound to it: then a transaction that seemed to fail was committed. */
export async function queueDeletion(tx: Tx, blobKey: BlobKey, now: Date): Promise<void> {
  await tx.run(sql`
    insert into blob_deletions (blob_key, created_at)
    select ${blobKey}, ${now} where not exists (select 1 from vault_files where blob_key = ${blobKey})
    on conflict do nothing`)
}

/** Gives up uploads that began before an instant, of whomever: their blobs are queued in the same statement. Answers how many. */
export function queueStaleUploads(db: Queryable, before: Date, now: Date): Promise<number> {
  return db.run(sql`
    with stale as (delete from vault_uploads where created_at < ${before} returning blob_key)
    insert into blob_deletions (blob_key, created_at) select blob_key, ${now} from stale on conflict do nothing`)
}

/** Blobs that wait to be deleted, those first that waited longest. */
export async function listDeletions(db: Queryable, limit: number): Promise<BlobKey[]> {
  const rows = await db.many(
    z.object({ blobKey: StoredKey }),
    sql`select blob_key from blob_deletions order by created_at, blob_key limit ${limit}`,
  )
  return rows.map(({ blobKey }) => blobKey)
}

/** Forgets blobs that the store has let go of. */
export async function forgetDeletions(db: Queryable, blobKeys: readonly BlobKey[]): Promise<void> {
  await db.run(sql`delete from blob_deletions where blob_key = any(${blobKeys}::text[])`)
}
