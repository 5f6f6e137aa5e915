import type { Tenant } from '../../platform/ctx.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { areContentsLeft, deleteSomeContents, listTenantsWithContents, lockDeletedVaults } from './contents-store.ts'
import { inTurns } from './in-turns.ts'
import type { Deps } from './ports.ts'

/**
 * Deletes the tokens, files, events and documents of deleted vaults, which nothing reads any more. The tenants take turns, each with one small transaction, so that
 * a tenant with millions of events delays nobody, and no statement exceeds the limit of time. Each transaction locks the deleted vaults, so two runs
 * at once do no work twice.
 */
export const deleteVaultContents: RecurringTask<Deps> = {
  name: 'vaults.delete-contents',
  everyMs: 2_000,
  isDue: () => areContentsLeft,
  run: async ({ db, clock, log }, detach) => {
    const serve = (tenant: Tenant): Promise<boolean> =>
      db.tx(
        async (tx) => {
          const vaultIds = await lockDeletedVaults(tx, tenant)
          if (vaultIds.length === 0) return false
          await deleteSomeContents(tx, tenant, { vaultIds, now: clock.now() })
          return true
        },
        { readsByKeys: true },
      )
    const message = 'contents of deleted vaults could not be deleted; they stay queued'
    await inTurns(await listTenantsWithContents(db), serve, { log, message, stopping: detach?.stopping })
  },
}
