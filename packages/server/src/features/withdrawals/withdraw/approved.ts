import { id } from '../../../platform/ids.ts'
import type { Recurring } from '../../../platform/job.ts'
import { type ApprovalRow, applyDecisions, markApplied } from '../../approvals/index.ts'
import type { Ctx, Deps } from '../ports.ts'
import { end } from './end.ts'
import { lockWithdrawal, markReleasedAt } from './store.ts'

/** Lets withdrawals begin that were approved, and fails those that were not: nothing of them has reached the partner. */
export const applyWithdrawalDecisions: Recurring<Deps> = applyDecisions<Deps>({
  name: 'withdrawals.apply-approvals',
  kinds: ['withdrawal'],
  begin: (ctx, approval) => apply(ctx, approval, undefined),
  end: apply,
})

function apply(ctx: Ctx, approval: ApprovalRow, reason: string | undefined): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const row = await lockWithdrawal(tx, ctx.tenant, id('wdr').parse(approval.subjectId))
    const now = ctx.clock.now()
    if (!(await markApplied(tx, approval.id, now))) return
    if (reason === undefined) await markReleasedAt(tx, ctx.tenant, row.id, now)
    else await end(ctx, tx, row, { reason, refund: null, isUnspent: true })
  })
}
