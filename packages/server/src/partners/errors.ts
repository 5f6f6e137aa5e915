import { defineErrors } from '../platform/errors.ts'

/** What asking a partner may end in. Whatever it said goes to `cause` alone. */
export const fail = defineErrors({
  'partner-unavailable': {
    status: 503,
    title: 'Partner Unavailable',
    detail: 'The partner that this needs is not configured, or does not answer as it must. Nothing was moved.',
  },
})

/** For the error tables of operations that ask a partner. */
export const partnerErrors = fail.table
