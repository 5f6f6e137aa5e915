import { bindOperations } from '../../platform/operation.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import type { Deps } from './ports.ts'
import { sessionOperations } from './routes.ts'
import { sessionRecurring } from './sessions.ts'

export { sessionOperations } from './routes.ts'
export { sessionRecurring } from './sessions.ts'

/** Builds the feature. */
export function createSessions(deps: Deps) {
  return { operations: bindOperations(deps, sessionOperations), loops: bindTasks(deps, sessionRecurring) }
}
