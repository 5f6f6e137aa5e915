import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'withdrawal-not-found': { status: 404, title: 'Withdrawal Not Found', detail: 'No such withdrawal.' },
  'wallet-not-found': {
    status: 422,
    title: 'Wallet Not Found',
    detail: 'No such managed wallet or child address.',
  },
  'bank-account-not-found': { status: 422, title: 'Bank Account Not Found', detail: 'No such bank account.' },
  'bank-account-refused': {
    status: 422,
    title: 'Bank Account Refused',
    detail: 'The partner does not pay to this bank account; see reason, its code. Nothing was moved.',
  },
  'payouts-not-enabled': {
    status: 422,
    title: 'Payouts Not Enabled',
    detail: 'The operator has not enabled payouts for this organisation at the partner yet. Nothing was moved.',
  },
  'below-minimum': {
    status: 422,
    title: 'Below Minimum',
    detail: 'The amount is below the minimum, in whole tokens.',
  },
  'token-not-supported': {
    status: 422,
    title: 'Token Not Supported',
    detail: 'The service does not know this token on that chain, or it is not a US dollar token.',
  },
  'withdrawal-refused': {
    status: 422,
    title: 'Withdrawal Refused',
    detail: 'The withdrawal failed before anything was signed; see reason. Nothing was moved.',
  },
})
