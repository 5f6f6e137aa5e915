import { formatAmount, type JsonObject } from '@purser/protocol'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { findPayment } from './store.ts'

/** Returns what a seal states about the payment that bought the vault, as of now; undefined if there is none. */
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
