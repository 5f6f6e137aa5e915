import type { Id } from '../../../platform/ids.ts'
import { appendVaultEvent } from '../events.ts'
import type { Ctx } from '../ports.ts'
import { releaseCounts } from '../quota.ts'
import type { VaultId } from '../schema.ts'
import { lockWritable } from '../vault.ts'
import { fail } from './errors.ts'
import { deleteFileRow, queueDeletion } from './store.ts'

/** Removes a file from a vault that is not sealed and frees its storage; the sweep deletes its blob. */
export function deleteFile(ctx: Ctx, vaultId: VaultId, fileId: Id<'fil'>): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    const file = await deleteFileRow(tx, ctx.tenant, vaultId, fileId)
    if (file === undefined) throw fail('file-not-found')
    await queueDeletion(tx, file.blobKey, ctx.clock.now())
    const { name, size, sha256 } = file
    const payload = { fileId, name, size, sha256 }
    await appendVaultEvent(tx, ctx, vault, { type: 'file.deleted', payload, growth: { files: -1, bytes: -size } })
    await releaseCounts(tx, ctx, { storageBytes: size })
  })
}
