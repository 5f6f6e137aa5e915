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
  tx: Tx,
  tenant: Tenant,
  upload: {
    readonly blobKey: BlobKey
    readonly vaultId: VaultId
    readonly reservedBytes: number
    readonly createdAt: Date
  },
): Promise<void> {
  const { blobKey, vaultId, reservedBytes, createdAt } = upload
  await tx.run(sql`
    insert into vault_uploads (blob_key, organisation_id, environment, vault_id, reserved_bytes, created_at)
    values (${blobKey}, ${tenant.organisationId}, ${tenant.environment}, ${vaultId}, ${reservedBytes}, ${createdAt})`)
}

/** What all uploads under way were promised; the caller holds the counter of storage, so that nobody is promised more meanwhile. */
export async function sumReserved(tx: Tx, tenant: Tenant): Promise<number> {
  const row = await tx.one(
    z.object({ bytes: z.bigint().transform(Number) }),
    sql`
    select coalesce(sum(reserved_bytes), 0)::bigint as bytes from vault_uploads
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`,
  )
  return row.bytes
}

/** Sets what an upload was promised; false where it has ended already. */
export async function setReserved(tx: Tx, tenant: Tenant, blobKey: BlobKey, bytes: number): Promise<boolean> {
  const changed = await tx.run(sql`
    update vault_uploads set reserved_bytes = ${bytes}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and blob_key = ${blobKey}`)
  return changed === 1
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

/**
 * Queues a blob for deletion, unless a file is bound to it: then a transaction that seemed to fail was committed. Answers whether it is
 * queued.
 */
export async function queueDeletion(tx: Tx, blobKey: BlobKey, now: Date): Promise<boolean> {
  const queued = await tx.run(sql`
    insert into blob_deletions (blob_key, created_at)
    select ${blobKey}, ${now} where not exists (select 1 from vault_files where blob_key = ${blobKey})
    on conflict do nothing`)
  return queued === 1
}

/** Gives up uploads that began before an instant, of whomever: their blobs are queued in the same statement. Answers how many. */
export function queueStaleUploads(db: Queryable, before: Date, now: Date): Promise<number> {
  return db.run(sql`
    with stale as (delete from vault_uploads where created_at < ${before} returning blob_key)
    insert into blob_deletions (blob_key, created_at) select blob_key, ${now} from stale on conflict do nothing`)
}

const WaitingDeletion = z.object({ blobKey: StoredKey, attempts: z.number() })
export type WaitingDeletion = z.output<typeof WaitingDeletion>

/** Blobs whose deletion is due, those first that waited longest. */
export function listDeletions(db: Queryable, now: Date, limit: number): Promise<WaitingDeletion[]> {
  return db.many(
    WaitingDeletion,
    sql`
    select blob_key, attempts from blob_deletions where due_at <= ${now} order by due_at, created_at, blob_key limit ${limit}`,
  )
}

/** Forgets blobs that the store has let go of. */
export async function forgetDeletions(db: Queryable, blobKeys: readonly BlobKey[]): Promise<void> {
  await db.run(sql`delete from blob_deletions where blob_key = any(${blobKeys}::text[])`)
}

/** Lets a blob that its store did not let go of wait, so that it stands in nobody's way. */
export async function postponeDeletion(db: Queryable, blobKey: BlobKey, dueAt: Date): Promise<void> {
  await db.run(sql`update blob_deletions set attempts = attempts + 1, due_at = ${dueAt} where blob_key = ${blobKey}`)
}
