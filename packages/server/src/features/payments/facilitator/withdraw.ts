import type { PaymentId } from '../../../platform/ids.ts'
import { relays } from '../../relayer/index.ts'
import type { Ctx } from '../ports.ts'
import { paymentPurpose } from '../relay.ts'
import { recordFailed } from '../settlement-outcome.ts'

/** The failure reason of a settlement that no transaction carried. */
const withdrawnReason = 'settlement_withdrawn'

/**
 * Ends a settlement for good unless a transaction that may still be mined carries it, and returns whether it ended it. It takes
 * the relay's lock, as the relayer does before it plans, so that a buyer who received the failure is never charged afterwards.
 */
export function withdrawSettlement(ctx: Ctx, paymentId: PaymentId): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    if (!(await relays.withdraw(tx, paymentPurpose, paymentId))) return false
    await recordFailed(ctx, tx, [{ id: paymentId, status: 'voided', reason: withdrawnReason }])
    return true
  })
}
