import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'withdrawal-not-found': {
    status: 404,
    title: 'Withdrawal Not Found',
    detail: 'No such withdrawal.',
    causes: ['This organisation has no withdrawal with this id in this environment.'],
    fix: 'List withdrawals with `GET /wallet-infra/withdrawals`. Withdrawals of the legacy wallet are transfers: `GET /wallet-infra/transfers`.',
  },
  'wallet-not-found': {
    status: 422,
    title: 'Wallet Not Found',
    detail: 'No such wallet.',
    causes: [
      'This organisation has no managed wallet or child address with the withdrawal’s `fromWalletId` in this environment.',
    ],
    fix: 'Send a `mwt_…` or `cad_…`. To withdraw money of a BYO wallet, first send it to a managed wallet.',
  },
  'bank-account-not-found': {
    status: 422,
    title: 'Bank Account Not Found',
    detail: 'No such bank account.',
    causes: [
      'This organisation has no bank account with this `bankAccountId` in this environment, or the account was deleted.',
    ],
    fix: 'Register the account again with `POST /wallet-infra/bank-accounts`, or send an id that `GET /wallet-infra/bank-accounts` lists.',
  },
  'bank-account-refused': {
    status: 422,
    title: 'Bank Account Refused',
    detail: 'The partner refuses this bank account. reason is the partner’s code. Nothing was moved.',
    causes: [
      'The payout partner does not pay to this account; `reason` is its code: `address-required` (dollar accounts need the owner’s address, which is not stored), a closed account, or a country that it does not serve.',
    ],
    fix: 'Name an account in pounds or euros, or register the account with corrected details. The operator can look the code up in the partner’s console.',
  },
  'payouts-not-enabled': {
    status: 422,
    title: 'Payouts Not Enabled',
    detail: 'The operator has not enabled payouts for this organisation at the partner yet. Nothing was moved.',
    causes: [
      'The partner pays out only for customers that it has identified, and no customer is recorded for this organisation.',
    ],
    fix: 'Ask the operator to identify the organisation at the partner and to run `purser admin set-payout-customer --organisation org_… --customer …`.',
  },
  'below-minimum': {
    status: 422,
    title: 'Below Minimum',
    detail: 'The amount is less than minimum, which is in whole tokens. Nothing was moved.',
    causes: ['`amount` is below `minimum`, 50 US dollars: the bank’s and partner’s fees would take too large a part.'],
    fix: 'Collect at least `minimum` (a sweep brings the balances of child addresses together) and withdraw once.',
  },
  'token-not-supported': {
    status: 422,
    title: 'Token Not Supported',
    detail: 'The token is not known on that chain, or the operation does not take it.',
    causes: [
      '`token` is not a US dollar token of `chain`. The partner takes no coin and no token in another currency.',
      'The payout partner takes no tokens from `chain`, or not this one; `errors` says which it takes.',
    ],
    fix: 'Send a token that `errors` lists. To get it, make a transfer to that token, and to another chain if `errors` lists chains, with `POST /wallet-infra/transfer`.',
  },
  'withdrawal-refused': {
    status: 422,
    title: 'Withdrawal Refused',
    detail: 'The withdrawal failed before anything was signed; see reason. Nothing was moved.',
    causes: [
      'The withdrawal was stored, and the partner or the chain refused before anything was signed. `reason` is `partner-refused`, or the code that a transfer would have had.',
    ],
    fix: 'Act on `reason` as on the error of that name. Then send another withdrawal with another `Idempotency-Key`; this one has ended as `failed`.',
  },
})
