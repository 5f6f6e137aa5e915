import type { HdCurve } from '@purser/protocol'
import { bindOperations } from '../../platform/operation.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import type { Recount } from '../plans/index.ts'
import { countingChildAddresses } from './children/store.ts'
import { readRecovered } from './deposits/recovered.ts'
import { depositOperations } from './deposits/routes.ts'
import { countingMasterWallets } from './managed/store.ts'
import { countUsage } from './policy/count-usage.ts'
import type { Deps } from './ports.ts'
import { createWalletPorts, type WalletPorts } from './real-ports.ts'
import { walletOperations } from './routes.ts'
import { screeningRecurring } from './screening/tasks.ts'
import { countingByoWallets } from './store.ts'
import { walletSweeps } from './sweep/auto.ts'
import { sweepRelays } from './sweep/relay.ts'
import { tempoSweepHandler } from './sweep/tempo.ts'

export { createDeriveAddress, recoverChildAddress } from './children/children.ts'
export { isVirtual } from './deposits/booking.ts'
export { depositOperations } from './deposits/routes.ts'
export { startDepositWatcher } from './deposits/watcher.ts'
export { failNamed as failWallet, legacyErrors, policyErrors, walletErrors } from './errors.ts'
export { budgetChange, gasOfGasless, isGasless, signGasless } from './gasless.ts'
export { legacyWalletWithCoin } from './legacy/coin.ts'
export { LegacyCoin, placeOf as legacyPlaceOf } from './legacy/coins.ts'
export { requireLegacyWallet } from './legacy/create.ts'
export {
  createAccountSigners,
  type IndexGaps,
  isManagedAddress,
  moveIndices,
  type SourceWallet,
} from './managed/source-store.ts'
export { PolicyDocument, type PolicyOperation, policyOperations } from './policy/decide.ts'
export { keepRefusal, underPolicy } from './policy/refusals.ts'
export {
  countGas,
  type Gas,
  type OutgoingMovement,
  type PolicyStanding,
  policyStandings,
  policyWouldDeny,
  releaseGas,
  releasePolicy,
  replaceAmount,
  replaceClaimGas,
  replaceGas,
  reservePolicies,
  reservePolicy,
  reservePolicyAgain,
} from './policy/reserve.ts'
export { overridePolicy } from './policy/routes.ts'
export { lockPolicy, settingActualGas } from './policy/store.ts'
export type { Deps as WalletDeps, ReceivingWallet, WalletId } from './ports.ts'
export { createWalletDirectory, getPayableWallet } from './receiving.ts'
export { walletOperations } from './routes.ts'
export { areLiveDepositsOnHold, releaseHolds } from './screening/holds.ts'
export { hasNoSource } from './screening/next.ts'
export { screeningRecurring } from './screening/tasks.ts'
export { tempoSweepHandler } from './sweep/tempo.ts'

/** Number of wallets of a tenant, registered and managed, and of child addresses, for rebuilding the counters. */
export const walletRecounts: readonly Recount[] = [
  { kind: 'byoWallets', counting: (tenant) => countingByoWallets(tenant) },
  { kind: 'managedWallets', counting: (tenant) => countingMasterWallets(tenant) },
  { kind: 'childAddresses', counting: (tenant) => countingChildAddresses(tenant) },
]

/** Builds the feature; `api` is its contribution to the dependencies of later features. */
export function createWallets(needs: Omit<Deps, keyof WalletPorts>, curve: HdCurve) {
  const api = createWalletPorts(needs, curve)
  const deps: Deps = { ...needs, ...api }
  return {
    api,
    deps,
    operations: bindOperations(deps, [...walletOperations, ...depositOperations]),
    loops: bindTasks(deps, [...screeningRecurring, readRecovered, countUsage, ...walletSweeps]),
    laneHandlers: [tempoSweepHandler(deps)],
    relays: [sweepRelays(deps)],
  }
}
