import type { Tenant } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { Vault, VaultId, VaultStatus } from './schema.ts'
import { lockVault, type VaultRow } from './store.ts'

/** Returns the status. A vault that is sealed and persisted counts as sealed, whichever came first. */
function statusOf(vault: Pick<VaultRow, 'sealedAt' | 'persistedAt'>): VaultStatus {
  if (vault.sealedAt !== null) return 'sealed'
  return vault.persistedAt === null ? 'active' : 'persisted'
}

/** Whether the vault has reached its expiry, whether or not the sweep has deleted it. */
export function isExpired(vault: Pick<VaultRow, 'expiresAt'>, now: Date): boolean {
  return vault.expiresAt !== null && vault.expiresAt <= now
}

/**
 * Locks a vault's row until the transaction ends, whatever its status; refuses one that has expired. The order of locks
 * everywhere in this feature: a vault's queue and its row, then the plan's counters in the order of `usageKinds`, then the audit
 * log's head. A transaction that has locked a counter must not lock a vault that others can lock.
 */
export async function lockPresent(tx: Tx, ctx: Pick<Ctx, 'tenant' | 'clock'>, vaultId: VaultId): Promise<VaultRow> {
  return presentOf(await lockVault(tx, ctx.tenant, vaultId), ctx.clock.now())
}

/** Locks a vault's row, as `lockPresent`. Returns whether there is such a vault and it has not expired. */
export async function isPresent(tx: Tx, ctx: Pick<Ctx, 'tenant' | 'clock'>, vaultId: VaultId): Promise<boolean> {
  const vault = await lockVault(tx, ctx.tenant, vaultId)
  return vault !== undefined && !isExpired(vault, ctx.clock.now())
}

function presentOf(vault: VaultRow | undefined, now: Date): VaultRow {
  if (vault === undefined || isExpired(vault, now)) throw fail('vault-not-found')
  return vault
}

/** Locks a vault for a write: refuses a sealed one too. */
export async function lockWritable(tx: Tx, ctx: Pick<Ctx, 'tenant' | 'clock'>, vaultId: VaultId): Promise<VaultRow> {
  return writableOf(await lockVault(tx, ctx.tenant, vaultId), ctx.clock.now())
}

/** Returns a vault whose row is locked; refuses one that takes no writes. */
export function writableOf(row: VaultRow | undefined, now: Date): VaultRow {
  const vault = presentOf(row, now)
  if (vault.sealedAt !== null) throw fail('vault-sealed')
  return vault
}

export function shownVault(tenant: Tenant, row: VaultRow): Vault {
  const { id, createdAt, description, metadata, sessionId, summary, sealedAt, persistedAt, manifestHash } = row
  return {
    id,
    organisationId: tenant.organisationId,
    status: statusOf(row),
    createdAt,
    description,
    metadata,
    sessionId,
    ttl: row.expiresAt,
    summary,
    sealedAt,
    persistedAt,
    manifestHash,
  }
}
