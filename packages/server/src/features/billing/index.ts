import { bindOperations } from '../../platform/operation.ts'
import type { Deps } from './ports.ts'
import { billingOperations } from './routes.ts'

export { getUsage } from './billing.ts'
export type { Deps as BillingDeps } from './ports.ts'
export { billingOperations } from './routes.ts'
export { Usage } from './schema.ts'

/** Builds the feature. */
export function createBilling(deps: Deps) {
  return { operations: bindOperations(deps, billingOperations) }
}
