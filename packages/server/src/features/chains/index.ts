import { bindOperations } from '../../platform/operation.ts'
import type { Deps } from './ports.ts'
import { chainOperations } from './routes.ts'

export { networkFor } from './chains.ts'
export { fail as failChainName } from './errors.ts'
export type { Deps as ChainDeps } from './ports.ts'
export { chainOperations } from './routes.ts'
export { ChainName } from './schema.ts'

/** Builds the feature. */
export function createChainNames(deps: Deps) {
  return { operations: bindOperations(deps, chainOperations) }
}
