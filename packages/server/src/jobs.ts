import { compareLanes } from './chain/index.ts'
import { expireApprovals } from './features/approvals/index.ts'
import { pruneReservations } from './features/funds/index.ts'
import { followRefunds, followTransactions, sweepCallers, voidUnsettled } from './features/payments/index.ts'
import { sweepSignIns } from './features/people/index.ts'
import { sweepRequests } from './features/requests/index.ts'
import { sessionRecurring } from './features/sessions/index.ts'
import { transferRecurring } from './features/transfers/index.ts'
import { followVaults, sweepFiles, sweepVaultTokens } from './features/vaults/index.ts'
import { screeningRecurring, walletSweeps } from './features/wallets/index.ts'
import { sweepEvents } from './features/webhooks/index.ts'
import {
  applyWithdrawalDecisions,
  followWithdrawals,
  removePayoutAccounts,
  sweepPayoutHints,
} from './features/withdrawals/index.ts'
import { sweepIdempotencyKeys } from './platform/http/idempotency.ts'
import type { Recurring } from './platform/job.ts'

/** Deletes responses stored for Idempotency-Keys after a day. Idempotent. */
const sweepIdempotency: Recurring = {
  name: 'platform.sweep-idempotency-keys',
  everyMs: 600_000,
  run: async (ctx) => {
    await sweepIdempotencyKeys(ctx.db, ctx.clock.now())
  },
}

/** All recurring work. */
export const recurring: readonly Recurring[] = [
  sweepIdempotency,
  compareLanes,
  pruneReservations,
  voidUnsettled,
  sweepCallers,
  ...sessionRecurring,
  sweepSignIns,
  followTransactions,
  followRefunds,
  followVaults,
  sweepFiles,
  sweepVaultTokens,
  sweepEvents,
  sweepRequests,
  sweepPayoutHints,
  expireApprovals,
  followWithdrawals,
  applyWithdrawalDecisions,
  removePayoutAccounts,
  ...screeningRecurring,
  ...walletSweeps,
  ...transferRecurring,
]
