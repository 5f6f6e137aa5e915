import { instantOf } from '../../../platform/clock.ts'
import type { Recurring } from '../../../platform/job.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import type { Ctx, Deps } from '../ports.ts'
import { nextPollMs } from './backoff.ts'
import { type DueRow, isAnyDue, setNextPoll, takeDue } from './due-store.ts'
import { follow } from './follow.ts'
import { findWithdrawal } from './store.ts'

const most = 20
/** Delay before a poll is retried that failed, or whose process died. */
const retryMs = 30_000

/**
 * Continues every withdrawal that is due or has a hint from its partner. Idempotent: each step is taken under the withdrawal's row lock,
 * from its rows.
 */
export const followWithdrawals: Recurring<Deps> = {
  name: 'withdrawals.follow',
  everyMs: 1_000,
  isDue: ({ clock }) => isAnyDue(clock.now()),
  async run(ctx) {
    const now = ctx.clock.now()
    const due = await takeDue(ctx.db, { now, until: instantOf(now.getTime() + retryMs), most })
    await Promise.all(due.map((row) => followOne(ctx, row)))
  },
}

async function followOne(system: Omit<Ctx, 'tenant'>, { id: withdrawalId, ...tenant }: DueRow): Promise<void> {
  const ctx = forTenant(system, tenant)
  try {
    await follow(ctx, withdrawalId)
    const row = await findWithdrawal(ctx.db, ctx.tenant, withdrawalId)
    if (row === undefined) return
    const now = ctx.clock.now().getTime()
    const waitMs = nextPollMs(row, now - row.createdAt.getTime())
    await setNextPoll(ctx.db, ctx.tenant, withdrawalId, waitMs === undefined ? null : instantOf(now + waitMs))
  } catch (error) {
    ctx.log.warn({ err: error, withdrawalId }, 'a withdrawal could not continue; retrying')
  }
}
