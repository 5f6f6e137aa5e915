import type { Tx } from '../../platform/db/db.ts'
import { planOf } from '../plans/index.ts'
import { fail } from './errors.ts'
import { appendVaultEvent, refuseFullStream } from './events.ts'
import type { Ctx } from './ports.ts'
import { lockCounters, releaseCounts, reserveQuota } from './quota.ts'
import type { ExtendRequest, Vault, VaultId } from './schema.ts'
import { markPersisted, setLifetime, type VaultRow } from './store.ts'
import { lifetimeFrom } from './ttl.ts'
import { lockPresent, shownVault } from './vault.ts'

/**
 * Gives the vault a new end, counted from now, sealed or not; a shorter time brings the end nearer. The new end is reported
 * again.
 */
export function extendVault(ctx: Ctx, vaultId: VaultId, { ttl }: ExtendRequest): Promise<Vault> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockPresent(tx, ctx, vaultId)
    if (vault.persistedAt !== null) throw fail('vault-persisted')
    if (vault.sealedAt === null) refuseFullStream(vault)
    await lockCounters(tx, ctx, vault)
    const lifetime = lifetimeFrom(ctx, await planOf(tx, ctx.tenant.organisationId), ttl)
    await setLifetime(tx, ctx.tenant, vaultId, lifetime)
    const payload = { expiresAt: lifetime.expiresAt.toISOString() }
    await ctx.publish(tx, 'vault.extended', { vaultId, ...payload })
    const reported = await appendUnlessSealed(tx, ctx, { ...vault, ...lifetime }, { type: 'vault.extended', payload })
    return shownVault(ctx.tenant, lifetime.expiringDue === null ? await publishExpiring(tx, ctx, reported) : reported)
  })
}

/**
 * Keeps the vault until it is deleted, sealed or not. It moves from the plan's active vaults to the persisted ones. Repeating it
 * changes nothing.
 */
export function persistVault(ctx: Ctx, vaultId: VaultId): Promise<Vault> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockPresent(tx, ctx, vaultId)
    if (vault.persistedAt !== null) return shownVault(ctx.tenant, vault)
    await lockCounters(tx, ctx, vault)
    const persistedAt = ctx.clock.now()
    await releaseCounts(tx, ctx, { activeVaults: 1 })
    const plan = await planOf(tx, ctx.tenant.organisationId)
    await reserveQuota(tx, ctx, plan, { kind: 'persistedVaults', count: 1 })
    await markPersisted(tx, ctx.tenant, vaultId, persistedAt)
    const payload = { persistedAt: persistedAt.toISOString() }
    await ctx.publish(tx, 'vault.persisted', { vaultId, ...payload })
    const kept = { ...vault, persistedAt, expiresAt: null, expiringDue: null }
    return shownVault(ctx.tenant, await appendUnlessSealed(tx, ctx, kept, { type: 'vault.persisted', payload }))
  })
}

/**
 * Reports that a vault ends within the hour, to webhooks and, unless it is sealed, to its stream: `vault.sealed` is a stream's
 * last event. The caller has locked the row and clears the due time of the report.
 */
export async function publishExpiring(
  tx: Tx,
  ctx: Pick<Ctx, 'clock' | 'publish' | 'random' | 'tenant' | 'vaultNews'>,
  vault: VaultRow,
): Promise<VaultRow> {
  if (vault.expiresAt === null) throw new Error('a persisted vault does not expire')
  const payload = { expiresAt: vault.expiresAt.toISOString() }
  await ctx.publish(tx, 'vault.expiring', { vaultId: vault.id, ...payload })
  return appendUnlessSealed(tx, ctx, vault, { type: 'vault.expiring', payload })
}

/** Appends an event to the vault's stream unless the vault is sealed. */
async function appendUnlessSealed(
  tx: Tx,
  ctx: Pick<Ctx, 'clock' | 'random' | 'tenant' | 'vaultNews'>,
  vault: VaultRow,
  happening: Parameters<typeof appendVaultEvent>[3],
): Promise<VaultRow> {
  return vault.sealedAt === null ? (await appendVaultEvent(tx, ctx, vault, happening)).vault : vault
}
