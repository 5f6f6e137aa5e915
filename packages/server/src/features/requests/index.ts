import { bindOperations } from '../../platform/operation.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import type { Deps } from './ports.ts'
import { expireRequests } from './recorder.ts'
import { requestOperations } from './routes.ts'

export { startRequestLog } from './recorder.ts'
export { requestOperations } from './routes.ts'

/** Builds the feature. */
export function createRequests(deps: Deps) {
  return { operations: bindOperations(deps, requestOperations), loops: bindTasks(deps, [expireRequests]) }
}
