import { defineErrors } from '../../../platform/errors.ts'

/** Errors of a manual deposit search. */
export const fail = defineErrors({
  'transaction-not-found': {
    status: 422,
    title: 'Transaction Not Found',
    detail: 'The chain has no such transaction in a block.',
    causes: [
      'No block contains the `txHash` yet: the transaction is pending, was replaced, or its block was undone.',
      'The hash is of another chain than `chain` names. With a test key `base` means Base Sepolia.',
    ],
    fix: 'Look the hash up in the explorer of the chain. When it is in a block, send the request again; correct `chain` otherwise. A deposit needs no rescan in the usual case: it is found by itself.',
  },
  'deposit-not-found': {
    status: 422,
    title: 'Deposit Not Found',
    detail: 'The transaction moves no supported token to or from a wallet of yours.',
    causes: [
      'The transaction is on chain, and none of its transfers is of a supported token to or from an address of this organisation.',
      'It moved the coin of the chain, which leaves no log: only tokens are booked as deposits.',
    ],
    fix: 'Compare the recipient and the token contract in the explorer with your wallet’s `address` and `GET /wallet-infra/chains/{chain}/tokens`.',
  },
})
