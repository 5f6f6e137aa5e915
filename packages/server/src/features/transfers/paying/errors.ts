import { defineErrors } from '../../../platform/errors.ts'

export const failPaying = defineErrors({
  'no-payable-offer': {
    status: 422,
    title: 'No Payable Offer',
    detail:
      'None of the offers of the 402 can or may be paid from this wallet; refusals gives the reason of each. Nothing was signed.',
    causes: [
      'No offer of the 402 fits this wallet; `refusals` names the reason for each: another network or token than the wallet has, a price above `maxAmount` of the request, a payee on a list, or an expired offer.',
    ],
    fix: 'Read `refusals`. Pay from a wallet on a network that the seller offers, or raise your own limit. If the offers had expired, request the URL again and send the fresh 402.',
  },
  'challenge-already-paid': {
    status: 409,
    title: 'Challenge Already Paid',
    detail:
      'A payment for this challenge exists; see paymentId. Repeat that request with its Idempotency-Key to get its credential, or pay a fresh 402.',
    causes: ['Two requests were made to pay the same 402, with two `Idempotency-Key`s; the second one was not signed.'],
    fix: 'Repeat the first request with its own `Idempotency-Key` to get its credential (`paymentId` names the payment). To buy once more, request the URL again and pay the fresh 402.',
  },
  'too-many-unused-payments': {
    status: 429,
    title: 'Too Many Unused Payments',
    detail:
      '1,000 signed payments of the wallet, 2,500 of the key or 5,000 in all are unused; see limitOf. Send them or let them expire. Nothing was signed.',
    causes: [
      'The credentials of 1,000 payments from this wallet address (`limitOf` is `address`), of 2,500 that this API key or person had signed (`caller`), or of 5,000 from all wallets on the network (`organisation`) were never sent, or their sellers have not settled them. All free organisations of an account count as one. Each is a reservation of funds until it is used or expires, an hour at most, also after its key was revoked.',
    ],
    fix: 'Send each credential soon after it was signed, and use short offers (`maxTimeoutSeconds`). An agent with more payments at once uses several child addresses, or buys a session.',
  },
  'approved-payment-not-open': {
    status: 409,
    title: 'Approved Payment Not Open',
    detail:
      'The payment is not approved, or it was signed, or it has ended; see paymentStatus. Nothing more was signed for it.',
    causes: [
      '`approvedPaymentId` names a payment that still waits for its decision, was refused, was already signed, or was approved more than an hour ago; `paymentStatus` says which.',
    ],
    fix: 'While it waits, look again with `GET /wallet-infra/transfers/{id}`. Otherwise pay the fresh 402 without `approvedPaymentId`, which requests another approval.',
  },
  'payment-url-not-allowed': {
    status: 422,
    title: 'Payment URL Not Allowed',
    detail: 'The service does not fetch this URL; see reason. It fetches public hosts over https. Nothing was paid.',
    causes: [
      '`url` is not `https`, or names a private address, a local name, a server of the deployment, another port or credentials; `reason` says which.',
      'A header field or the body of the request is one that the service does not send (`header-refused`, `body-too-large`).',
    ],
    fix: 'Send the request yourself and pass its 402 as `challenge`: then the service signs and fetches nothing. A deployment with `WEBHOOKS_ALLOW_PRIVATE=true`, such as that of `npm start`, fetches local addresses too.',
  },
  'payment-url-unreachable': {
    status: 502,
    title: 'Payment URL Unreachable',
    detail: 'The first request to the URL got no response; see reason. Nothing was paid.',
    causes: [
      'The seller’s name does not resolve, its connection was refused, its certificate is not valid, or it did not respond in time; `reason` says which. It was the first request, so nothing was signed.',
    ],
    fix: 'Try the URL from another machine. Send the request again later; the `Idempotency-Key` may stay the same.',
  },
})

/** Returns the refusal of a 402 whose offers this wallet does not pay. Its detail states the reasons too, since logs often show nothing else. */
export function noPayableOffer(refusals: readonly { readonly offer: string; readonly reason: string }[]): Error {
  const shown = refusals.slice(0, 3).map(({ offer, reason }) => `${offer.slice(0, 100)}: ${reason}`)
  const reasons = shown.length === 0 ? '' : `: ${shown.join('; ')}`
  const detail = `None of the offers of the 402 can or may be paid from this wallet${reasons}. Nothing was signed.`
  return failPaying('no-payable-offer', { detail, refusals })
}
