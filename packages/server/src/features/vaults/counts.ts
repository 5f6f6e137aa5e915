import { instantOf } from '../../platform/clock.ts'
import { type RecurringTask, repeatWhile } from '../../platform/recurring-task.ts'
import { addedMax, addUpChanges, checkCounts } from './count-store.ts'
import type { Deps } from './ports.ts'

const checkedEveryMs = 86_400_000
const checksMax = 100

/**
 * Adds pending changes to the vault counters, and once a day compares each tenant's counters with its vaults. Safe to run twice at once: each change
 * is added by the transaction that deletes it, and the numbers are locked while they are compared.
 */
export const countVaults: RecurringTask<Deps> = {
  name: 'vaults.count',
  everyMs: 30_000,
  run: async (ctx) => {
    const { db, clock, log, stopping } = ctx
    await repeatWhile(ctx, async () => (await addUpChanges(db)) === addedMax)
    for (let count = 0; count < checksMax && stopping?.aborted !== true; count++) {
      const now = clock.now()
      const checked = await checkCounts(db, { now, before: instantOf(now.getTime() - checkedEveryMs) })
      if (checked === undefined) return
      if (checked.error !== undefined)
        log.error(
          { ...checked.tenant, err: checked.error },
          'the number of vaults or of their bytes could not be compared with the vaults',
        )
      if (checked.wasWrong)
        log.error(checked.tenant, 'the number of vaults or of their bytes was wrong and is corrected')
    }
  },
}
