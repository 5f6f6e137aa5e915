import { defineErrors } from '../platform/errors.ts'

/** What asking a chain may end in. Whatever the node said, and where it is, goes to `cause` alone: its address may hold a key. */
export const fail = defineErrors({
  'chain-unavailable': {
    status: 503,
    title: 'Chain Unavailable',
    detail: 'The chain could not be asked: its node does not answer as it must. Try again shortly.',
  },
  'chain-not-configured': {
    status: 503,
    title: 'Chain Not Configured',
    detail: 'This deployment has no node for that network.',
  },
})

/** For the error tables of operations that ask a chain. */
export const chainErrors = fail.table
