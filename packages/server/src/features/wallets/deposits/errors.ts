import { defineErrors } from '../../../platform/errors.ts'

/** Errors of a manual deposit search. */
export const fail = defineErrors({
  'transaction-not-found': {
    status: 422,
    title: 'Transaction Not Found',
    detail: 'No block of the chain contains this transaction. Check the hash and the chain.',
    causes: [
      'No block contains the `txHash` yet: the transaction is pending, was replaced, or its block was undone.',
      'The hash is of another chain than `chain` names. With a test key `base` means Base Sepolia.',
    ],
    fix: 'Look up the hash in the chain’s block explorer. If it is in a block, send the request again; otherwise correct `chain`. Deposits are normally detected without a rescan.',
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
