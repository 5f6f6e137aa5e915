import { defineErrors } from '../platform/errors.ts'

/** What using a key may end in for now. What the key service said goes to `cause` alone: it names the key and the account. */
export const fail = defineErrors({
  'custody-unavailable': {
    status: 503,
    title: 'Custody Unavailable',
    detail: 'The service that guards the keys does not answer as it must. Nothing was made or sent. Try again shortly.',
  },
})

/** For the error tables of operations that use a key before they answer. */
export const custodyErrors = fail.table

/** How long a caller is told to wait for a key service. */
const retryAfterSeconds = 5

/** That a key service could not be asked, or would not answer for now; the same request works when it is back. */
export function unavailable(cause: unknown): Error {
  return fail('custody-unavailable', { retryAfterSeconds }, cause)
}
