import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'registry-route-not-found': { status: 404, title: 'Registry Route Not Found', detail: 'No such route.' },
})

/** Errors whose subject is named in the body: 422 where the same subject in a path would be 404. */
export const failBody = defineErrors({
  'payment-log-not-found': {
    status: 422,
    title: 'Payment Log Not Found',
    detail: 'paymentLogId names no payment log.',
  },
})
