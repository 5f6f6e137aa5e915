import { z } from 'zod'
import { type BlobKey, isBlobKey } from '../../../files/index.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { deletionsMax } from '../../../platform/db/delete-expired.ts'
import { type Id, id } from '../../../platform/ids.ts'
import { countedOf, type DueCursors, listDueChecks, shareOwnerSql } from '../../plans/index.ts'
import type { VaultId } from '../schema.ts'

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

/** Records a blob's key before its first byte is stored, so that a crash leaves no unknown blob. */
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

/**
 * Sums the reservations of all uploads in progress; the caller has locked the counter of storage, so that no other reservation
 * starts meanwhile.
 */
export async function sumReserved(tx: Tx, tenant: Tenant): Promise<number> {
  const row = await tx.one(
    z.object({ bytes: z.bigint().transform(Number) }),
    sql`
    select coalesce(sum(reserved_bytes), 0)::bigint as bytes from vault_uploads
    where organisation_id in (${countedOf(tenant.organisationId)}) and environment = ${tenant.environment}`,
  )
  return row.bytes
}

/** Sets an upload's reservation; false if it has already ended. */
export async function setReserved(tx: Tx, tenant: Tenant, blobKey: BlobKey, bytes: number): Promise<boolean> {
  const changed = await tx.run(sql`
    update vault_uploads set reserved_bytes = ${bytes}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and blob_key = ${blobKey}`)
  return changed === 1
}

/**
 * Ends an upload in the transaction that binds its blob or abandons it. False if it has already ended: of binding and sweeping
 * only one happens.
 */
export async function takeUpload(tx: Tx, tenant: Tenant, blobKey: BlobKey): Promise<boolean> {
  const taken = await tx.run(sql`
    delete from vault_uploads
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and blob_key = ${blobKey}`)
  return taken === 1
}

/** Binds a blob to a vault as a file; the caller has locked the vault's row. */
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

/** Whether the file's vault exists: the files of a deleted vault are deleted after it. */
const isInVault = sql`exists (select from vaults where vaults.id = vault_files.vault_id)`

/** Returns a file by its id alone. */
export function findFileById(
  db: Queryable,
  tenant: Tenant,
  fileId: Id<'fil'>,
): Promise<z.output<typeof PlacedFile> | undefined> {
  return db.maybeOne(
    PlacedFile,
    sql`
    select ${columns}, vault_id from vault_files
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${fileId} and ${isInVault}`,
  )
}

/** Removes a file from its vault; undefined if there is none. The caller has locked the vault's row and queues the blob. */
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

const Owner = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']), shareOwner: z.string() })

/** Returns the tenant of a file and whose places it takes, for a link; the caller has checked the link's signature. */
export function findFileOwner(
  db: Queryable,
  vaultId: VaultId,
  fileId: Id<'fil'>,
): Promise<z.output<typeof Owner> | undefined> {
  return db.maybeOne(
    Owner,
    sql`
    select organisation_id, environment, ${shareOwnerSql(sql`vault_files.organisation_id`)} as share_owner
    from vault_files where vault_id = ${vaultId} and id = ${fileId} and ${isInVault}`,
  )
}

/** The owner of blobs whose organisation is gone, as of those that an earlier version queued (0303). */
const noOwner = '-'

/** The statement that queues for deletion the blobs that `blobs` selects; they belong to the organisation. */
export function queueingDeletions(blobs: Sql, organisationId: Sql, now: Date): Sql {
  return sql`
    insert into blob_deletions (blob_key, share_owner, created_at)
    select blob_key, coalesce(${shareOwnerSql(organisationId)}, ${noOwner}), ${now} from ${blobs} on conflict do nothing`
}

/**
 * Queues a blob for deletion, unless a file is bound to it: then a transaction that seemed to fail was committed. Returns whether
 * it is queued.
 */
export async function queueDeletion(tx: Tx, tenant: Tenant, blobKey: BlobKey, now: Date): Promise<boolean> {
  const unbound = sql`(select ${blobKey}::text as blob_key where not exists (select 1 from vault_files where blob_key = ${blobKey})) as unbound`
  return (await tx.run(queueingDeletions(unbound, sql`${tenant.organisationId}`, now))) === 1
}

/** Abandons at most `deletionsMax` uploads of any tenant that began before an instant; the same statement queues their blobs. Returns their number. */
export function queueStaleUploads(
  db: Queryable,
  { before, now }: { readonly before: Date; readonly now: Date },
): Promise<number> {
  return db.run(sql`
    with stale as (
      delete from vault_uploads where ctid = any(array(
        select ctid from vault_uploads where created_at < ${before} order by created_at limit ${deletionsMax} for update skip locked))
      returning blob_key, organisation_id)
    ${queueingDeletions(sql`stale`, sql`stale.organisation_id`, now)}`)
}

const WaitingDeletion = z.object({ blobKey: StoredKey, attempts: z.number() })
export type WaitingDeletion = z.output<typeof WaitingDeletion>

/** Blobs to delete, as `listDueChecks` reads them. */
const waitingBlobs = sql`(select blob_key as id, share_owner as organisation_id, 'all' as network, due_at as check_at from blob_deletions)`

/** Returns up to `most` blobs whose deletion is due, in shares of their owners. The transaction must read in order. */
export async function listDeletions(
  tx: Tx,
  { now, most, cursors }: { readonly now: Date; readonly most: number; readonly cursors: DueCursors },
): Promise<WaitingDeletion[]> {
  const at = sql`${now}::timestamptz`
  const dueKeys = await listDueChecks(tx, { table: waitingBlobs, network: 'all', now: at, most, cursors })
  if (dueKeys.length === 0) return []
  return tx.many(
    WaitingDeletion,
    sql`
    select d.blob_key, d.attempts
    from unnest(${dueKeys}::text[]) with ordinality as given (due_key, position)
    cross join lateral (select blob_key, attempts from blob_deletions where blob_key = due_key limit 1) d
    order by given.position`,
  )
}

/** Removes deleted blobs from the queue. */
export async function forgetDeletions(db: Queryable, blobKeys: readonly BlobKey[]): Promise<void> {
  await db.run(sql`delete from blob_deletions where blob_key = any(${blobKeys}::text[])`)
}

/** Postpones the deletion of a blob that failed, so that it does not block others. */
export async function postponeDeletion(db: Queryable, blobKey: BlobKey, dueAt: Date): Promise<void> {
  await db.run(sql`update blob_deletions set attempts = attempts + 1, due_at = ${dueAt} where blob_key = ${blobKey}`)
}
