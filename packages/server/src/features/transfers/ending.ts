import { formatAmount } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { publishEvent } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { releasePolicy } from '../wallets/index.ts'
import { arrivedOf } from './arrived.ts'
import { lockTransfer, markEnded, markTold, type TransferId, type TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/** Ends a transfer for good: confirmed, or failed for this reason. Told by an event where the answer said, or will say, something else. */
export async function end(ctx: Work, tx: Tx, transferId: TransferId, fault: string | undefined): Promise<void> {
  const now = ctx.clock.now()
  await markEnded(tx, transferId, { status: fault === undefined ? 'confirmed' : 'failed', reason: fault ?? null, now })
  const ended = await lockTransfer(tx, transferId)
  if (isBack(ended)) await releasePolicy(tx, ended, transferId, now)
  if (isToBeTold(ended)) await tell(ctx, tx, ended)
}

/** Whether the money is where it was; what a token, Tempo's guard or a partner took and did not deliver has left the wallet, and stays counted. */
function isBack({ status, reason }: TransferRow): boolean {
  return status === 'failed' && reason !== 'not-received' && reason !== 'partner-failed'
}

/** A bridge that took the money is always told of: whoever asked was told at most that it is under way. */
function isToBeTold(transfer: TransferRow): boolean {
  if (transfer.route === 'partner-bridge' && transfer.leftAt !== null) return true
  return transfer.answered !== null && !isAsTold(transfer)
}

/** A block that was told of may be undone, and the next one say something else. */
function isAsTold({ answered, status }: TransferRow): boolean {
  return answered === (status === 'confirmed' ? 'confirmed' : 'reverted')
}

/** Tells how a transfer ended, once; the caller holds its row. */
export async function tell(ctx: Work, tx: Tx, transfer: TransferRow): Promise<void> {
  if (transfer.eventId !== null || transfer.endedAt === null) return
  const own = forTenant(ctx, transfer)
  const eventId =
    transfer.status === 'confirmed'
      ? await publishEvent(own, tx, 'transfer.completed', completed(transfer))
      : await publishEvent(own, tx, 'transfer.failed', failed(transfer))
  await markTold(tx, transfer.id, eventId)
}

function completed(transfer: TransferRow) {
  return {
    transactionId: transfer.id,
    walletId: transfer.walletId,
    route: transfer.route,
    fromChain: transfer.fromChain,
    toChain: transfer.toChain,
    amount: formatAmount(transfer.rawAmount, transfer.decimals),
    fromToken: transfer.fromToken,
    toToken: transfer.toToken,
    ...arrivedOf(transfer),
    txHash: transfer.txHash,
    confirmedAt: (transfer.confirmedAt ?? transfer.endedAt)?.toISOString(),
  }
}

function failed(transfer: TransferRow) {
  const { id: transactionId, walletId, route, reason, refundTxHash, refundedAt } = transfer
  return { transactionId, walletId, route, reason, refundTxHash, refundedAt: refundedAt?.toISOString() ?? null }
}
