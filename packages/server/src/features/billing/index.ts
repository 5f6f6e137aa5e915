import { bindOperations } from '../../platform/operation.ts'
import type { Deps } from './ports.ts'
import { billingOperations } from './routes.ts'

export type { Deps as BillingDeps } from './ports.ts'
export { billingOperations, getUsage, Usage } from './routes.ts'

/** Builds the feature. */
export function createBilling(deps: Deps) {
  return { operations: bindOperations(deps, billingOperations) }
}
