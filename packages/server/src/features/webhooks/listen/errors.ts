import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'event-not-found': {
    status: 422,
    title: 'Event Not Found',
    detail: 'Nothing with the id in Last-Event-ID is kept any more; use from, or begin without it.',
  },
  'webhook-not-found': { status: 422, title: 'Webhook Not Found', detail: 'No such webhook.' },
  'test-environment-only': {
    status: 403,
    title: 'Test Environment Only',
    detail: 'Events are made up in the test environment alone; use a test key.',
  },
})
