import { chainErrors } from '../../../chain/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { approvalErrors } from '../../approvals/index.ts'
import { policyErrors } from '../../wallets/index.ts'
import { fail } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { failPaying } from './errors.ts'
import { payChallenge, paymentState, payUrl } from './fetch.ts'
import { FreeResponse, NewWalletPayment, WalletPayment } from './schema.ts'

const {
  'transfer-not-found': transferNotFound,
  'wallet-not-found': walletNotFound,
  'wallet-retired': retired,
  'insufficient-balance': insufficient,
  'recipient-flagged': flagged,
  'screening-unavailable': unscreened,
} = fail.table

export const payingOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.pay',
    needs: { role: 'member', scope: 'money', fresh: true },
    agent: 'moves-money',
    method: 'POST',
    path: '/wallet-infra/pay',
    summary: 'Pay a 402 from a managed wallet or child address.',
    description: [
      "Takes a 402 of x402 (version 2 or 1) or MPP (`evm/charge`) as received, signs one offer under the wallet's policy and returns the header field to send. The funds stay reserved until the signature is used or has expired (at most an hour).",
      'With `url` instead of `challenge` the service sends the request (`method`, `headers`, `body`), pays a 402, repeats it once with the credential, and returns the `response` and its `outcome`; 200 without a payment if the URL returns no 402. No redirect is followed.',
      '202: it waits for the `approval` that the policy requires; once approved, send a fresh 402 with `approvedPaymentId` within an hour. Send an Idempotency-Key: a repeat returns the same credential and never pays twice.',
    ].join(' '),
    input: NewWalletPayment,
    output: WalletPayment,
    status: 201,
    otherOutputs: { 200: FreeResponse, 202: WalletPayment },
    errors: {
      ...failPaying.table,
      'transfer-not-found': transferNotFound,
      'wallet-not-found': walletNotFound,
      'wallet-retired': retired,
      'insufficient-balance': insufficient,
      'recipient-flagged': flagged,
      'screening-unavailable': unscreened,
      ...chainErrors,
      ...policyErrors,
      ...approvalErrors,
    },
    // It waits for a chain and for custody, which no database transaction waits for.
    idempotency: 'intent',
    cost: ({ url }) => (url === undefined ? 3 : 10),
    resume: paymentState,
    run: (ctx, { body: { challenge, url, ...payment } }) => {
      if (challenge !== undefined) return payChallenge(ctx, { ...payment, challenge })
      if (url !== undefined) return payUrl(ctx, { ...payment, url })
      throw new Error('the schema requires a challenge or a URL')
    },
  }),
]
