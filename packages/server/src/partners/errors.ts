import { defineErrors } from '../platform/errors.ts'

/** Errors of requests to partners. The partner's message goes only into `cause`. */
export const fail = defineErrors({
  'partner-unavailable': {
    status: 503,
    title: 'Partner Unavailable',
    detail: 'The partner is not configured, or does not respond correctly. Nothing was moved.',
    causes: ['The partner for payouts is not configured in this environment, or did not respond.'],
    fix: 'Repeat in a minute with the same `Idempotency-Key`. In a deployment of your own, set the partner’s key ([Partners](/docs/partners)); the test environment has a sandbox.',
  },
})

/** For the error tables of operations that call a partner. */
export const partnerErrors = fail.table
