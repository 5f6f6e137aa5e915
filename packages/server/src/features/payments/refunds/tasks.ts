import { formatAmount } from '@purser/protocol'
import type { ActingCtx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { listTransferEnds, type TransferOutcome } from '../../transfers/index.ts'
import type { Ctx, Deps } from '../ports.ts'
import { addRefunded, isAnyDue, lockRefundable, markRefundEnded, type RefundRow, takeDue } from './store.ts'

/** Most refunds of one run. */
const perRunMax = 200

/**
 * Ends refunds whose transfers have ended. The transfer of a young refund is read each second, that of an old one each minute. Running it again is
 * harmless: a refund ends once, under its payment's lock.
 */
export const followRefunds: RecurringTask<Deps> = {
  name: 'payments.follow-refunds',
  everyMs: 1_000,
  isDue: ({ clock }) => isAnyDue(clock.now()),
  async run(ctx) {
    const list = { now: ctx.clock.now(), most: perRunMax, cursors: ctx.unsettledChecks.cursors }
    await endAll(ctx, await ctx.db.tx((tx) => takeDue(tx, list), { readsInOrder: true }))
  },
}

type System = Omit<Ctx, 'tenant'>

/** Ends each refund in its own transaction: one that cannot be written does not block the others. */
async function endAll(system: ActingCtx & Pick<System, 'db' | 'log'>, rows: readonly RefundRow[]): Promise<void> {
  if (rows.length === 0) return
  const ends = await listTransferEnds(
    system.db,
    rows.map(({ transferId }) => transferId),
  )
  for (const row of rows) {
    const outcome = ends.get(row.transferId)
    if (outcome === undefined) continue
    const ctx = forTenant(system, row)
    await ctx.db
      .tx((tx) => end(ctx, tx, row, outcome))
      .catch((error: unknown) =>
        ctx.log.error({ err: error, refundId: row.id }, 'a refund could not be ended; retrying'),
      )
  }
}

async function end(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'publish' | 'tenant'>,
  tx: Tx,
  row: RefundRow,
  outcome: TransferOutcome,
): Promise<void> {
  const payment = await lockRefundable(tx, ctx.tenant, row.paymentId)
  if (payment === undefined) throw new Error('a payment disappeared')
  const at = ctx.clock.now()
  const status = outcome.isDelivered ? 'completed' : 'failed'
  if ((await markRefundEnded(tx, row.id, { status, at })) === 0) return
  // Money that was sent and did not arrive stays counted: a second refund of it would pay twice.
  if (outcome.isInWallet) await addRefunded(tx, row.paymentId, -row.rawAmount)
  const { id: refundId, paymentId, transferId, decimals, token, chain, payer, reason } = row
  const amount = formatAmount(row.rawAmount, decimals)
  const { txHash } = outcome
  if (outcome.isDelivered) {
    const totalRefunded = formatAmount(payment.refundedRaw, decimals)
    const refunded = { paymentId, refundId, transferId, amount, totalRefunded, token, chain, payer, reason, txHash }
    await ctx.publish(tx, 'payment.refunded', { ...refunded, refundedAt: at.toISOString() })
  }
  await ctx.audit(tx, {
    action: `payments.refund.${status}`,
    target: refundId,
    details: { paymentId, transferId, amount, txHash },
  })
}
