export { type DueChecks, type DueCursors, listDueChecks, withShareOwners } from './due-checks-store.ts'
export {
  areStale,
  type CoinPrices,
  costOfReceipt,
  createGasPrices,
  type GasPrices,
  isWorthLess,
  parseCoinPrices,
  shippedCoinPrices,
} from './gas-prices.ts'
export { freePlan, type Plan, PlanName, planNames, plans, unlimited } from './plans.ts'
export type { Deps as PlanDeps } from './ports.ts'
export type { Recount, Sharers } from './quotas.ts'
export {
  dayOf,
  gasErrors,
  limitError,
  monthAround,
  periodOf,
  planErrors,
  quotas,
  type UsageKind,
  usageKinds,
} from './quotas.ts'
export {
  addToCounter,
  type CounterToCheck,
  changeCounters,
  changeGasLast,
  correctCounter,
  countedOf,
  type Drift,
  findDrift,
  type GasChange,
  gasByDay,
  gasLockName,
  isCounted,
  lockCounter,
  paymentsLockName,
  planOf,
  sharedLockName,
  shareOwnerSql,
  sharersOf,
  sharersWith,
  usedOf,
} from './store.ts'
export { countOrRefuse, gasLeft, hasGasLeft, reportThresholds, reserveForEach, UsageFigure, usageOf } from './usage.ts'
