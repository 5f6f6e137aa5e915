import { createHash } from 'node:crypto'
import { type BlobKey, BlobTooLarge, newBlobKey, type StoredBlob } from '../../../files/index.ts'
import { shareOwnerOf } from '../../../platform/ctx.ts'
import { failPlatform, type Problem } from '../../../platform/errors.ts'
import { isId, newId } from '../../../platform/ids.ts'
import type { StreamRequest } from '../../../platform/operation.ts'
import { releaseChunks } from '../../../platform/release-chunks.ts'
import { type Plan, planOf } from '../../plans/index.ts'
import { fail as failVault } from '../errors.ts'
import { appendVaultEvent, refuseFullStream } from '../events.ts'
import type { Ctx } from '../ports.ts'
import { refuseOver, refuseUnsealable, reserveQuota } from '../quota.ts'
import type { VaultFile, VaultId } from '../schema.ts'
import { vaultSemaphores } from '../semaphores.ts'
import { findVault, type VaultRow } from '../store.ts'
import { lockWritable } from '../vault.ts'
import { type ClaimedDigest, checkOf, readContentDigest, watched } from './digest.ts'
import { fail } from './errors.ts'
import { type FormFile, readForm, readResponse } from './form.ts'
import { formBytesMax } from './form-parser.ts'
import { fileUrl } from './link.ts'
import { inTime, type Reservation, reserve, withinQuota } from './reserve.ts'
import { findFileById, forgetDeletions, insertFile, queueDeletion, type StoredFile, takeUpload } from './store.ts'

/**
 * Streams a file into a vault, never whole in memory. Refuses before it reads a byte, where it can. The blob's
 * key is recorded in a row before it is stored. One transaction binds it to the vault, counts it, writes its event and commits
 * the Idempotency-Key. If the upload or the process ends before that, nothing counts, and the row names the blob for the sweep.
 */
export async function uploadFile(ctx: Ctx, vaultId: VaultId, request: StreamRequest): Promise<VaultFile> {
  try {
    const claimed = readContentDigest(request.headers['content-digest'])
    const plan = await refuseEarly(ctx, vaultId, request)
    const blobKey = newBlobKey(ctx.random)
    const reservation = await reserve(ctx, plan, { blobKey, vaultId, announced: announcedBytes(request) })
    try {
      const received = await receive(ctx, { ...request, claimed }, reservation)
      return shownFile(ctx, vaultId, await bindFile(ctx, vaultId, received))
    } catch (error) {
      await giveUp(ctx, blobKey)
      throw error instanceof BlobTooLarge ? tooLarge(ctx, plan) : error
    }
  } catch (error) {
    readResponse(request.stream)
    throw error
  }
}

async function refuseEarly(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant' | 'upgradeUrl'>,
  vaultId: VaultId,
  request: StreamRequest,
): Promise<Plan> {
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  if (vault === undefined) throw failVault('vault-not-found')
  if (vault.sealedAt !== null) throw failVault('vault-sealed')
  const plan = await planOf(ctx.db, ctx.tenant.organisationId)
  refuseIfFull(ctx, plan, vault)
  if ((announcedBytes(request) ?? 0) > plan.fileBytes + formBytesMax) throw tooLarge(ctx, plan)
  return plan
}

/** Returns the announced bytes of the whole body, if any. */
function announcedBytes({ headers }: Pick<StreamRequest, 'headers'>): number | undefined {
  const announced = Number(headers['content-length'])
  return Number.isSafeInteger(announced) ? announced : undefined
}

/** Applies the plan's limit and the limit of a seal, which no plan exceeds. */
function refuseIfFull(ctx: Pick<Ctx, 'upgradeUrl'>, plan: Plan, vault: VaultRow): void {
  refuseOver(ctx, 'files-per-vault-exceeded', plan.filesPerVault, vault.fileCount)
  refuseUnsealable(ctx, 'files-per-vault-exceeded', vault)
  refuseFullStream(vault)
}

function tooLarge(ctx: Pick<Ctx, 'upgradeUrl'>, plan: Plan): Problem {
  return fail('file-too-large', { limit: plan.fileBytes, upgradeUrl: ctx.upgradeUrl })
}

interface Received {
  readonly file: Pick<FormFile, 'name' | 'mimeType'>
  readonly blob: StoredBlob
}

/**
 * Stores the form's file and checks the claimed digests: a part's own digest covers the file, and the request's digest covers the
 * whole body as the specification defines it, or the file, which is all that most senders can compute. The content ends when the whole body has
 * arrived, and a mismatch ends it with an error, so that a small file is refused before the storage gets it.
 */
function receive(
  ctx: Ctx,
  { claimed, ...request }: StreamRequest & { readonly claimed: readonly ClaimedDigest[] },
  reservation: Reservation,
): Promise<Received> {
  const [ofBody, ofFile] = [checkOf(claimed), checkOf(claimed)]
  if (claimed.length > 0) request.stream?.on('data', ofBody.update)
  return readForm(request, async ({ content, claimed: ofItself, ...file }) => {
    const ofPart = checkOf(ofItself)
    const isChecked = ofItself.length + claimed.length > 0
    const verify = (): void => {
      const isAsClaimed = [ofBody, ofFile].some((check) => check.matches())
      if (!isAsClaimed || !ofPart.matches()) throw fail('digest-mismatch')
    }
    const read = inTime(ctx, releaseChunks(isChecked ? watched(content, [ofPart, ofFile], verify) : content))
    const as = { key: reservation.blobKey, bytesMax: reservation.plan.fileBytes, owner: shareOwnerOf(ctx) }
    const blob = await ctx.blobs.put(withinQuota(ctx, reservation, read), as)
    return { file, blob }
  })
}

/** Creates the file; nothing else does. Locks the vault's row, then the counter, as everywhere in this feature. */
function bindFile(ctx: Ctx, vaultId: VaultId, { file, blob }: Received): Promise<StoredFile> {
  const bind = async () => {
    await ctx.refuseEnded?.()
    return ctx.db.tx(async (tx) => {
      const vault = await lockWritable(tx, ctx, vaultId)
      const plan = await planOf(tx, ctx.tenant.organisationId)
      refuseIfFull(ctx, plan, vault)
      if (!(await takeUpload(tx, ctx.tenant, blob.key))) throw failPlatform('request-timeout')
      const { key: blobKey, size, sha256 } = blob
      const bound = { id: newId('fil', ctx), ...file, size, sha256, blobKey, createdAt: ctx.clock.now() }
      await insertFile(tx, ctx.tenant, vaultId, bound)
      const payload = { fileId: bound.id, name: file.name, mimeType: file.mimeType, size, sha256 }
      await appendVaultEvent(tx, ctx, vault, { type: 'file.added', payload, growth: { files: 1, bytes: size } })
      await reserveQuota(tx, ctx, plan, { kind: 'storageBytes', count: size })
      await ctx.idempotency?.commit(tx, bound.id, contentOf(file, sha256))
      return bound
    })
  }
  return ctx.withSemaphores(vaultSemaphores(ctx.tenant, vaultId), bind)
}

/**
 * Abandons a failed upload, or leaves it to the sweep if that fails. Two statements: the second sees what a binding that the
 * first waited for has committed, so that a file whose transaction only seemed to fail keeps its blob.
 */
async function giveUp(ctx: Pick<Ctx, 'blobs' | 'clock' | 'db' | 'log' | 'tenant'>, blobKey: BlobKey): Promise<void> {
  try {
    const isQueued = await ctx.db.tx(async (tx) => {
      await takeUpload(tx, ctx.tenant, blobKey)
      return queueDeletion(tx, ctx.tenant, blobKey, ctx.clock.now())
    })
    if (!isQueued) return
    await ctx.blobs.delete(blobKey)
    await forgetDeletions(ctx.db, [blobKey])
  } catch (error) {
    // Its row, of the upload or of the deletion, still exists, and the sweep finds the blob by it; the caller reports the first
    // error.
    ctx.log.warn({ err: error, blobKey }, 'a failed upload could not be abandoned yet')
  }
}

/**
 * Returns the bytes that the Idempotency-Key's fingerprint covers: name, type and SHA-256 of the file. The raw body does not serve, because its form
 * boundary differs each time.
 */
function contentOf({ name, mimeType }: Pick<FormFile, 'name' | 'mimeType'>, sha256: string): Uint8Array {
  return Buffer.from(JSON.stringify([name, mimeType, sha256]))
}

/** Reads a repeat to its end and stores nothing of it. */
export async function readRepeat(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant' | 'upgradeUrl'>,
  request: StreamRequest,
): Promise<Uint8Array> {
  const plan = await planOf(ctx.db, ctx.tenant.organisationId)
  try {
    return await readForm(request, async ({ name, mimeType, content }) => {
      const hash = createHash('sha256')
      let size = 0
      for await (const chunk of inTime(ctx, releaseChunks(content))) {
        size += chunk.byteLength
        if (size > plan.fileBytes) throw tooLarge(ctx, plan)
        hash.update(chunk)
      }
      return contentOf({ name, mimeType }, hash.digest('hex'))
    })
  } catch (error) {
    readResponse(request.stream)
    throw error
  }
}

async function shownFile(ctx: Ctx, vaultId: VaultId, stored: StoredFile): Promise<VaultFile> {
  const { id, name, mimeType, size, sha256, createdAt } = stored
  const vault = await findVault(ctx.db, ctx.tenant, vaultId, ctx.clock.now())
  const vaultEnd = vault === undefined ? ctx.clock.now() : vault.expiresAt
  const url = fileUrl(ctx, { vaultId, fileId: id, vaultEnd })
  return { id, name, mimeType, size, sha256, url, createdAt }
}

/** Returns the file that an Idempotency-Key created, if the first response was never stored. */
export async function presentFile(ctx: Ctx, fileId: string): Promise<VaultFile> {
  const found = isId('fil', fileId) ? await findFileById(ctx.db, ctx.tenant, fileId) : undefined
  if (found === undefined) throw fail('file-not-found')
  return shownFile(ctx, found.vaultId, found)
}
