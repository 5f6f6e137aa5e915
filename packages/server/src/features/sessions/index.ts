import { bindOperations } from '../../platform/operation.ts'
import { bindLoops } from '../../platform/work/runner.ts'
import { sessionRecurring } from './jobs.ts'
import type { Deps } from './ports.ts'
import { sessionOperations } from './routes.ts'

export { sessionRecurring } from './jobs.ts'
export { sessionOperations } from './routes.ts'

/** Builds the feature. */
export function createSessions(deps: Deps) {
  return { operations: bindOperations(deps, sessionOperations), loops: bindLoops(deps, sessionRecurring) }
}
