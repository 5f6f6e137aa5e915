import type { OffRamp, Payout, PayoutFailure } from '../../../partners/offramp/port.ts'
import { findTransfer } from '../../transfers/index.ts'
import type { Ctx } from '../ports.ts'
import { isOwed } from './backoff.ts'
import { begin, partnerOf } from './begin.ts'
import { deleteHint } from './due-store.ts'
import { complete, converted, end, refunded } from './end.ts'
import { progressOf } from './progress.ts'
import { findWithdrawal, lockWithdrawal, setPartnerStatus, type WithdrawalId, type WithdrawalRow } from './store.ts'

/**
 * Advances a withdrawal by one step, from its rows only: to its transfer, then with the transfer's outcome, then with the partner's status.
 * Idempotent, also over several processes.
 */
export async function follow(ctx: Ctx, withdrawalId: WithdrawalId): Promise<void> {
  const row = await findWithdrawal(ctx.db, ctx.tenant, withdrawalId)
  if (row === undefined || (row.status === 'failed' && !isOwed(row))) return
  if (row.transferId === null || row.payoutId === null) return begin(ctx, row)
  const transfer = await findTransfer(ctx.db, ctx.tenant, row.transferId)
  if (transfer?.status === 'failed' && row.status !== 'failed')
    return endUndelivered(ctx, row, transfer.reason ?? 'reverted')
  if (transfer?.status === 'confirmed') await followPayout(ctx, row, row.payoutId)
}

/**
 * Fails a withdrawal whose tokens never reached the partner, which then owes nothing. If the partner has reported completion, that status
 * stays.
 */
function endUndelivered(ctx: Ctx, { id: withdrawalId }: WithdrawalRow, reason: string): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const row = await lockWithdrawal(tx, ctx.tenant, withdrawalId)
    const unspent = reason === 'not-received' ? {} : { isUnspent: true as const }
    if (row.status !== 'completed') await end(ctx, tx, row, { reason, refund: null, ...unspent })
  })
}

async function followPayout(ctx: Ctx, row: WithdrawalRow, payoutId: string): Promise<void> {
  const partner: OffRamp = partnerOf(ctx, row)
  const readAt = ctx.clock.now()
  const payout = await partner.readPayout(payoutId)
  const about = { partner: partner.name, withdrawalId: row.id }
  if (payout === undefined) ctx.log.warn(about, 'the partner does not know a payout that it created; waiting')
  else await applyStatus(ctx, row.id, payout)
  await deleteHint(ctx.db, { partner: partner.name, payoutId }, readAt)
}

/** Stores the partner's status in the row, in one transaction with its event. */
function applyStatus(ctx: Ctx, withdrawalId: WithdrawalId, payout: Payout): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const row = await lockWithdrawal(tx, ctx.tenant, withdrawalId)
    const progress = progressOf(row.status, payout.state)
    if (progress === 'stale') return
    await setPartnerStatus(tx, ctx.tenant, row.id, payout)
    if (isOwed(row) && payout.failure?.refund === 'done') await refunded(ctx, tx, row)
    if (progress === 'same') return
    if (payout.state === 'conversion_complete') await converted(ctx, tx, row)
    if (payout.state === 'completed') await complete(ctx, tx, row)
    if (payout.state !== 'failed') return
    const reason = progress === 'returned' ? 'payout-returned' : 'payout-failed'
    await end(ctx, tx, row, { reason, refund: refundOf(payout) })
  })
}

/** The refund state of tokens that the partner has received, whatever status the payout has. */
function refundOf({ failure }: Payout): PayoutFailure['refund'] {
  const refund = failure?.refund ?? 'expected'
  return refund === 'none' ? 'held' : refund
}
