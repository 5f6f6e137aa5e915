import { formatAmount } from '@purser/protocol'
import type { PayoutFailure } from '../../../partners/offramp/port.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import { type ApprovalRow, applyDecisions, markApplied } from '../../approvals/index.ts'
import { dropReservations } from '../../funds/index.ts'
import { releaseGas, releasePolicy } from '../../wallets/index.ts'
import type { Ctx, Deps } from '../ports.ts'
import {
  lockWithdrawal,
  markCompleted,
  markConverted,
  markFailed,
  markReleasedAt,
  setRefund,
  type WithdrawalRow,
} from './store.ts'

export interface Failure {
  readonly reason: string
  /** Null if the partner never controlled the tokens. */
  readonly refund: PayoutFailure['refund'] | null
  /** Whether the tokens never left, so that the spend policy does not count them any more. Tokens that a partner had stay counted. */
  readonly isUnspent?: true
}

/** Fails a withdrawal and publishes its event, once; the caller has locked its row. One that failed before stays as it is. */
export async function end(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'publish' | 'tenant'>,
  tx: Tx,
  row: WithdrawalRow,
  { reason, refund, isUnspent }: Failure,
): Promise<void> {
  if (row.status === 'failed') return
  const at = ctx.clock.now()
  const payload = { withdrawalId: row.id, reason, failedAt: at.toISOString() }
  const eventId = await ctx.publish(tx, 'withdrawal.failed', payload)
  if (isUnspent) await releasePolicy(tx, ctx.tenant, row.id, at)
  await releaseGas(tx, row.id)
  await dropReservations(tx, row.id)
  await markFailed(tx, ctx.tenant, row.id, { at, eventId, reason, refund })
  const { walletId: from, transferId } = row
  await ctx.audit(tx, { action: 'withdrawals.failed', target: row.id, details: { from, reason, refund, transferId } })
}

/** Completes a withdrawal and publishes its event; the caller has locked its row. One that is completed stays as it is. */
export async function complete(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'publish' | 'tenant'>,
  tx: Tx,
  row: WithdrawalRow,
): Promise<void> {
  if (row.status === 'completed') return
  const at = ctx.clock.now()
  const { walletId, token, reference } = row
  const amount = formatAmount(row.rawAmount, row.decimals)
  const payload = { withdrawalId: row.id, walletId, amount, token, reference, completedAt: at.toISOString() }
  const eventId = await ctx.publish(tx, 'withdrawal.completed', payload)
  await markCompleted(tx, ctx.tenant, row.id, { at, eventId })
  const failedFor = row.status === 'failed' ? { failedFor: row.reason } : {}
  const details = { from: walletId, amount, token, transferId: row.transferId, ...failedFor }
  await ctx.audit(tx, { action: 'withdrawals.completed', target: row.id, details })
}

/** Marks that the partner has converted the tokens and pays out the money. */
export async function recordConversion(
  ctx: Pick<Ctx, 'clock' | 'publish' | 'tenant'>,
  tx: Tx,
  row: WithdrawalRow,
): Promise<void> {
  await markConverted(tx, ctx.tenant, row.id)
  await publishUpdated(ctx, tx, { ...row, status: 'conversion_complete' })
}

/** Stores what the partner reports of the tokens of a failed withdrawal since then, such as that it sent them back. */
export async function recordRefund(
  ctx: Pick<Ctx, 'clock' | 'publish' | 'tenant'>,
  tx: Tx,
  row: WithdrawalRow,
  refund: PayoutFailure['refund'],
): Promise<void> {
  await setRefund(tx, ctx.tenant, row.id, refund)
  await publishUpdated(ctx, tx, { ...row, refund })
}

async function publishUpdated(
  ctx: Pick<Ctx, 'clock' | 'publish'>,
  tx: Tx,
  { id, walletId, status, refund }: WithdrawalRow,
): Promise<void> {
  const updatedAt = ctx.clock.now().toISOString()
  await ctx.publish(tx, 'withdrawal.updated', { withdrawalId: id, walletId, status, refund, updatedAt })
}

/** Lets withdrawals begin that were approved, and fails those that were not: nothing of them has reached the partner. */
export const applyWithdrawalDecisions: RecurringTask<Deps> = applyDecisions<Deps>({
  name: 'withdrawals.apply-approvals',
  kinds: ['withdrawal'],
  begin: (ctx, approval) => apply(ctx, approval, undefined),
  end: apply,
})

function apply(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'publish' | 'tenant'>,
  approval: ApprovalRow,
  reason: string | undefined,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const row = await lockWithdrawal(tx, ctx.tenant, id('wdr').parse(approval.subjectId))
    const now = ctx.clock.now()
    if (!(await markApplied(tx, approval.id, now))) return
    if (reason === undefined) await markReleasedAt(tx, ctx.tenant, row.id, now)
    else await end(ctx, tx, row, { reason, refund: null, isUnspent: true })
  })
}
