import { instantOf } from '../../platform/clock.ts'
import type { Recurring } from '../../platform/job.ts'
import type { Deps } from './ports.ts'
import { sweepEnded } from './store.ts'

const keptMs = 86_400_000

/** Forgets sessions, links and proofs a day after they ended. Deleting what is deleted changes nothing. */
export const sweepSignIns: Recurring<Deps> = {
  name: 'people.sweep-sign-ins',
  everyMs: 600_000,
  run: (ctx) => sweepEnded(ctx.db, instantOf(ctx.clock.now().getTime() - keptMs)),
}
