import { defineErrors } from '../../platform/errors.ts'

const title = 'Session Not Found'

export const fail = defineErrors({
  'session-not-found': { status: 404, title, detail: 'No such session.' },
})

/** One refusal for every reason why a token opens nothing, so that the answer tells nothing about sessions of others. */
export const failToken = defineErrors({
  'session-not-found': {
    status: 402,
    title,
    detail:
      'sessionToken opens nothing here: it is unknown, replaced, expired, revoked, or for another host or wallet. Pay again.',
  },
})
