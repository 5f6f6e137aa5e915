import type { Ctx } from '../../../platform/ctx.ts'
import type { Id } from '../../../platform/ids.ts'
import { appendVaultEvent } from '../events.ts'
import { giveBack } from '../quota.ts'
import { lockWritable, type VaultId } from '../vault.ts'
import { fail } from './errors.ts'
import { deleteFileRow, queueDeletion } from './store.ts'

/** Takes a file out of a vault that is not sealed and gives its bytes back; the bytes themselves are deleted by the sweep. */
export function deleteFile(ctx: Ctx, vaultId: VaultId, fileId: Id<'fil'>): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    const file = await deleteFileRow(tx, ctx.tenant, vaultId, fileId)
    if (file === undefined) throw fail('file-not-found')
    await queueDeletion(tx, file.blobKey, ctx.clock.now())
    const { name, size, sha256 } = file
    const payload = { fileId, name, size, sha256 }
    await appendVaultEvent(tx, ctx, vault, { type: 'file.deleted', payload, grown: { files: -1, bytes: -size } })
    await giveBack(tx, ctx, { storageBytes: size })
  })
}
