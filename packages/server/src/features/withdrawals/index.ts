import { bindOperations } from '../../platform/operation.ts'
import { bindLoops } from '../../platform/work/runner.ts'
import { removePayoutAccounts } from './bank-accounts/remove-payout-accounts.ts'
import { bankAccountOperations } from './bank-accounts/routes.ts'
import { partnerPages } from './payout-hints/bridge-page.ts'
import { sweepPayoutHints } from './payout-hints/jobs.ts'
import type { Deps } from './ports.ts'
import { applyWithdrawalDecisions } from './withdraw/approved.ts'
import { followWithdrawals } from './withdraw/jobs.ts'
import { withdrawalOperations } from './withdraw/routes.ts'

export { assignPayoutCustomer } from './bank-accounts/payout-customer.ts'
export { removePayoutAccounts } from './bank-accounts/remove-payout-accounts.ts'
export { bankAccountOperations } from './bank-accounts/routes.ts'
export { sweepPayoutHints } from './payout-hints/jobs.ts'
export { followWithdrawals } from './withdraw/jobs.ts'
export { withdrawalOperations } from './withdraw/routes.ts'

/** Builds the feature; `pages` take the messages of off-ramp partners. */
export function createWithdrawals(deps: Deps) {
  return {
    deps,
    operations: bindOperations(deps, [...bankAccountOperations, ...withdrawalOperations]),
    loops: bindLoops(deps, [sweepPayoutHints, followWithdrawals, applyWithdrawalDecisions, removePayoutAccounts]),
    pages: partnerPages(deps),
  }
}

export type { Deps as WithdrawalDeps } from './ports.ts'
