import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'test-deposits-off': {
    status: 403,
    title: 'Test Deposits Off',
    detail: 'Test deposits are for test keys, in a deployment whose operator has set TEST_FAUCET_KEY.',
    causes: [
      'The API key is a live key.',
      'The operator has set no `TEST_FAUCET_KEY`, so this deployment has no test money to send.',
    ],
    fix: 'Use a test key. In a deployment of your own run `npm start`, which has a faucet, or set `TEST_FAUCET_KEY` to the key of an account with test tokens. Otherwise send test tokens to the wallet’s address from a public faucet.',
  },
  'test-payments-off': {
    status: 403,
    title: 'Test Payments Off',
    detail: 'Test payments are for the test environment, in a deployment whose operator has set TEST_FAUCET_KEY.',
    causes: ['The request has a live key, or the deployment has no `TEST_FAUCET_KEY` to sign test payments with.'],
    fix: 'Use a test key. Without a faucet, pay your route with `stub_payment_accepted` in `X-PAYMENT`, or with a payer of your own that has test tokens.',
  },
  'test-clock-off': {
    status: 403,
    title: 'Test Clock Off',
    detail: 'The test clock is for the test environment, in a deployment whose operator has set TEST_CLOCK=true.',
    causes: [
      'The request has a live key.',
      'The operator has not set `TEST_CLOCK=true`; it is off by default, since it moves expiries of the whole organisation.',
    ],
    fix: 'Use a test key, and start the deployment with `TEST_CLOCK=true` (`npm start` sets it).',
  },
  'wallet-not-found': {
    status: 422,
    title: 'Wallet Not Found',
    detail: 'No such wallet.',
    causes: ['This organisation has no wallet with this `walletId` in the test environment.'],
    fix: 'Create one with a test key (`POST /wallet-infra/master-wallets`) and send its id.',
  },
  'token-not-supported': {
    status: 422,
    title: 'Token Not Supported',
    detail: 'The token is not known on that chain, or the operation does not take it.',
    causes: ['`token` is not the symbol of a token on the network of the wallet to fund.'],
    fix: 'Send a symbol that `GET /wallet-infra/chains/{chain}/tokens` lists, or that of the chain’s coin (`ETH`; Tempo has none).',
  },
  'faucet-empty': {
    status: 503,
    title: 'Faucet Empty',
    detail: 'The faucet has less of `token` than `required`. Request at most `available`.',
    causes: [
      'The faucet’s account on this network has less of the token than `amount`; `required` and `available` state both.',
    ],
    fix: 'Request at most `available`. The operator sends test tokens to the faucet’s address; with `npm start`, stop it, delete its data folder and start again.',
  },
})
