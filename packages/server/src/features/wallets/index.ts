export { depositOperations } from './deposits/routes.ts'
export { type DepositWatcher, startDepositWatcher } from './deposits/watcher.ts'
export { legacyErrors, walletErrors } from './errors.ts'
export { LegacyCoin, placeOf as legacyPlaceOf } from './legacy/coins.ts'
export { requireLegacyWallet } from './legacy/legacy.ts'
export { createAccountSigners } from './managed/signing.ts'
export { findSource, lockSource, type SourceWallet } from './managed/source-store.ts'
export { PolicyDocument, type PolicyOperation } from './policy/document.ts'
export { policyErrors } from './policy/errors.ts'
export { overridePolicy } from './policy/policies.ts'
export {
  type OutgoingMovement,
  policyWouldDeny,
  releasePolicy,
  reservePolicy,
  underPolicy,
} from './policy/reserve.ts'
export { createWalletPorts } from './real-ports.ts'
export {
  createWalletDirectory,
  getPayableWallet,
  type ReceivingWallet,
  type WalletDirectory,
  type WalletId,
} from './receiving.ts'
export { walletRecounts } from './recount.ts'
export { walletOperations } from './routes.ts'
export { EvmAddress } from './schema.ts'
export { frozenAmountOf } from './screening/deposit-store.ts'
export { screeningJobs, screeningRecurring } from './screening/jobs.ts'
export { walletSweeps } from './sweep/jobs.ts'
export { startSweepLanes, sweepHandler } from './sweep/lane.ts'
