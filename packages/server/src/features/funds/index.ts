import { bindLoops } from '../../platform/work/runner.ts'
import { pruneReservations } from './jobs.ts'
import type { Deps } from './ports.ts'

export {
  bytesOf,
  type Coin,
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
export { areCovered, type Claim, contended, retryOnContention, type Want } from './reserve.ts'
export type { AmountOnHold, HoldQuestion } from './snapshot.ts'
export {
  createReadFunds,
  encodeAllowance,
  type Funds,
  hasCaughtUp,
  type Place,
  type Snapshot,
  type Spendable,
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
