import { formatAmount } from '@purser/protocol'
import type { NewPayment } from './store.ts'

/** Returns the members that all events of a payment have. */
export function paymentPayload(
  payment: Pick<NewPayment, 'id' | 'walletId' | 'rawAmount' | 'decimals' | 'token' | 'chain' | 'payer'>,
) {
  return {
    paymentId: payment.id,
    walletId: payment.walletId,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    token: payment.token,
    chain: payment.chain,
    payer: payment.payer,
  }
}
