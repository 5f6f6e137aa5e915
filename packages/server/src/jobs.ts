import { compareLanes } from './chain/index.ts'
import { pruneReservations } from './features/funds/index.ts'
import { followRefunds, followTransactions, sweepCallers, voidUnsettled } from './features/payments/index.ts'
import { sessionRecurring } from './features/sessions/index.ts'
import { transferRecurring } from './features/transfers/index.ts'
import { followVaults, sweepFiles, sweepVaultTokens } from './features/vaults/index.ts'
import { screeningRecurring, walletSweeps } from './features/wallets/index.ts'
import { sweepEvents } from './features/webhooks/index.ts'
import { followWithdrawals, removePayoutAccounts, sweepPayoutHints } from './features/withdrawals/index.ts'
import { sweepIdempotencyKeys } from './platform/http/idempotency.ts'
import type { Recurring } from './platform/job.ts'

/** Forgets answers kept for Idempotency-Keys after a day. Deleting what is deleted changes nothing. */
const sweepIdempotency: Recurring = {
  name: 'platform.sweep-idempotency-keys',
  everyMs: 600_000,
  run: async (ctx) => {
    await sweepIdempotencyKeys(ctx.db, ctx.clock.now())
  },
}

/** Every piece of work that is due again and again. */
export const recurring: readonly Recurring[] = [
  sweepIdempotency,
  compareLanes,
  pruneReservations,
  voidUnsettled,
  sweepCallers,
  ...sessionRecurring,
  followTransactions,
  followRefunds,
  followVaults,
  sweepFiles,
  sweepVaultTokens,
  sweepEvents,
  sweepPayoutHints,
  followWithdrawals,
  removePayoutAccounts,
  ...screeningRecurring,
  ...walletSweeps,
  ...transferRecurring,
]
