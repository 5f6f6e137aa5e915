import { defineErrors } from '../../platform/errors.ts'

const noDelivery = { title: 'Delivery Not Found', detail: 'The webhook has no such delivery.' }

export const fail = defineErrors({
  'webhook-not-found': { status: 404, title: 'Webhook Not Found', detail: 'No such webhook.' },
  'event-not-found': { status: 404, title: 'Event Not Found', detail: 'No such event, or it is older than 30 days.' },
  archived: {
    status: 410,
    title: 'Archived',
    detail:
      'The event or payment is old and was moved to the archive of the service. What a payment used up stays used.',
  },
  'delivery-not-found': { status: 422, ...noDelivery },
  'webhook-url-not-allowed': {
    status: 422,
    title: 'Webhook URL Not Allowed',
    detail: 'Events are delivered to public addresses over HTTPS alone. reason says what is wrong with this URL.',
  },
  'webhook-disabled': {
    status: 409,
    title: 'Webhook Disabled',
    detail: 'The webhook is turned off; turn it on with isActive before anything is sent to it.',
  },
})
