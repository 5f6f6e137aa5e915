import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'bank-account-not-found': { status: 404, title: 'Bank Account Not Found', detail: 'No such bank account.' },
  'unsupported-currency': {
    status: 422,
    title: 'Unsupported Currency',
    detail: 'Payouts are available only in the currencies in supported.',
  },
})
