import { bindLoops } from '../../platform/work/runner.ts'
import { pruneReservations } from './jobs.ts'
import type { Deps } from './ports.ts'

export type { AmountOnHold, HoldQuestion } from './deposit-book.ts'
export {
  bytesOf,
  type Coin,
  encodeAllowance,
  feeInToken,
  feeOfCall,
  feeOfGas,
  gasLimitOf,
  type Need,
  type Prices,
  plainFee,
  plainGas,
  shortagesOf,
  topUpOf,
} from './fees.ts'
export { pruneReservations } from './jobs.ts'
export type { Deps as FundDeps } from './ports.ts'
export {
  areCovered,
  type Claim,
  contended,
  createReadFunds,
  type Funds,
  hasCaughtUp,
  retryOnContention,
  type Snapshot,
  type Spendable,
  type WalletAsset,
  type Want,
  waitForDeposits,
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
} from './store.ts'

/** Builds the feature. */
export function createFunds(deps: Deps) {
  return { loops: bindLoops(deps, [pruneReservations]) }
}
