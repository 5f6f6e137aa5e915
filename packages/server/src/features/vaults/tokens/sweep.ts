import type { Recurring } from '../../../platform/job.ts'
import { deleteExpiredTokens } from './store.ts'

/** Deletes expired tokens. Running it again is harmless. */
export const sweepVaultTokens: Recurring = {
  name: 'vaults.sweep-tokens',
  everyMs: 600_000,
  run: async (ctx) => {
    await deleteExpiredTokens(ctx.db, ctx.clock.now())
  },
}
