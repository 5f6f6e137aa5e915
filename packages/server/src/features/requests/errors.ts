import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'request-not-found': {
    status: 404,
    title: 'Request Not Found',
    detail: 'No such request, or it is no longer in the request log.',
  },
})
