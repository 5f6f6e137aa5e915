import type { MppProblem } from '@purser/protocol'
import { archivedRecord, defineErrors } from '../../platform/errors.ts'
import { gasErrors } from '../plans/index.ts'

/** The detail of a refused payer whose payments were released too often. */
export const releasedTooOften =
  'Too many payments of this payer were verified and released here in the last day. The payer did nothing wrong; it can pay again after Retry-After.'
/** The detail of a release above the owner’s allowance. */
export const releasedTooMany =
  'Too many payments were released in the last day. This one stays open until it is voided; it can be released after Retry-After.'

export const fail = defineErrors({
  'payment-not-found': {
    status: 404,
    title: 'Payment Not Found',
    detail: 'No such payment.',
    causes: [
      'This organisation has no payment with this id in this environment.',
      'Another seller of this deployment received the payment.',
    ],
    fix: 'Take `paymentId` from the response of `POST /payments/verify`, or list payments with `GET /payments/logs`, with a key of the environment in which it was made.',
  },
  'payment-log-not-found': {
    status: 404,
    title: 'Payment Log Not Found',
    detail: 'No such payment log.',
    causes: ['This organisation has no payment log with this id in this environment.'],
    fix: 'List the logs with `GET /payments/logs` or `GET /account/payment-logs` and take the id from there.',
  },
  archived: {
    ...archivedRecord,
    causes: [
      'The operator moved payments of that month to the archive (`purser admin archive`). The credential stays used: nobody can pay with it again.',
    ],
    fix: 'Ask the operator for the record; archive files are Parquet, with one row for each payment. An archived payment can be neither settled nor refunded: send a refund as a transfer.',
  },
  'payment-verification-failed': {
    status: 402,
    title: 'Payment Verification Failed',
    detail:
      "The payment credential was refused; reason is the protocol's own code. Request the paid route again for a new challenge.",
    causes: [
      '`reason` is the protocol’s own code. `invalid_exact_evm_signature`: a field was changed after signing, or the domain of the token is wrong.',
      '`…_value_mismatch` and `…_recipient_mismatch`: price, `walletId` or `otherWalletIds` of verify are not those of the challenge.',
      '`…_valid_before`: the authorization ends within 6 seconds, or the payer’s clock is wrong.',
      '`insufficient_funds` and `…_insufficient_balance`: the payer’s balance does not cover this payment and their other open ones.',
      '`stub_not_allowed`: a live key got a stub payment.',
    ],
    fix: 'Respond with a fresh 402, as the middleware does; the payer signs again. As the seller, send the same `walletId`, `otherWalletIds`, `resource` and `price` to challenge and verify. As the payer, sign the offer unchanged. [x402](/docs/x402) and [MPP](/docs/mpp) list the codes.',
  },
  'duplicate-payment': {
    status: 409,
    title: 'Duplicate Payment',
    detail: 'This credential was already used. Each credential pays once.',
    causes: [
      'The payer sent the same signed credential again, or the transaction that it names already paid for something.',
      'Your server verified it, did not receive the response, and sent it again without `Idempotency-Key`.',
    ],
    fix: 'Serve nothing for it, and respond with a fresh 402. If it was your own repeat, send verify with one `Idempotency-Key` per credential: a repeat then gets the first response. If a paid response was not delivered, use `POST /payments/redeem`.',
  },
  'payment-identifier-conflict': {
    status: 409,
    title: 'Payment Identifier Conflict',
    detail: 'The payer already used this payment identifier for another payment. Sign again with a new one.',
    causes: [
      'The payer put an identifier into the extension `payment-identifier` that another payment of theirs has, with other content.',
    ],
    fix: 'The payer draws an identifier for each purchase and signs again. To repeat a purchase, the payer sends the same credential, not the same identifier with another one.',
  },
  'settlement-failed': {
    status: 409,
    title: 'Settlement Failed',
    detail: 'The payment could not be settled on chain; see reason. No money moved.',
    causes: [
      'The chain does not take the payment; `reason` says why, for example that the payer’s balance was spent since verify, or the authorization was canceled.',
    ],
    fix: 'No money moved, so serve nothing and respond with a fresh 402. If the handler has already run, its result was not paid for; the middleware sends a response only after settlement.',
  },
  'payment-voided': {
    status: 409,
    title: 'Payment Voided',
    detail: 'The payment was released, was not settled in time, or was evicted for another payment; no money moved.',
    causes: [
      'Nobody called settle before the authorization’s `validBefore`, or within an hour after verify (`VERIFIED_SECONDS_MAX`).',
      'A settlement did not get into a block in time, for example during high gas prices.',
      'It was released, or it was open for two minutes and another payment needed its quota or its gas budget.',
    ],
    fix: 'No money moved. The payer pays a fresh 402. Call `POST /payments/settle` right after the handler has run; let the challenge’s `maxTimeoutSeconds` cover the time that the handler takes.',
  },
  'payment-in-settlement': {
    status: 409,
    title: 'Payment In Settlement',
    detail: 'The money of the payment has moved or is about to move, so it cannot be released.',
    causes: ['The payment is settled, or its settlement was requested, by this caller or by another one.'],
    fix: 'Serve what was paid for, or pay the money back once the payment is settled (`POST /payments/{id}/refund`).',
  },
  'payment-refunded': {
    status: 409,
    title: 'Payment Refunded',
    detail: 'The payment was fully refunded, or a full refund is in progress, so no session can be opened for it.',
    causes: ['A session was requested for a payment whose whole amount was sent back, or is being sent back.'],
    fix: 'The payer pays again. Refund only after access has ended.',
  },
  'payment-not-redeemable': {
    status: 409,
    title: 'Payment Not Redeemable',
    detail: 'The payment was delivered, has not been settled, or is not proven to be this payer’s for this request.',
    causes: [
      'The response was delivered before: each payment is served once.',
      'The payment is not settled, or was refunded.',
      'The credential, `settlementToken` or `resource` is not that of the payment, so it is not proven that this payer paid for this request.',
    ],
    fix: 'Send the credential and the request exactly as they were paid. If the response was delivered and lost after that, decide about a refund (`POST /payments/{id}/refund`); do not serve it again for nothing.',
  },
  'delivery-in-progress': {
    status: 409,
    title: 'Delivery In Progress',
    detail:
      'The payment is being served or settled, or somebody else has the right to serve it. Send the request again after Retry-After; do not pay again.',
    causes: [
      'The handler that received the payment may still be running, or its response may still be on the way.',
      'Another caller has the right to serve the payment (`redemptionToken`), for `expiresIn` seconds.',
    ],
    fix: 'Wait for the seconds in `Retry-After` and send the same request again. The payer must not pay again: the credential is already used.',
  },
  'answer-lost': {
    status: 409,
    title: 'Answer Lost',
    detail:
      'The payment was settled, its response was not delivered, and it can no longer be served. Do not pay for it again: the seller can refund it.',
    causes: [
      'The process stopped after settlement and before the response was sent, and the request cannot be run again: its method is not GET or HEAD, or it was run again too often.',
    ],
    fix: 'Refund the payment: `POST /payments/{id}/refund`.',
  },
  'payment-not-refundable': {
    status: 409,
    title: 'Payment Not Refundable',
    detail: 'Only a settled payment that a payer made on a chain can be refunded.',
    causes: [
      'The payment is a stub, so no money moved, or it failed or was voided.',
      'It is not settled yet, or its block can still be undone; `Retry-After` is then set.',
      'A reorganization of the chain removed it: its final block does not show its money.',
      'It was free.',
    ],
    fix: 'With `Retry-After`, send the refund again after that time. Without it there is nothing to send back.',
  },
  'refund-exceeds-payment': {
    status: 422,
    title: 'Refund Exceeds Payment',
    detail: 'The refunds of a payment cannot exceed the settled amount. refundable is the remaining amount.',
    causes: [
      '`amount` and earlier refunds of the payment together are more than what was settled. A refund that failed does not count; one that is pending does.',
    ],
    fix: 'Send an `amount` of at most `refundable`, or leave `amount` out to refund all that remains. `GET /payments/{id}/refunds` lists the earlier ones.',
  },
  'managed-wallet-needed': {
    status: 422,
    title: 'Managed Wallet Needed',
    detail:
      'A refund is paid from a managed wallet or child address on the payment’s own network. Name one in fromWalletId.',
    causes: [
      'The payment went to a wallet of your own (`byw_…`), whose key only you have, and the body has no `fromWalletId`.',
      '`fromWalletId` is a managed wallet on another network than the payment’s.',
    ],
    fix: 'Send `fromWalletId` with a managed wallet (`mwt_…`) or child address (`cad_…`) on the payment’s network that has the amount. `POST /wallet-infra/master-wallets` makes one. Without one, send the money back from your own wallet. [Refunds](/docs/refunds) has a whole program.',
  },
  'redemption-lost': {
    status: 409,
    title: 'Redemption Lost',
    detail: 'Another caller has the right to serve the payment now. Do not send the response.',
    causes: [
      'The `redemptionToken` is older than `expiresIn` seconds, and another caller has got the right to serve the payment.',
      'The response was already reported as delivered.',
    ],
    fix: 'Discard the response: the other caller sends it. Call redeem again only if the payer retries without having received a response.',
  },
  ...gasErrors,
  'too-many-open-payments': {
    status: 429,
    title: 'Too Many Open Payments',
    detail:
      'This payer has too many verified payments at this seller that are not settled. Settle or release them, or wait until they expire.',
    causes: [
      'This payer has 100 payments at your organisation that are verified and neither settled nor voided.',
      'Those whose settlement was not requested, or whose transaction on Tempo is in no block after 10 seconds, are a tenth of the payments that the plan includes per month. One is always allowed.',
      'Those that are not settled yet reserve a tenth of the day’s gas on the network. One is always allowed.',
      'Five transactions of this payer on Tempo whose fee the operator pays are pending, counted over all sellers of the deployment.',
      'With `Retry-After`: the seller released too many of its payments in the last day, at most a month’s payments of the plan and never fewer than 1,000.',
    ],
    fix: 'Settle each payment after you served it (`POST /payments/settle`), and release one that you refuse (`POST /payments/{id}/release`). Payments that nobody settles are voided within an hour. If you serve several requests for one price, sell a session instead.',
  },
  'chain-not-supported': {
    status: 422,
    title: 'Chain Not Supported',
    detail:
      'None of the wallet’s tokens can be paid on its chain by an accepted protocol. Offer a wallet on another chain.',
    causes: [
      'None of the wallet’s `supportedTokens` can be paid on its chain by a protocol that the request accepts, for example a wallet on Ethereum with USDT only.',
      'The route accepts only x402 or only MPP, and the wallet’s token needs the other one.',
    ],
    fix: 'Register a wallet with USDC in `supportedTokens` on a network where USDC has EIP-3009, such as Base, and send it as `walletId` or in `otherWalletIds`. `GET /wallet-infra/chains/{chain}/tokens` shows `eip3009` of each token.',
  },
})

/** Refusals whose subject is named in the body: 422 where the same subject in a path would be 404. */
export const failBody = defineErrors({
  'payment-not-found': {
    status: 422,
    title: 'Payment Not Found',
    detail: 'No payment has this paymentId.',
    causes: [
      'This organisation has no payment with this `paymentId` in this environment. Often settle uses an API key of another organisation or environment than verify.',
    ],
    fix: 'Send the `paymentId` from the response of `POST /payments/verify`, with the same API key or another one of the same organisation and environment.',
  },
  'settlement-token-invalid': {
    status: 422,
    title: 'Settlement Token Invalid',
    detail: 'settlementToken is not the one that verify returned for this payment.',
    causes: [
      '`settlementToken` is truncated, or belongs to another payment. It proves that the caller of settle has the response of verify.',
    ],
    fix: 'Store `paymentId` and `settlementToken` of a response together. If the token is lost, verify the same credential again with the same `Idempotency-Key`: the response has the same token.',
  },
  'amount-invalid': {
    status: 422,
    title: 'Amount Invalid',
    detail: 'The price is not an amount of the token; see reason.',
    causes: [
      '`reason` `too-many-digits`: the price has more decimals than the token (6 for USDC).',
      '`zero`: x402 cannot express a price of nothing; only MPP can.',
      '`not-a-decimal`: the price has a sign, a currency symbol or an exponent; `too-large`: it is above what the token can express.',
    ],
    fix: 'Send `price` as decimal US dollars in text, such as `"0.01"`. Round it yourself: the service never does.',
  },
  'amount-below-minimum': {
    status: 422,
    title: 'Amount Below Minimum',
    detail:
      'The price is below the smallest payment that is settled on this chain. Raise it, or offer a cheaper chain.',
    causes: [
      'The price is less than settling one payment costs in gas now, or less than the operator’s minimum (`SETTLE_MICRO_USD_MIN`, 0.001 US dollars by default).',
    ],
    fix: 'Raise the price, offer a wallet on a cheaper network (Base, Tempo) in `otherWalletIds`, or sell a session that covers several requests.',
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
