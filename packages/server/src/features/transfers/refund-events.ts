import type { Tx } from '../../platform/db/db.ts'
import { publishEvent } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import type { EndingCtx } from './ending.ts'
import { about } from './overdue.ts'
import type { Ctx } from './ports.ts'
import { markRefundOverdue } from './refund-store.ts'
import type { TransferRow } from './store.ts'
import { markOverdue } from './unknown-store.ts'

type Work = Omit<Ctx, 'tenant'>

/** Reports once that a partner failed and has not refunded the money in time. The transfer stays open; the caller has locked its row. */
export async function publishRefundOverdue(
  ctx: Work,
  tx: Tx,
  transfer: TransferRow,
  failingSince: Date,
): Promise<void> {
  const own = forTenant(ctx, transfer)
  const { txHash } = transfer
  const payload = { ...about(transfer), txHash, failingSince: failingSince.toISOString() }
  await markOverdue(tx, transfer.id, ctx.clock.now())
  await markRefundOverdue(tx, transfer.id, await publishEvent(own, tx, 'transfer.refund_overdue', payload))
  const details = txHash === null ? {} : { txHash }
  await own.audit(tx, { action: 'transfers.refund-overdue', target: transfer.id, details })
}

/** Reports the refund of a transfer that was reported as overdue; the transfer ends in the same transaction. */
export async function publishRefunded(
  ctx: EndingCtx,
  tx: Tx,
  transfer: TransferRow,
  refundTxHash: string | undefined,
): Promise<void> {
  const payload = { ...about(transfer), refundTxHash: refundTxHash ?? null, refundedAt: ctx.clock.now().toISOString() }
  await publishEvent({ ...ctx, tenant: transfer }, tx, 'transfer.refunded', payload)
}
