import type { Ctx } from '../../../platform/ctx.ts'
import type { PaymentId } from '../../../platform/ids.ts'
import { recordSettled } from '../settlement-outcome.ts'
import { markCharged } from '../settlement-store.ts'

/**
 * Asks for settlement of an `upto` payment with what is really owed, in the token's smallest unit; at most what was permitted. The first
 * charge counts: a later one, whatever it says, joins the settlement that is under way. Nothing owed is settled at once, without a
 * transaction.
 */
export async function chargeUpto(ctx: Ctx, paymentId: PaymentId, amount: bigint): Promise<void> {
  if (amount > 0n) {
    await markCharged(ctx.db, paymentId, amount, ctx.clock.now())
    return ctx.settlements.ask(paymentId)
  }
  await ctx.db.tx(async (tx) => {
    const charged = await markCharged(tx, paymentId, amount, ctx.clock.now())
    if (charged !== undefined) await recordSettled(ctx, tx, [charged], null)
  })
}
