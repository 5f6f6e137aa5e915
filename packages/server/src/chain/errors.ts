import { defineErrors } from '../platform/errors.ts'

/** Errors of chain reads and sends. The node's message and URL go only into `cause`, because the URL may contain an API key. */
export const fail = defineErrors({
  'chain-unavailable': {
    status: 503,
    title: 'Chain Unavailable',
    detail: 'The chain could not be reached: its nodes do not answer correctly. Try again shortly.',
  },
  'chain-not-configured': {
    status: 503,
    title: 'Chain Not Configured',
    detail: 'This deployment has no node for that network.',
  },
})

/** For the error tables of operations that read from or send to a chain. */
export const chainErrors = fail.table
