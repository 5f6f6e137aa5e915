import { bindOperations } from '../../platform/operation.ts'
import type { Deps } from './ports.ts'
import { accountOperations } from './routes.ts'

export { accountOperations } from './routes.ts'

/** Builds the feature. */
export function createAccount(deps: Deps) {
  return { operations: bindOperations(deps, accountOperations) }
}
