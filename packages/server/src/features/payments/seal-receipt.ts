import { formatAmount, type JsonObject } from '@purser/protocol'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { findPayment } from './store.ts'

/** What a seal says of the payment that its vault came with, as it is at that moment; undefined where there is none. */
export async function sealReceipt(
  db: Queryable,
  tenant: Tenant,
  paymentId: PaymentId,
): Promise<JsonObject | undefined> {
  const payment = await findPayment(db, tenant, paymentId)
  if (payment === undefined) return undefined
  const { protocol, network, token, payer, payTo, txHash, resource, status } = payment
  const amount = formatAmount(payment.rawAmount, payment.decimals)
  const settledAt = payment.settledAt?.toISOString() ?? null
  return { paymentId, status, protocol, network, token, amount, payer, payTo, resource, txHash, settledAt }
}
