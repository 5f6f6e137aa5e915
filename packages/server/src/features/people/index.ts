import { instantOf } from '../../platform/clock.ts'
import { bindOperations } from '../../platform/operation.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import { deleteExpiredMails } from './mail-store.ts'
import type { Deps } from './ports.ts'
import { peopleOperations } from './routes.ts'
import { deleteExpiredProofs, deleteExpiredSignIns } from './store.ts'

export { makeSignInLink } from './links.ts'
export { peopleOperations } from './routes.ts'
export { openSignIn, type SignIn } from './sign-in.ts'
export type { SendMail } from './sign-in-options.ts'
export { hasAccount, listEndedSessions } from './store.ts'

const keptMs = 86_400_000
/** Nothing reads a proof that has ended; the clock of another process may be behind. */
const proofKeptMs = 600_000

/** Deletes sessions, links and mails a day after they ended, and proofs after ten minutes. Idempotent. */
const deleteEndedSignIns: RecurringTask<Deps> = {
  name: 'people.sweep-sign-ins',
  everyMs: 600_000,
  async run(ctx) {
    const now = ctx.clock.now().getTime()
    const before = instantOf(now - keptMs)
    await deleteExpiredProofs(ctx, instantOf(now - proofKeptMs))
    await deleteExpiredSignIns(ctx, before)
    await deleteExpiredMails(ctx, before)
  },
}

/** Builds the feature. */
export function createPeopleOperations(deps: Deps) {
  return { operations: bindOperations(deps, peopleOperations), loops: bindTasks(deps, [deleteEndedSignIns]) }
}
