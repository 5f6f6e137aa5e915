import { instantOf } from '../../platform/clock.ts'
import type { Recurring } from '../../platform/job.ts'
import type { Deps } from './ports.ts'
import { deleteOldRequests } from './store.ts'

const keptMs = 7 * 86_400_000
const batchRowsMax = 5_000

/** Deletes requests after seven days, in batches. Deleting what is deleted changes nothing. */
export const sweepRequests: Recurring<Deps> = {
  name: 'requests.sweep',
  everyMs: 600_000,
  run: async (ctx) => {
    const before = instantOf(ctx.clock.now().getTime() - keptMs)
    while ((await deleteOldRequests(ctx.db, before, batchRowsMax)) === batchRowsMax);
  },
}
