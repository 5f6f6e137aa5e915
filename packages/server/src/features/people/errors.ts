import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'session-not-found': {
    status: 404,
    title: 'Session Not Found',
    detail: 'No such session of this account.',
    causes: ['The sign-in has ended already, or it belongs to another account.'],
    fix: 'List your sign-ins with `GET /account/sessions`. One that is not listed needs no ending.',
  },
})
