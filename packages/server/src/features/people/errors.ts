import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'session-not-found': { status: 404, title: 'Session Not Found', detail: 'No such session of this account.' },
  'person-required': {
    status: 403,
    title: 'Person Required',
    detail: 'This is for a person who is signed in, not for an API key.',
  },
  'password-incorrect': { status: 403, title: 'Password Incorrect', detail: 'The current password is another one.' },
})
