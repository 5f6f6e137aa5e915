import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Recurring } from '../../../platform/job.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { type DueRow, setNextLook, takeDue } from './due-store.ts'
import { follow } from './follow.ts'
import { nextLookMs } from './pace.ts'
import { findWithdrawal } from './store.ts'

const most = 20
/** Until a look that failed, or whose process died, is tried again. */
const againMs = 30_000

/**
 * Goes on with every withdrawal that is due or that its partner has news of. Harmless twice: each step is taken under the withdrawal's row,
 * from what the rows say.
 */
export const followWithdrawals: Recurring = {
  name: 'withdrawals.follow',
  everyMs: 1_000,
  async run(ctx) {
    const now = ctx.clock.now()
    const due = await takeDue(ctx.db, { now, until: instantOf(now.getTime() + againMs), most })
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
    const waitMs = nextLookMs(row, now - row.createdAt.getTime())
    await setNextLook(ctx.db, ctx.tenant, withdrawalId, waitMs === undefined ? null : instantOf(now + waitMs))
  } catch (error) {
    ctx.log.warn({ err: error, withdrawalId }, 'a withdrawal could not be gone on with; it will be tried again')
  }
}
