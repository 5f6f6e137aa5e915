import { bindLoops } from '../../platform/work/runner.ts'
import { type Deps, pruneReservations } from './jobs.ts'

export type { AmountOnHold, HoldQuestion } from './deposit-book.ts'
export { type Deps as FundDeps, pruneReservations } from './jobs.ts'
export {
  bytesOf,
  type Coin,
  contendedBy,
  encodeAllowance,
  feeInToken,
  feeOfCall,
  feeOfCalls,
  feeOfGas,
  fundErrors,
  gasLimitOf,
  nativeCoinOf,
  needOf,
  type Prices,
  payGas,
  plainFee,
  plainGas,
  refuseShort,
  retryOnContention,
  topUpOf,
} from './needs.ts'
export {
  areCovered,
  type Claim,
  createReadFunds,
  type Funds,
  lockCovered,
  type Snapshot,
  type Spendable,
  waitForDeposits,
  withFunds,
} from './snapshot.ts'
export {
  assignReservations,
  authorizeReservation,
  countOpenAuthorizations,
  dropReservations,
  endAllowances,
  endReservations,
  insertReservations,
  keepAllowances,
  lockOwners,
  markAllowancesGone,
  type NewReservation,
  type WalletAsset,
  type Want,
} from './store.ts'

/** Builds the feature. */
export function createFunds(deps: Deps) {
  return { loops: bindLoops(deps, [pruneReservations]) }
}
