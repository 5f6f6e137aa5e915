import type { Ctx, Tenant } from '../../platform/ctx.ts'
import { publishEvents } from '../../platform/events.ts'
import type { Recurring } from '../../platform/job.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { tellExpiring } from './expiring.ts'
import { listTenantsWithDueVaults, lockExpiring, lockLapsed, markExpiringTold } from './lapse-store.ts'
import { giveBack } from './quota.ts'
import { deleteVaults } from './store.ts'

type System = Omit<Ctx, 'tenant'>

/** Vaults of one transaction, and tenants of one round. */
const batchMax = 50
const tenantsMax = 500

/**
 * Tells of vaults that end within the hour, and deletes those whose end has come. Each is held by one transaction that
 * tells and marks, or tells and deletes, so that any number of processes, killed at any moment, tell it once; what was due
 * while all of them were down is told when one is back, in its order.
 */
export const followVaults: Recurring = {
  name: 'vaults.follow',
  everyMs: 2_000,
  run: async (ctx) => {
    for (const tenant of await listTenantsWithDueVaults(ctx.db, ctx.clock.now(), tenantsMax)) {
      try {
        await followTenant(ctx, tenant)
      } catch (error) {
        // One tenant's trouble must not keep the others' vaults.
        ctx.log.error({ err: error, ...tenant }, 'vaults that are due could not be followed; they stay due')
      }
    }
  },
}

async function followTenant(system: System, tenant: Tenant): Promise<void> {
  const ctx = forTenant(system, tenant)
  while ((await tellBatch(ctx)) === batchMax);
  while ((await expireBatch(ctx)) === batchMax);
}

function tellBatch(ctx: Ctx): Promise<number> {
  return ctx.db.tx(async (tx) => {
    const due = await lockExpiring(tx, ctx.tenant, { now: ctx.clock.now(), limit: batchMax })
    for (const vault of due) {
      await markExpiringTold(tx, ctx.tenant, vault.id)
      await tellExpiring(tx, ctx, vault)
    }
    return due.length
  })
}

function expireBatch(ctx: Ctx): Promise<number> {
  return ctx.db.tx(async (tx) => {
    const now = ctx.clock.now()
    const expired = await lockLapsed(tx, ctx.tenant, { now, limit: batchMax })
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
      now,
    )
    const storageBytes = expired.reduce((sum, { bytes }) => sum + bytes, 0)
    await giveBack(tx, ctx, { activeVaults: expired.length, storageBytes })
    tx.afterCommit(() => {
      for (const { id } of expired) ctx.vaultNews?.(id)
    })
    return expired.length
  })
}
