import type { Ctx } from './ports.ts'
import { releaseCounts } from './quota.ts'
import type { VaultId } from './schema.ts'
import { deleteVaults } from './store.ts'
import { lockPresent } from './vault.ts'

/**
 * Deletes a vault with its contents, whatever its status, and releases its counts. The same transaction queues its files' blobs
 * for deletion. The audit log records who deleted it: its own events are gone.
 */
export function deleteVault(ctx: Ctx, vaultId: VaultId): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const { persistedAt, bytes, manifestHash } = await lockPresent(tx, ctx, vaultId)
    await deleteVaults(tx, ctx.tenant, [vaultId], ctx.clock.now())
    const counts = persistedAt === null ? { activeVaults: 1 } : { persistedVaults: 1 }
    await releaseCounts(tx, ctx, { ...counts, storageBytes: bytes })
    await ctx.audit(tx, { action: 'vaults.delete', target: vaultId, details: { bytes, manifestHash } })
    tx.afterCommit(() => ctx.vaultNews?.(vaultId))
  })
}
