import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { appendVaultEvent } from './events.ts'
import type { VaultRow } from './store.ts'

/**
 * Tells that a vault will end within the hour, to webhooks and, unless it is sealed, to its stream: `vault.sealed` is a
 * stream's last event. The caller holds the row and has cleared, or clears, what made it due.
 */
export async function tellExpiring(tx: Tx, ctx: Ctx, vault: VaultRow): Promise<VaultRow> {
  if (vault.expiresAt === null) throw new Error('a persisted vault does not expire')
  const payload = { expiresAt: vault.expiresAt.toISOString() }
  await ctx.publish(tx, 'vault.expiring', { vaultId: vault.id, ...payload })
  return tellStream(tx, ctx, vault, { type: 'vault.expiring', payload })
}

/** Appends to the stream of a vault that still has one. */
export async function tellStream(
  tx: Tx,
  ctx: Ctx,
  vault: VaultRow,
  happening: Parameters<typeof appendVaultEvent>[3],
): Promise<VaultRow> {
  return vault.sealedAt === null ? (await appendVaultEvent(tx, ctx, vault, happening)).vault : vault
}
