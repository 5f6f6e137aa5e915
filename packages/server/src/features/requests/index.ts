import { bindOperations } from '../../platform/operation.ts'
import { bindLoops } from '../../platform/work/runner.ts'
import { sweepRequests } from './jobs.ts'
import type { Deps } from './ports.ts'
import { requestOperations } from './routes.ts'

export { startRequestLog } from './recorder.ts'
export { requestOperations } from './routes.ts'

/** Builds the feature. */
export function createRequests(deps: Deps) {
  return { operations: bindOperations(deps, requestOperations), loops: bindLoops(deps, [sweepRequests]) }
}
