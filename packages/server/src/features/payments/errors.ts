import type { MppProblem } from '@purser/protocol'
import { defineErrors } from '../../platform/errors.ts'
import { gasErrors } from '../plans/index.ts'

export const fail = defineErrors({
  'payment-not-found': { status: 404, title: 'Payment Not Found', detail: 'No such payment.' },
  'payment-log-not-found': { status: 404, title: 'Payment Log Not Found', detail: 'No such payment log.' },
  archived: {
    status: 410,
    title: 'Archived',
    detail:
      'The event or payment is old and was moved to the archive of the service. What a payment used up stays used.',
  },
  'payment-verification-failed': {
    status: 402,
    title: 'Payment Verification Failed',
    detail:
      "The payment credential was refused; reason is the protocol's own code. Request the paid route again for a new challenge.",
  },
  'duplicate-payment': {
    status: 409,
    title: 'Duplicate Payment',
    detail: 'This credential was already used. Each credential pays once.',
  },
  'payment-identifier-conflict': {
    status: 409,
    title: 'Payment Identifier Conflict',
    detail: 'The payer already used this payment identifier for another payment. Sign again with a new one.',
  },
  'settlement-failed': {
    status: 409,
    title: 'Settlement Failed',
    detail: 'The payment could not be settled on chain; no money moved.',
  },
  'payment-voided': {
    status: 409,
    title: 'Payment Voided',
    detail: 'The authorization expired before it was settled; no money moved.',
  },
  'payment-refunded': {
    status: 409,
    title: 'Payment Refunded',
    detail: 'The whole payment was refunded, or a refund of it is under way. It buys nothing any more.',
  },
  'payment-not-redeemable': {
    status: 409,
    title: 'Payment Not Redeemable',
    detail: 'The payment was delivered, has not been settled, or is not proven to be this payer’s for this request.',
  },
  'delivery-in-progress': {
    status: 409,
    title: 'Delivery In Progress',
    detail:
      'The payment is being served or settled, or somebody else has the right to serve it. Send the request again after Retry-After; do not pay again.',
  },
  'answer-lost': {
    status: 409,
    title: 'Answer Lost',
    detail:
      'The payment was settled, its answer was not delivered, and it can no longer be served. Do not pay again for it: it can be refunded.',
  },
  'payment-not-refundable': {
    status: 409,
    title: 'Payment Not Refundable',
    detail: 'Only a settled payment that a payer made on a chain can be refunded.',
  },
  'refund-exceeds-payment': {
    status: 422,
    title: 'Refund Exceeds Payment',
    detail: 'All refunds of a payment together are at most what was settled; refundable is what remains.',
  },
  'managed-wallet-needed': {
    status: 422,
    title: 'Managed Wallet Needed',
    detail: 'A refund leaves a managed wallet or child address on the payment’s own network. Name one in fromWalletId.',
  },
  'redemption-lost': {
    status: 409,
    title: 'Redemption Lost',
    detail: 'Another caller has the right to serve the payment now. Do not send the answer.',
  },
  ...gasErrors,
  'too-many-open-payments': {
    status: 429,
    title: 'Too Many Open Payments',
    detail:
      'This payer has too many payments here that are verified and not settled. Settle them, or wait until they end.',
  },
  'chain-not-supported': {
    status: 422,
    title: 'Chain Not Supported',
    detail: 'No accepted protocol can pay a token of this wallet on its chain.',
  },
})

/** Refusals whose subject is named in the body: 422 where the same subject in a path would be 404. */
export const failBody = defineErrors({
  'payment-not-found': { status: 422, title: 'Payment Not Found', detail: 'paymentId names no payment.' },
  'settlement-token-invalid': {
    status: 422,
    title: 'Settlement Token Invalid',
    detail: 'settlementToken is not the one that verifying this payment answered.',
  },
  'amount-invalid': {
    status: 422,
    title: 'Amount Invalid',
    detail: 'The price is not an amount that the token can express.',
  },
  'amount-below-minimum': {
    status: 422,
    title: 'Amount Below Minimum',
    detail: 'The price is below the smallest payment that is settled on chain.',
  },
})

/**
 * Returns the refusal of an MPP credential: 402, with the code of the Payment scheme's own problem type in `reason` and one
 * sentence in `message`. The payer sees the sentence, so it must name no secret and nothing of another tenant.
 */
export function refusedMpp(
  problem: MppProblem,
  message: string,
  members: Readonly<Record<string, unknown>> = {},
): Error {
  return fail('payment-verification-failed', { reason: problem, message, ...members })
}
