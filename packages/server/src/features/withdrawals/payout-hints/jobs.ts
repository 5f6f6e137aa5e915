import { instantOf } from '../../../platform/clock.ts'
import type { Recurring } from '../../../platform/job.ts'
import type { Deps } from '../ports.ts'
import { deleteHintsBefore } from './store.ts'

const keptMs = 7 * 86_400_000

/** Deletes hints after a week: payouts are polled without them too. Idempotent. */
export const sweepPayoutHints: Recurring<Deps> = {
  name: 'withdrawals.sweep-payout-hints',
  everyMs: 3_600_000,
  run: async ({ db, clock }) => {
    await deleteHintsBefore(db, instantOf(clock.now().getTime() - keptMs))
  },
}
