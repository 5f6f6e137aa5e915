import type { Tx } from '../../platform/db/db.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { parseUrl } from '../../platform/parse-url.ts'
import { fail, failBody } from './errors.ts'
import { refusePayment } from './logs.ts'
import type { Ctx } from './ports.ts'
import { lockBuying } from './session-store.ts'

/** The payer, wallet and host to which a session is bound. Null if the payment does not state it. */
export interface BuyingPayment {
  readonly id: PaymentId
  readonly walletId: string | null
  readonly payer: string | null
  readonly host: string | null
}

/** Errors of `lockBuyingPayment`, for the tables of the operations that use it. */
export const buyingErrors = {
  'payment-not-found': failBody.table['payment-not-found'],
  archived: fail.table.archived,
  'settlement-failed': fail.table['settlement-failed'],
  'payment-voided': fail.table['payment-voided'],
  'payment-refunded': fail.table['payment-refunded'],
}

/**
 * Locks the payment of a requested session until the transaction ends: two requests for one payment wait for each other. The
 * payment may be settled or in progress; one that ended without money, or that refunds take in full, is refused.
 */
export async function lockBuyingPayment(
  tx: Tx,
  { tenant }: Pick<Ctx, 'tenant'>,
  paymentId: PaymentId,
): Promise<BuyingPayment> {
  const payment = await lockBuying(tx, tenant, paymentId)
  if (payment === undefined) return refusePayment(tx, tenant, paymentId, failBody('payment-not-found'))
  const { id, status, walletId, payer, resource } = payment
  if (status === 'settlement_failed') throw fail('settlement-failed', { reason: payment.failureReason })
  if (status === 'voided') throw fail('payment-voided', { reason: payment.failureReason })
  if (payment.isRefunded) throw fail('payment-refunded')
  return { id, walletId, payer, host: hostOf(resource) }
}

/** The resource of a facilitator's payment may be any text. */
function hostOf(resource: string | null): string | null {
  const { host = '' } = (resource === null ? undefined : parseUrl(resource)) ?? {}
  return host === '' ? null : host
}
