import type { PaymentId } from '../../../../platform/ids.ts'
import { relays } from '../../../relayer/index.ts'
import type { Ctx } from '../../ports.ts'
import { paymentPurpose } from '../../relay.ts'
import { requestSettlement } from '../../settle.ts'
import { recordSettled } from '../../settlement-outcome.ts'
import { markCharged, settling } from '../../settlement-store.ts'

/**
 * Requests settlement of an `upto` payment with the amount owed, in the token's smallest unit; at most what was permitted. Only
 * the first charge counts: a later one, whatever its amount, joins the settlement in progress. If nothing is owed it is settled
 * at once, without a transaction.
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
