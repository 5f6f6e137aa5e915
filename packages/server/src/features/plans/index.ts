export { areStale, type CoinPrices, parseCoinPrices, shippedCoinPrices } from './coin-prices.ts'
export { countOrRefuse } from './count.ts'
export { gasErrors, limitError, planErrors } from './errors.ts'
export { gasLeft, hasGasLeft, reserveForEach } from './gas.ts'
export { createGasPrices, type GasPrices } from './gas-prices.ts'
export { changeGasLast, type GasChange, gasLockName } from './gas-store.ts'
export { type Plan, PlanName, planNames, plans, unlimited } from './plans.ts'
export type { Deps as PlanDeps } from './ports.ts'
export { dayOf, monthAround, monthOf, periodOf, quotas, type UsageKind, usageKinds } from './quotas.ts'
export type { Recount } from './recount.ts'
export {
  addToCounter,
  type CounterToCheck,
  changeCounters,
  correctCounter,
  type Drift,
  findDrift,
  listSharers,
  lockCounter,
  planOf,
  sharedLockName,
  sharersOf,
  usedOf,
} from './store.ts'
export { reportThresholds } from './thresholds.ts'
export { UsageFigure, usageOf } from './usage.ts'
