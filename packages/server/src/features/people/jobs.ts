import { instantOf } from '../../platform/clock.ts'
import type { Recurring } from '../../platform/job.ts'
import { sweepMails } from './mail-store.ts'
import type { Deps } from './ports.ts'
import { sweepEnded } from './store.ts'

const keptMs = 86_400_000

/** Deletes sessions, links, proofs and mails a day after they ended. Idempotent. */
export const sweepSignIns: Recurring<Deps> = {
  name: 'people.sweep-sign-ins',
  everyMs: 600_000,
  async run(ctx) {
    const before = instantOf(ctx.clock.now().getTime() - keptMs)
    await sweepEnded(ctx.db, before)
    await sweepMails(ctx.db, before)
  },
}
