import { bindOperations } from '../../platform/operation.ts'
import { createByOwner } from '../../platform/work/by-owner.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import { removePayoutAccounts } from './bank-accounts/payout-account.ts'
import { bankAccountOperations } from './bank-accounts/routes.ts'
import { deleteExpiredPayoutHints, partnerPages } from './payout-hints/partner-pages.ts'
import type { Deps, WithdrawalPorts } from './ports.ts'
import { applyWithdrawalDecisions } from './withdraw/end.ts'
import { followWithdrawals } from './withdraw/follow.ts'
import { withdrawalOperations } from './withdraw/routes.ts'

export { assignPayoutCustomer, removePayoutAccounts } from './bank-accounts/payout-account.ts'
export { bankAccountOperations } from './bank-accounts/routes.ts'
export { deleteExpiredPayoutHints } from './payout-hints/partner-pages.ts'
export { followWithdrawals } from './withdraw/follow.ts'
export { withdrawalOperations } from './withdraw/routes.ts'

/** Creates the state that the feature keeps in memory for one process. */
export function createWithdrawalPorts(): WithdrawalPorts {
  return { followedWithdrawals: { limits: createByOwner(), cursors: new Map() } }
}

/** Builds the feature; `pages` take the messages of off-ramp partners. */
export function createWithdrawals(needs: Omit<Deps, keyof WithdrawalPorts>) {
  const deps: Deps = { ...needs, ...createWithdrawalPorts() }
  return {
    deps,
    operations: bindOperations(deps, [...bankAccountOperations, ...withdrawalOperations]),
    loops: bindTasks(deps, [
      deleteExpiredPayoutHints,
      followWithdrawals,
      applyWithdrawalDecisions,
      removePayoutAccounts,
    ]),
    pages: partnerPages(deps),
  }
}

export type { Deps as WithdrawalDeps } from './ports.ts'
