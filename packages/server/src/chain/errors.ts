import { defineErrors } from '../platform/errors.ts'

/** Errors of chain reads and sends. The node's message and URL go only into `cause`, because the URL may contain an API key. */
export const fail = defineErrors({
  'chain-unavailable': {
    status: 503,
    title: 'Chain Unavailable',
    detail: 'The chain could not be reached: its nodes do not respond correctly. Try again shortly.',
    causes: [
      'The RPC nodes of the network (`RPC_URL_…`) do not answer, are behind, or fewer than a majority of them agree.',
      'A deposit on which the request depends is in a block that is not booked yet.',
    ],
    fix: 'Repeat in a few seconds with the same `Idempotency-Key`; nothing was stored. The operator sees the nodes of each network in the metrics and configures more than one, separated by commas.',
  },
  'chain-not-configured': {
    status: 503,
    title: 'Chain Not Configured',
    detail: 'This deployment has no node for that network.',
    causes: [
      'The operator has set no `RPC_URL_…` for the network. With a test key `base` means Base Sepolia (`RPC_URL_BASE_SEPOLIA`); `npm start` runs only some networks.',
    ],
    fix: 'Use a wallet on a chain for which `GET /wallet-infra/chains` shows `configured: true`, or set `RPC_URL_<NETWORK>` and restart.',
  },
})

/** For the error tables of operations that read from or send to a chain. */
export const chainErrors = fail.table
