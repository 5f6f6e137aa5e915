import type { Recurring } from '../../../platform/job.ts'
import type { Deps } from '../ports.ts'
import { deleteExpiredTokens } from './store.ts'

/** Deletes expired tokens. Running it again is harmless. */
export const sweepVaultTokens: Recurring<Deps> = {
  name: 'vaults.sweep-tokens',
  everyMs: 600_000,
  run: async (ctx) => {
    await deleteExpiredTokens(ctx.db, ctx.clock.now())
  },
}
