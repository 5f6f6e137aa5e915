import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'event-not-found': {
    status: 422,
    title: 'Event Not Found',
    detail: 'No event with the id in Last-Event-ID is stored; use from, or start without it.',
    causes: [
      'The event of `Last-Event-ID` is older than 30 days and was deleted, or the id is of another organisation.',
    ],
    fix: 'Resume with `?from=` and a time, then skip the `eventId`s that you already processed. After a long pause, read the lists (`GET /payments/logs`, `GET /wallet-infra/transfers`) instead.',
  },
  'webhook-not-found': {
    status: 422,
    title: 'Webhook Not Found',
    detail: 'No such webhook.',
    causes: ['This organisation has no webhook with this `webhookId` in this environment.'],
    fix: 'Take the id from `GET /webhooks`, or leave `webhookId` out to send the event to all webhooks that subscribe to its type.',
  },
  'test-environment-only': {
    status: 403,
    title: 'Test Environment Only',
    detail: 'Sample events exist in the test environment only; use a test key.',
    causes: ['The API key is a live key. Made-up events must not reach receivers that act on real money.'],
    fix: 'Use a test key. To test a live receiver, send `POST /webhooks/{webhookId}/test`, whose event type is `webhook.test`.',
  },
})
