import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'event-not-found': {
    status: 422,
    title: 'Event Not Found',
    detail: 'The vault has no event with the id in Last-Event-ID; use from, or begin without it.',
    causes: ['`Last-Event-ID` is not an event of this vault: an id of another vault, or one that a client invented.'],
    fix: 'Resume with the `id` of the last event that you received from this vault, replay from a time with `?from=2026-01-31T00:00:00Z`, or begin without both.',
  },
})
