import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'event-not-found': {
    status: 422,
    title: 'Event Not Found',
    detail: 'The vault has no event with the id in Last-Event-ID; use from, or begin without it.',
  },
})
