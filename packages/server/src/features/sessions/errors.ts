import { defineErrors } from '../../platform/errors.ts'

const title = 'Session Not Found'

export const fail = defineErrors({
  'session-not-found': { status: 404, title, detail: 'No such session.' },
})

/** One error for every reason why a token is refused, so that the response discloses nothing about sessions of others. */
export const failToken = defineErrors({
  'session-not-found': {
    status: 402,
    title,
    detail:
      'sessionToken opens nothing here: it is unknown, replaced, expired, revoked, or for another host or wallet. Pay again.',
  },
})
