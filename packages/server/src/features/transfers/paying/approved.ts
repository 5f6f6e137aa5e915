import { instantOf } from '../../../platform/clock.ts'
import type { ActingCtx } from '../../../platform/ctx.ts'
import { id } from '../../../platform/ids.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import { type ApprovalId, applyDecisions, approvalStates, markApplied } from '../../approvals/index.ts'
import { end } from '../ending.ts'
import type { Ctx, Deps } from '../ports.ts'
import { lockTransfer, type TransferId, type TransferRow } from '../store.ts'
import { clearPayUntil, isAnyUnused, listUnused, lockPayment, postponeEnd, setPayUntil } from './store.ts'

/** Milliseconds for which a fresh 402 can be paid with an approved payment. Its funds stay reserved until then. */
const payMs = 3_600_000
const endedAtOnce = 50

/** Permits a fresh 402 to be paid with an approved payment, and fails payments that were not approved. */
export const applyPaymentDecisions: RecurringTask<Deps> = applyDecisions<Deps>({
  name: 'transfers.apply-payment-approvals',
  kinds: ['payment'],
  begin: (ctx, approval) => open(ctx, subjectOf(approval), approval.id),
  end: (ctx, approval, reason) =>
    ctx.db.tx(async (tx) => {
      const { id: transferId } = await lockTransfer(tx, subjectOf(approval))
      if (await markApplied(tx, approval.id, ctx.clock.now())) await end(ctx, tx, transferId, reason)
    }),
})

/**
 * Permits a fresh 402 to be paid if the approval was granted and the decision is not applied yet. A caller who learns of the
 * decision by an event or by reading the payment can therefore pay at once.
 */
export async function openIfGranted(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  { id: transferId, approvalId }: TransferRow,
): Promise<void> {
  if (approvalId === null) return
  const state = (await approvalStates(ctx, [{ approvalId }])).get(approvalId)
  if (state?.status === 'granted') await open(ctx, transferId, approvalId)
}

function open(ctx: Pick<Deps, 'db' | 'clock'>, transferId: TransferId, approvalId: ApprovalId): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const now = ctx.clock.now()
    const { endedAt } = await lockTransfer(tx, transferId)
    if (!(await markApplied(tx, approvalId, now)) || endedAt !== null) return
    await setPayUntil(tx, transferId, instantOf(now.getTime() + payMs))
  })
}

/**
 * Ends approved payments for which no fresh 402 came in time, and releases their funds. Idempotent: each is ended under
 * its transfer's lock. One that cannot be ended is tried again ever later and counted in the queue `unused-payments`.
 */
export const endUnusedPayments: RecurringTask<Deps> = {
  name: 'transfers.end-unused-payments',
  everyMs: 1_000,
  isDue: ({ clock }) => isAnyUnused(clock.now()),
  async run(ctx) {
    for (const transferId of await listUnused(ctx.db, ctx.clock.now(), endedAtOnce)) await endUnused(ctx, transferId)
  },
}

/** Ends a payment in its own transaction: one that cannot be ended does not keep the funds of others. */
async function endUnused(ctx: ActingCtx & Pick<Ctx, 'db' | 'log'>, transferId: TransferId): Promise<void> {
  try {
    await ctx.db.tx(async (tx) => {
      await lockTransfer(tx, transferId)
      const { draft, payUntil } = await lockPayment(tx, transferId)
      if (draft !== null || payUntil === null) return
      await clearPayUntil(tx, transferId)
      await end(ctx, tx, transferId, 'approval-unused')
    })
  } catch (error) {
    ctx.log.error(
      { err: error, transferId },
      'an approved payment that was not used could not be ended; trying again later',
    )
    await postponeEnd(ctx.db, transferId, ctx.clock.now())
  }
}

function subjectOf({ subjectId }: { readonly subjectId: string }): TransferId {
  return id('wtx').parse(subjectId)
}
