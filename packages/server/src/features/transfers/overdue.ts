import { formatAmount } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import { publishEvent } from '../../platform/events.ts'
import { forTenant } from '../../platform/work/runner.ts'
import type { Ctx } from './ports.ts'
import { lockTransfer, type TransferRow } from './store.ts'
import { markUndelivered } from './unknown-store.ts'

const hourMs = 3_600_000
/** Partners deliver within minutes, and the slowest within hours. */
const deliveryMsMax = 24 * hourMs
/** A day longer than a refund may take until it is reported as overdue. */
const failingMsMax = 96 * hourMs

/**
 * Reports a transfer whose money left a day ago and did not arrive, whatever its partner says and whether it answers at all: to its owner by an
 * event, and to the operator as unknown. It stays open, and ends when the chain shows the delivery or the refund. Reports it once.
 */
export async function reportOverdue(ctx: Omit<Ctx, 'tenant'>, { id, leftAt }: TransferRow): Promise<void> {
  const now = ctx.clock.now()
  const leftBefore = instantOf(now.getTime() - deliveryMsMax)
  if (leftAt === null || leftAt >= leftBefore) return
  await ctx.db.tx(async (tx) => {
    const transfer = await lockTransfer(tx, id)
    const limits = { now, leftBefore, failingBefore: instantOf(now.getTime() - failingMsMax) }
    if (!(await markUndelivered(tx, id, limits))) return
    const { txHash, partner } = transfer
    const own = forTenant(ctx, transfer)
    const payload = { ...about(transfer), txHash, leftAt: leftAt.toISOString() }
    await publishEvent(own, tx, 'transfer.delivery_overdue', payload)
    await own.audit(tx, {
      action: 'transfers.delivery-overdue',
      target: id,
      details: txHash === null ? {} : { txHash },
    })
    const facts = { transferId: id, partner, txHash, leftAt }
    ctx.log.error(facts, 'the delivery of a transfer is overdue; see purser admin unknown-transfers')
  })
}

/** The facts of a transfer that the events of its overdue money have. */
export function about(transfer: TransferRow) {
  const { id: transactionId, walletId, route, rawAmount, decimals, fromToken: token, fromChain: chain } = transfer
  return { transactionId, walletId, route, amount: formatAmount(rawAmount, decimals), token, chain }
}
