import { bindOperations } from '../../platform/operation.ts'
import type { Deps } from './ports.ts'
import { registryOperations } from './routes.ts'

export { publicRoutes, registryOperations } from './routes.ts'

/** Builds the feature. */
export function createRegistry(deps: Deps) {
  return { deps, operations: bindOperations(deps, registryOperations) }
}

export type { Deps as RegistryDeps } from './ports.ts'
