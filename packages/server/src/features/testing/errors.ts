import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'test-deposits-off': {
    status: 403,
    title: 'Test Deposits Off',
    detail: 'Test deposits are for test keys, in a deployment whose operator has set TEST_FAUCET_KEY.',
  },
  'test-payments-off': {
    status: 403,
    title: 'Test Payments Off',
    detail: 'Test payments are for the test environment, in a deployment whose operator has set TEST_FAUCET_KEY.',
  },
  'test-clock-off': {
    status: 403,
    title: 'Test Clock Off',
    detail: 'The test clock is for the test environment, in a deployment whose operator has set TEST_CLOCK=true.',
  },
  'wallet-not-found': { status: 422, title: 'Wallet Not Found', detail: 'No such wallet.' },
  'token-not-supported': {
    status: 422,
    title: 'Token Not Supported',
    detail: 'A token that the service does not know on the wallet’s network.',
  },
  'faucet-empty': {
    status: 503,
    title: 'Faucet Empty',
    detail: 'The faucet does not have that much of the token; required and available say what of which.',
  },
})
