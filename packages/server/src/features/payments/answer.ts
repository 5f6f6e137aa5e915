import { formatAmount, isTempo, networkByName } from '@purser/protocol'
import type { z } from 'zod'
import type { PaymentId } from '../../platform/ids.ts'
import { fail, refusedMpp } from './errors.ts'
import { sentenceOf } from './methods/mpp-tempo/follow.ts'
import type { Ctx } from './ports.ts'
import type { VerifiedPayment } from './schema.ts'
import { findPayment, type PaymentRow } from './store.ts'

/** Returns the response of verifying this payment. It serves a repeat whose first response was never sent. */
export async function verifiedAnswer(ctx: Ctx, paymentId: string): Promise<z.input<typeof VerifiedPayment>> {
  if (paymentId.endsWith(underpricedMark)) throw underpriced()
  const row = await findPayment(ctx.db, ctx.tenant, paymentId as PaymentId)
  if (row === undefined) throw fail('payment-not-found')
  refuseUnpaid(row)
  refuseEnded(row)
  return answerOf(ctx, row)
}

/**
 * Suffix of the id to which the Idempotency-Key of an underpriced payment is tied, so that a repeat is refused like the
 * first request.
 */
export const underpricedMark = ' underpriced'

/** The refusal of a payment that was credited and is less than the price. */
export function underpriced(): Error {
  return refusedMpp(
    'payment-insufficient',
    'The money is credited and can be refunded. It buys nothing, since it is less than the price is now; do not send it again.',
  )
}

/** Refuses a payment that ended without money: it buys nothing and can no longer be settled. */
function refuseEnded({ protocol, status, failureReason }: PaymentRow): void {
  if (status !== 'settlement_failed' && status !== 'voided') return
  const reason = failureReason ?? status
  if (protocol === 'mpp') throw refusedMpp('verification-failed', `The payment has ended without money: ${reason}.`)
  throw fail('payment-verification-failed', { reason })
}

/** The fields from which a payment's response is built. A new payment and a stored payment both have them. */
export type Answerable = Pick<
  PaymentRow,
  | 'id'
  | 'protocol'
  | 'scheme'
  | 'challengeId'
  | 'network'
  | 'rawAmount'
  | 'decimals'
  | 'token'
  | 'payer'
  | 'settledAt'
  | 'status'
  | 'delivery'
  | 'paymentIdentifier'
> & { readonly txHash?: string | null }

/** Returns the response of `payments.verify` for a payment. */
export function answerOf(ctx: Ctx, payment: Answerable): z.input<typeof VerifiedPayment> {
  const network = networkByName(payment.network)
  if (network === undefined) throw new Error(`a payment is on ${payment.network}, which this build does not know`)
  const isMpp = payment.protocol === 'mpp' && payment.scheme !== 'stub'
  return {
    valid: true,
    paymentId: payment.id,
    protocol: payment.protocol,
    scheme: payment.scheme,
    method: isMpp ? (isTempo(network) ? 'tempo' : 'evm') : null,
    challengeId: payment.challengeId,
    network: network.caip2,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    coin: payment.token,
    payer: payment.payer,
    txHash: payment.txHash ?? null,
    settledAt: payment.settledAt,
    settlementPending: payment.status === 'verified' || payment.status === 'settling',
    settlementToken: ctx.settlementTokens.mint(payment.id),
    redeemable: isRedeemable(payment),
  }
}

function isRedeemable({ delivery, challengeId, paymentIdentifier, scheme }: Answerable): boolean {
  if (delivery === null) return false
  return scheme === 'stub' || [challengeId, delivery.challengeId, paymentIdentifier].some((secret) => secret !== null)
}

/**
 * Refuses a payment by a transaction that the chain or the node refused: the first response and every repeat must be the same.
 */
export function refuseUnpaid(row: Pick<PaymentRow, 'settlement' | 'status' | 'failureReason'>): void {
  if (row.settlement?.kind !== 'tempo' || row.status === 'settled' || row.failureReason === null) return
  throw refusedMpp('verification-failed', sentenceOf(row.failureReason))
}
