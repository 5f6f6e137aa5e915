import { formatAmount } from '@purser/protocol'
import type { z } from 'zod'
import type { PaymentId } from '../../../platform/ids.ts'
import type { Page } from '../../../platform/operation.ts'
import { openCursor, pageOf } from '../../../platform/wire.ts'
import { approvalStates } from '../../approvals/index.ts'
import { findTransfers } from '../../transfers/index.ts'
import { refusePayment } from '../archived.ts'
import { fail } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import { findPayment } from '../store.ts'
import type { Refund, RefundQuery } from './schema.ts'
import { listRefunds, type RefundRow } from './store.ts'

/** Refunds of a payment, newest first, whatever their status. Throws `payment-not-found`. */
export async function pageOfRefunds(
  ctx: Ctx,
  paymentId: PaymentId,
  { limit, cursor }: z.output<typeof RefundQuery>,
): Promise<Page<z.input<typeof Refund>>> {
  if ((await findPayment(ctx.db, ctx.tenant, paymentId)) === undefined)
    return refusePayment(ctx.db, ctx.tenant, paymentId, fail('payment-not-found'))
  const rows = await listRefunds(ctx.db, ctx.tenant, paymentId, { limit, after: openCursor(cursor) })
  const { items, next } = pageOf(rows, limit, (row) => row.id)
  return { items: await shownRefunds(ctx, items), next }
}

/** The refunds with the wallet, the hash and the approval of their transfers, in the order of the rows. */
export async function shownRefunds(ctx: Ctx, rows: readonly RefundRow[]): Promise<z.input<typeof Refund>[]> {
  const found = await findTransfers(
    ctx.db,
    ctx.tenant,
    rows.map(({ transferId }) => transferId),
  )
  const approvals = await approvalStates(ctx, found)
  const transfers = new Map(found.map((transfer) => [transfer.id, transfer]))
  return rows.map((row) => {
    const transfer = transfers.get(row.transferId)
    if (transfer === undefined) throw new Error('a refund without its transfer')
    return {
      id: row.id,
      paymentId: row.paymentId,
      transferId: row.transferId,
      fromWalletId: transfer.walletId,
      toAddress: row.payer,
      amount: formatAmount(row.rawAmount, row.decimals),
      token: row.token,
      chain: row.chain,
      reason: row.reason,
      status: row.status,
      txHash: transfer.txHash,
      approval: approvals.get(transfer.approvalId) ?? null,
      createdAt: row.createdAt,
      completedAt: row.status === 'completed' ? row.endedAt : null,
    }
  })
}
