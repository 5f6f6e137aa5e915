import { bindOperations } from '../../platform/operation.ts'
import type { Deps } from './ports.ts'
import { registryOperations } from './routes.ts'
import { soldPages } from './sold.ts'

export { publicRoutes, registryOperations } from './routes.ts'

/** Builds the feature; `pages` are the documents of routes that are sold in public. */
export function createRegistry(deps: Deps) {
  return { deps, operations: bindOperations(deps, registryOperations), pages: soldPages(deps) }
}

export type { Deps as RegistryDeps } from './ports.ts'
