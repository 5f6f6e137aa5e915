import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'session-not-found': {
    status: 404,
    title: 'Session Not Found',
    detail: 'No such session of this account.',
    causes: ['The sign-in has ended already, or it belongs to another account.'],
    fix: 'List your sign-ins with `GET /account/sessions`. One that is not listed needs no ending.',
  },
  'person-required': {
    status: 403,
    title: 'Person Required',
    detail: 'This operation requires a signed-in person; an API key cannot call it.',
    causes: ['The request was made with an API key. Sign-ins belong to people, and a key has none.'],
    fix: 'Sign in to the dashboard and open **Account**.',
  },
})
