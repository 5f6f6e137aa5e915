import type { Tx } from '../../platform/db/db.ts'
import { appendVaultEvent } from './events.ts'
import type { Ctx } from './ports.ts'
import type { VaultRow } from './store.ts'

/**
 * Reports that a vault ends within the hour, to webhooks and, unless it is sealed, to its stream: `vault.sealed` is a stream's
 * last event. The caller has locked the row and clears the due time of the report.
 */
export async function publishExpiring(tx: Tx, ctx: Ctx, vault: VaultRow): Promise<VaultRow> {
  if (vault.expiresAt === null) throw new Error('a persisted vault does not expire')
  const payload = { expiresAt: vault.expiresAt.toISOString() }
  await ctx.publish(tx, 'vault.expiring', { vaultId: vault.id, ...payload })
  return appendUnlessSealed(tx, ctx, vault, { type: 'vault.expiring', payload })
}

/** Appends an event to the vault's stream unless the vault is sealed. */
export async function appendUnlessSealed(
  tx: Tx,
  ctx: Ctx,
  vault: VaultRow,
  happening: Parameters<typeof appendVaultEvent>[3],
): Promise<VaultRow> {
  return vault.sealedAt === null ? (await appendVaultEvent(tx, ctx, vault, happening)).vault : vault
}
