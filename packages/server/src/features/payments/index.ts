import { bindOperations } from '../../platform/operation.ts'
import { type RecurringTask, repeatWhile } from '../../platform/recurring-task.ts'
import { measureSpareTime } from '../../platform/spare-time.ts'
import { createByOwner } from '../../platform/work/by-owner.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import { deleteExpiredCallers } from './challenge.ts'
import { facilitatorOperations } from './facilitator/routes.ts'
import { followTransactions } from './methods/mpp-tempo/follow.ts'
import type { ChainMemory, Deps, UnsettledChecks } from './ports.ts'
import { createRecorder, openPerPayerMax } from './record.ts'
import { followRefunds } from './refunds/tasks.ts'
import { createReleaseLimit } from './release-limit.ts'
import { countNextQuarter, markQuarters, recountChanged } from './rollups/rollup-store.ts'
import { paymentOperations } from './routes.ts'
import { createSettlements } from './settle.ts'
import { paymentRelays } from './settlement-outcome.ts'
import { createAttemptCounts, deleteExpiredAttempts } from './statistics/attempts.ts'
import { voidUnsettled } from './void.ts'

export { challenge, challengeSeconds, deleteExpiredCallers } from './challenge.ts'
export { payableTokens } from './credential.ts'
export { isCustomerPayment } from './customer-payment.ts'
export { facilitatorOperations } from './facilitator/routes.ts'
export { getPayment, paymentLogExists, paymentRecount, paymentsOfLogs, sealReceipt } from './logs.ts'
export type { Deps as PaymentDeps } from './ports.ts'
export { createRecorder } from './record.ts'
export { paymentOperations, verifyingErrors } from './routes.ts'
export { Payment } from './schema.ts'
export { type BuyingPayment, buyingErrors, lockBuyingPayment } from './session.ts'
export { linkPaymentToSession } from './session-store.ts'
export { createSettlements, settlementState } from './settle.ts'
export { verifyPayment } from './verify.ts'
export { voidUnsettled } from './void.ts'

/**
 * Counts payments of past quarters of an hour, and again those quarters in which payments changed later. Two runs at once are harmless: both
 * lock the state, and the snapshot of the second one refuses to continue.
 */
const rollUpPayments: RecurringTask = {
  name: 'payments.roll-up',
  everyMs: 60_000,
  run: async (ctx) => {
    await markQuarters(ctx.db)
    await repeatWhile(ctx, () => countNextQuarter(ctx.db))
    await recountChanged(ctx.db, ctx.stopping)
  },
}

interface PaymentSettings {
  readonly verifiedMsMax: number
  readonly releasedPerDayMin: number | undefined
  /** Called after the commit of settlements for the relayer to send. */
  readonly onSettlementWanted: () => void
}

/** Creates an empty memory of chain data. */
export function createChainMemory(): ChainMemory {
  return { checkedDomains: new Set(), uptoNetworks: new Set(), sponsorFunds: new Map(), payerFunds: new Map() }
}

/** Creates the state of the checks of unsettled payments, for a process that has made none yet. */
export function createUnsettledChecks(): UnsettledChecks {
  return { cursors: new Map(), search: createByOwner() }
}

/** Builds the feature. */
export function createPayments(
  needs: Omit<
    Deps,
    'recordPayment' | 'settlements' | 'chainMemory' | 'unsettledChecks' | 'releaseLimit' | 'attemptCounts'
  >,
  { verifiedMsMax, releasedPerDayMin, onSettlementWanted }: PaymentSettings,
) {
  const limits = { nanoUsdPerDayMax: needs.settleNanoUsdPerDayMax, openPerPayerMax, verifiedMsMax }
  const deps: Deps = {
    ...needs,
    recordPayment: createRecorder(needs, limits, measureSpareTime()),
    settlements: createSettlements(needs, onSettlementWanted),
    chainMemory: createChainMemory(),
    unsettledChecks: createUnsettledChecks(),
    releaseLimit: createReleaseLimit(needs.clock, releasedPerDayMin),
    attemptCounts: createAttemptCounts(needs),
  }
  return {
    deps,
    operations: bindOperations(deps, [...paymentOperations, ...facilitatorOperations]),
    loops: bindTasks(deps, [
      voidUnsettled,
      rollUpPayments,
      deleteExpiredCallers,
      deleteExpiredAttempts,
      followTransactions,
      followRefunds,
    ]),
    stop: deps.attemptCounts.stop,
    relays: [paymentRelays(deps)],
  }
}
