import { bindOperations } from '../../platform/operation.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import { expireApprovals } from './decide.ts'
import type { Deps } from './ports.ts'
import { approvalOperations } from './routes.ts'

export { applyDecisions, requestApproval } from './decide.ts'
export type { Deps as ApprovalDeps } from './ports.ts'
export { approvalOperations } from './routes.ts'
export { type ApprovalState, approvalErrors, approvalOf } from './schema.ts'
export { approvalStates } from './show.ts'
export { type ApprovalId, type ApprovalRow, markApplied } from './store.ts'

/** Builds the feature. */
export function createApprovals(deps: Deps) {
  return { operations: bindOperations(deps, approvalOperations), loops: bindTasks(deps, [expireApprovals]) }
}
