import type { Ctx } from '../../../platform/ctx.ts'
import type { PaymentId } from '../../../platform/ids.ts'
import { relays } from '../../relayer/index.ts'
import { paymentPurpose } from '../relay.ts'
import { requestSettlement } from '../settle.ts'
import { recordSettled } from '../settlement-outcome.ts'
import { markCharged, settling } from '../settlement-store.ts'

/**
 * Asks for settlement of an `upto` payment with what is really owed, in the token's smallest unit; at most what was permitted. The first
 * charge counts: a later one, whatever it says, joins the settlement that is under way. Nothing owed is settled at once, without a
 * transaction.
 */
export async function chargeUpto(ctx: Ctx, paymentId: PaymentId, amount: bigint): Promise<void> {
  await ctx.db.tx(async (tx) => {
    const payment = await markCharged(tx, paymentId, amount, ctx.clock.now())
    if (payment === undefined) return
    if (amount === 0n) return recordSettled(ctx, tx, [{ id: paymentId, txHash: null, gasNanoUsd: 0n }])
    await relays.enqueue(tx, paymentPurpose, settling(paymentId))
  })
  await requestSettlement(ctx, paymentId)
}
