import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'bank-account-not-found': {
    status: 404,
    title: 'Bank Account Not Found',
    detail: 'No such bank account.',
    causes: ['This organisation has no bank account with this id in this environment.'],
    fix: 'List the accounts with `GET /wallet-infra/bank-accounts`. A deleted account cannot be read: its details were erased.',
  },
  'unsupported-currency': {
    status: 422,
    title: 'Unsupported Currency',
    detail: 'Payouts are available only in the currencies in supported.',
    causes: ['`currency` is not one that the payout partner pays; `supported` lists those that it does.'],
    fix: 'Register an account in `GBP`, `EUR` or `USD`.',
  },
})
