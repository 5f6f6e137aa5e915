import { defineErrors } from '../platform/errors.ts'

/** Errors of requests to partners. The partner's message goes only into `cause`. */
export const fail = defineErrors({
  'partner-unavailable': {
    status: 503,
    title: 'Partner Unavailable',
    detail: 'The partner is not configured, or does not respond correctly. Nothing was moved.',
  },
})

/** For the error tables of operations that call a partner. */
export const partnerErrors = fail.table
