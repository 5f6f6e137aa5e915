import { defineErrors } from '../../../platform/errors.ts'

export const failPaying = defineErrors({
  'no-payable-offer': {
    status: 422,
    title: 'No Payable Offer',
    detail:
      'None of the offers of the 402 can or may be paid from this wallet; refusals gives the reason of each. Nothing was signed.',
  },
  'challenge-already-paid': {
    status: 409,
    title: 'Challenge Already Paid',
    detail:
      'A payment for this challenge exists; see paymentId. Repeat that request with its Idempotency-Key to get its credential, or pay a fresh 402.',
  },
  'approved-payment-not-open': {
    status: 409,
    title: 'Approved Payment Not Open',
    detail:
      'The payment is not approved, or it was signed, or it has ended; see paymentStatus. Nothing more was signed for it.',
  },
  'payment-url-not-allowed': {
    status: 422,
    title: 'Payment URL Not Allowed',
    detail: 'The service does not fetch this URL; see reason. It fetches public hosts over https. Nothing was paid.',
  },
  'payment-url-unreachable': {
    status: 502,
    title: 'Payment URL Unreachable',
    detail: 'The first request to the URL got no response; see reason. Nothing was paid.',
  },
})
