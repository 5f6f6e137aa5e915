import type { Ctx } from '../../platform/ctx.ts'
import { giveBack } from './quota.ts'
import { deleteVaults } from './store.ts'
import { lockPresent, type VaultId } from './vault.ts'

/**
 * Deletes a vault with all that it holds, whatever its status, and gives its counts back. Its files' bytes are queued for
 * deletion in the same transaction. The audit log keeps that it was deleted, and by whom: its own events are gone.
 */
export function deleteVault(ctx: Ctx, vaultId: VaultId): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const { persistedAt, bytes, manifestHash } = await lockPresent(tx, ctx, vaultId)
    await deleteVaults(tx, ctx.tenant, [vaultId], ctx.clock.now())
    const held = persistedAt === null ? { activeVaults: 1 } : { persistedVaults: 1 }
    await giveBack(tx, ctx, { ...held, storageBytes: bytes })
    await ctx.audit(tx, { action: 'vaults.delete', target: vaultId, details: { bytes, manifestHash } })
    tx.afterCommit(() => ctx.vaultNews?.(vaultId))
  })
}
