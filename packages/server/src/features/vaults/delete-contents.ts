import type { Tenant } from '../../platform/ctx.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { areContentsLeft, deleteSomeContents, listTenantsWithContents, lockDeletedVaults } from './contents-store.ts'
import type { Deps } from './ports.ts'

/** Most rounds of a run, so that a process that stops waits for few of them; the next run goes on. */
const roundsMax = 100

/**
 * Deletes the tokens, files, events and documents of deleted vaults, which nothing reads any more. The tenants take turns, each with one small transaction, so that
 * a tenant with millions of events delays nobody, and no statement exceeds the limit of time. Each transaction locks the deleted vaults, so two runs
 * at once do no work twice.
 */
export const deleteVaultContents: RecurringTask<Deps> = {
  name: 'vaults.delete-contents',
  everyMs: 2_000,
  isDue: () => areContentsLeft,
  run: async ({ db, clock, log }) => {
    const failed = new Set<string>()
    for (let round = 0; round < roundsMax; round += 1) {
      const tenants = (await listTenantsWithContents(db)).filter((tenant) => !failed.has(nameOf(tenant)))
      if (tenants.length === 0) return
      for (const tenant of tenants) {
        try {
          await db.tx(
            async (tx) => {
              const vaultIds = await lockDeletedVaults(tx, tenant)
              await deleteSomeContents(tx, tenant, { vaultIds, now: clock.now() })
            },
            { readsByKeys: true },
          )
        } catch (error) {
          failed.add(nameOf(tenant))
          log.error({ err: error, ...tenant }, 'contents of deleted vaults could not be deleted; they stay queued')
        }
      }
    }
  },
}

function nameOf({ organisationId, environment }: Tenant): string {
  return `${organisationId}/${environment}`
}
