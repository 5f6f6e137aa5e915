import type { Ctx } from './ports.ts'
import type { Vault, VaultChange, VaultId } from './schema.ts'
import { describeVault } from './store.ts'
import { lockWritable, shownVault } from './vault.ts'

/**
 * Changes the description and the metadata of a vault that is not sealed. The seal does not cover them, and no event reports the
 * change.
 */
export function changeVault(ctx: Ctx, vaultId: VaultId, change: VaultChange): Promise<Vault> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    const { description = vault.description, metadata = vault.metadata } = change
    await describeVault(tx, ctx.tenant, { id: vaultId, description, metadata })
    return shownVault(ctx.tenant, { ...vault, description, metadata })
  })
}
