import { bindOperations } from '../../platform/operation.ts'
import type { Deps } from './ports.ts'
import { chainOperations } from './routes.ts'

export type { Deps as ChainDeps } from './ports.ts'
export { ChainName, chainOperations, fail as failChainName, networkFor } from './routes.ts'

/** Builds the feature. */
export function createChainNames(deps: Deps) {
  return { operations: bindOperations(deps, chainOperations) }
}
