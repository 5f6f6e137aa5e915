import type { Ctx } from '../../../platform/ctx.ts'
import type { PaymentId } from '../../../platform/ids.ts'
import { relays } from '../../relayer/index.ts'
import { paymentPurpose } from '../relay.ts'
import { recordFailed } from '../settlement-outcome.ts'

/** Why a settlement ended that no transaction carried. */
const withdrawnReason = 'settlement_withdrawn'

/**
 * Ends a settlement for good if no transaction carries it that may still be mined, and answers whether it was ended. It takes the relay's lock, as the
 * relayer does before it plans, so that a buyer who learns of the failure is never charged afterwards.
 */
export function withdrawSettlement(ctx: Ctx, paymentId: PaymentId): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    if (!(await relays.withdraw(tx, paymentPurpose, paymentId))) return false
    await recordFailed(ctx, tx, [{ id: paymentId, status: 'voided', reason: withdrawnReason }])
    return true
  })
}
