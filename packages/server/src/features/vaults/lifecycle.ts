import { publishEvents } from '../../platform/events.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { forTenant } from '../../platform/work/runner.ts'
import {
  isAnyVaultDue,
  listTenantsWithDueVaults,
  lockExpired,
  lockExpiring,
  markExpiringReported,
} from './expiry-store.ts'
import { inTurns } from './in-turns.ts'
import { publishExpiring } from './lifetime.ts'
import type { Ctx, Deps } from './ports.ts'
import { releaseCounts } from './quota.ts'
import type { VaultId } from './schema.ts'
import { deleteVaults } from './store.ts'
import { lockPresent } from './vault.ts'

/** Most vaults per transaction. */
const batchMax = 50

/**
 * Reports vaults that end within the hour, and deletes those that have expired. One transaction locks each, reports it, and marks
 * or deletes it, so that any number of processes, killed at any moment, report it once. What became due while all of them were
 * down is reported in order when one is back.
 */
export const followVaults: RecurringTask<Deps> = {
  name: 'vaults.follow',
  everyMs: 2_000,
  isDue: ({ clock }) => isAnyVaultDue(clock.now()),
  run: async (ctx, detach) => {
    const now = ctx.clock.now()
    const tenants = await ctx.db.tx((tx) => listTenantsWithDueVaults(tx, now, ctx.dueVaultsPlace), {
      readsInOrder: true,
    })
    const message = 'due vaults could not be processed; they stay due'
    await inTurns(tenants, (tenant) => followTenant(forTenant(ctx, tenant)), {
      log: ctx.log,
      message,
      stopping: detach?.stopping,
    })
  },
}

/** Reports and ends a batch of a tenant's vaults each; returns whether more may be due. */
async function followTenant(ctx: Ctx): Promise<boolean> {
  const counts = [await reportBatch(ctx), await expireBatch(ctx)]
  return counts.includes(batchMax)
}

function reportBatch(ctx: Pick<Ctx, 'clock' | 'db' | 'publish' | 'random' | 'tenant' | 'vaultNews'>): Promise<number> {
  return ctx.db.tx(async (tx) => {
    const due = await lockExpiring(tx, ctx.tenant, { now: ctx.clock.now(), limit: batchMax })
    await markExpiringReported(
      tx,
      ctx.tenant,
      due.map(({ id }) => id),
    )
    for (const vault of due) await publishExpiring(tx, ctx, vault)
    return due.length
  })
}

function expireBatch(
  ctx: Pick<Ctx, 'clock' | 'db' | 'eventsCommitted' | 'random' | 'tenant' | 'vaultNews'>,
): Promise<number> {
  return ctx.db.tx(async (tx) => {
    const expired = await lockExpired(tx, ctx.tenant, { now: ctx.clock.now(), limit: batchMax })
    if (expired.length === 0) return 0
    const unannounced = expired.filter(({ expiringDue }) => expiringDue !== null)
    const expiring = unannounced.map(({ id, expiresAt }) => ({ vaultId: id, expiresAt: expiresAt.toISOString() }))
    const ended = expired.map(({ id, expiresAt }) => ({ vaultId: id, expiredAt: expiresAt.toISOString() }))
    await publishEvents(ctx, tx, 'vault.expiring', expiring)
    await publishEvents(ctx, tx, 'vault.expired', ended)
    await deleteVaults(
      tx,
      ctx.tenant,
      expired.map(({ id }) => id),
    )
    const storageBytes = expired.reduce((sum, { bytes }) => sum + bytes, 0)
    await releaseCounts(tx, ctx, { activeVaults: expired.length, storageBytes })
    tx.afterCommit(() => {
      for (const { id } of expired) ctx.vaultNews?.(id)
    })
    return expired.length
  })
}

/**
 * Deletes a vault, whatever its status, and releases its counts. The same transaction queues its contents for deletion. The audit log records who
 * deleted it: its own events are gone.
 */
export function deleteVault(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'tenant' | 'vaultNews'>,
  vaultId: VaultId,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const { persistedAt, bytes, manifestHash } = await lockPresent(tx, ctx, vaultId)
    await deleteVaults(tx, ctx.tenant, [vaultId])
    const counts = persistedAt === null ? { activeVaults: 1 } : { persistedVaults: 1 }
    await releaseCounts(tx, ctx, { ...counts, storageBytes: bytes })
    await ctx.audit(tx, { action: 'vaults.delete', target: vaultId, details: { bytes, manifestHash } })
    tx.afterCommit(() => ctx.vaultNews?.(vaultId))
  })
}
