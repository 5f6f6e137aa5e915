export {
  bytesOf,
  type Coin,
  costOf,
  feeInToken,
  feeOfCall,
  gasLimitOf,
  type Need,
  type Prices,
  plainFee,
  plainGas,
  shortagesOf,
  topUpOf,
} from './fees.ts'
export { pruneReservations } from './jobs.ts'
export type { AmountOnHold, HoldQuestion } from './ports.ts'
export { areCovered, type Claim, contended, retryOnContention, type Want } from './reserve.ts'
export {
  type Funds,
  hasCaughtUp,
  type Place,
  readFunds,
  type Snapshot,
  waitForDeposits,
} from './snapshot.ts'
export {
  assignReservations,
  authorizeReservation,
  dropReservations,
  endReservations,
  insertReservations,
  lockOwners,
  type NewReservation,
} from './store.ts'
