import { instantOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { isDeleted, listDeletedTenants, lockPersisted } from './deleted-store.ts'
import { inTurns } from './in-turns.ts'
import type { Ctx, Deps } from './ports.ts'
import { releaseCounts } from './quota.ts'
import { deleteVaults } from './store.ts'

/** Milliseconds for which persisted vaults stay after the deletion of their organisation: as long as it counts to its account's quotas. */
const keptMs = 31 * 86_400_000
/** Most vaults per transaction, and tenants per run. */
const batchMax = 50
const tenantsMax = 500

/**
 * Deletes the persisted vaults of organisations that were deleted a month ago: nobody can read them, and no end of their own deletes them. Each transaction locks the
 * vaults that it deletes and the organisation against a restoration, so that any number of processes delete each vault once.
 */
export const endVaultsOfDeleted: RecurringTask<Deps> = {
  name: 'vaults.end-of-deleted',
  everyMs: 3_600_000,
  run: async (ctx, detach) => {
    const deletedBy = instantOf(ctx.clock.now().getTime() - keptMs)
    const tenants = await listDeletedTenants(ctx.db, deletedBy, tenantsMax)
    const serve = async (tenant: Tenant) => (await endBatch(forTenant(ctx, tenant), deletedBy)) === batchMax
    const message = 'vaults of a deleted organisation could not be deleted; retrying'
    await inTurns(tenants, serve, { log: ctx.log, message, stopping: detach?.stopping })
  },
}

function endBatch(ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'tenant'>, deletedBy: Date): Promise<number> {
  return ctx.db.tx(async (tx) => {
    if (!(await isDeleted(tx, ctx.tenant, deletedBy))) return 0
    const vaults = await lockPersisted(tx, ctx.tenant, batchMax)
    if (vaults.length === 0) return 0
    await deleteVaults(
      tx,
      ctx.tenant,
      vaults.map(({ id }) => id),
    )
    const storageBytes = vaults.reduce((sum, { bytes }) => sum + bytes, 0)
    await releaseCounts(tx, ctx, { persistedVaults: vaults.length, storageBytes })
    for (const { id, bytes, manifestHash } of vaults)
      await ctx.audit(tx, { action: 'vaults.delete', target: id, details: { bytes, manifestHash } })
    return vaults.length
  })
}
