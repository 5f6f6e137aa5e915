import { defineErrors } from '../../../platform/errors.ts'

/** Errors of a manual deposit search. */
export const fail = defineErrors({
  'transaction-not-found': {
    status: 422,
    title: 'Transaction Not Found',
    detail: 'The chain has no such transaction in a block.',
  },
  'deposit-not-found': {
    status: 422,
    title: 'Deposit Not Found',
    detail: 'The transaction moves no supported token to or from a wallet of yours.',
  },
})
