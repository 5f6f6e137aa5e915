import { bindOperations } from '../../platform/operation.ts'
import { bindLoops } from '../../platform/work/runner.ts'
import { sweepSignIns } from './jobs.ts'
import type { Deps } from './ports.ts'
import { peopleOperations } from './routes.ts'

export { makeSignInLink } from './links.ts'
export { peopleOperations } from './routes.ts'
export { openSignIn, type SignIn } from './sign-in.ts'
export type { SendMail } from './sign-in-options.ts'
export { hasAccount, listEndedSessions } from './store.ts'

/** Builds the feature. */
export function createPeopleOperations(deps: Deps) {
  return { operations: bindOperations(deps, peopleOperations), loops: bindLoops(deps, [sweepSignIns]) }
}
