import type { Recurring } from '../../../platform/job.ts'
import { deleteExpiredTokens } from './store.ts'

/** Forgets tokens that open nothing any more. Deleting what is deleted changes nothing. */
export const sweepVaultTokens: Recurring = {
  name: 'vaults.sweep-tokens',
  everyMs: 600_000,
  run: async (ctx) => {
    await deleteExpiredTokens(ctx.db, ctx.clock.now())
  },
}
