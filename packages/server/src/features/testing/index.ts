import { bindOperations } from '../../platform/operation.ts'
import { testDepositHandler } from './deposits.ts'
import type { Deps } from './ports.ts'
import { testOperations } from './routes.ts'

export { testOperations } from './routes.ts'

/** Builds the feature. */
export function createTesting(deps: Deps) {
  return { deps, operations: bindOperations(deps, testOperations), laneHandlers: [testDepositHandler(deps)] }
}

export type { Deps as TestingDeps } from './ports.ts'
