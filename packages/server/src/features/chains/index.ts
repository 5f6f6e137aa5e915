import { bindOperations } from '../../platform/operation.ts'
import type { Deps } from './ports.ts'
import { chainOperations } from './routes.ts'

export {
  fail as failChainName,
  isServiceAddress,
  lostAt,
  networkFor,
  policyGuard,
  refuseServiceAddress,
} from './networks.ts'
export type { Deps as ChainDeps } from './ports.ts'
export { ChainName, chainOperations } from './routes.ts'

/** Builds the feature. */
export function createChainNames(deps: Deps) {
  return { operations: bindOperations(deps, chainOperations) }
}
