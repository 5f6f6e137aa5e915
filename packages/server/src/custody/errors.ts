import { defineErrors } from '../platform/errors.ts'

/** Errors of using a key. The key service's message goes only into `cause`, because it names the key and the account. */
const fail = defineErrors({
  'custody-unavailable': {
    status: 503,
    title: 'Custody Unavailable',
    detail: 'The key service does not respond correctly. Nothing was created or sent. Try again shortly.',
    causes: [
      'The key service that seals and signs (AWS KMS, or the operator’s key file) does not respond, or refuses temporarily.',
    ],
    fix: 'Repeat after `Retry-After` with the same `Idempotency-Key`: nothing was created or sent. The operator looks at the key service and its permissions; the log has its message.',
  },
})

/** For the error tables of operations that use a key before they respond. */
export const custodyErrors = fail.table

/** Suggested delay before a retry. */
const retryAfterSeconds = 5

/** The problem for a key service that is unreachable or refuses temporarily. The request can be retried. */
export function unavailable(cause: unknown): Error {
  return fail('custody-unavailable', { retryAfterSeconds }, cause)
}
