import { archivedRecord, defineErrors } from '../../platform/errors.ts'

const noDelivery = { title: 'Delivery Not Found', detail: 'The webhook has no such delivery.' }

export const fail = defineErrors({
  'webhook-not-found': {
    status: 404,
    title: 'Webhook Not Found',
    detail: 'No such webhook.',
    causes: ['This organisation has no webhook with this id in this environment, or the webhook was deleted.'],
    fix: 'List the webhooks with `GET /webhooks`, with a key of the environment in which the webhook was registered.',
  },
  'event-not-found': {
    status: 404,
    title: 'Event Not Found',
    detail: 'No such event, or it is older than 30 days.',
    causes: ['The event is older than 30 days, or its `evt_…` is of another organisation or environment.'],
    fix: 'List events with `GET /events`. For older facts read the resource itself, for example `GET /payments/{id}`.',
  },
  archived: {
    ...archivedRecord,
    causes: [
      'The operator moved the events of that month to the archive (`purser admin archive`), and archived events are not sent again.',
    ],
    fix: 'Read the resource that the event was about, or ask the operator for the archive file of that month.',
  },
  'delivery-not-found': {
    status: 422,
    ...noDelivery,
    causes: [
      'The webhook has no delivery with this `deliveryId`. The delivery may belong to another webhook, or be older than 30 days.',
    ],
    fix: 'Take it from `GET /webhooks/{webhookId}/attempts`. To send an event whatever its deliveries, use `POST /events/{eventId}/resend`.',
  },
  'webhook-url-not-allowed': {
    status: 422,
    title: 'Webhook URL Not Allowed',
    detail: 'Events are only delivered to public addresses over HTTPS. reason names the fault.',
    causes: [
      '`reason` `scheme-refused`: the URL is not `https`.',
      '`host-refused` or `address-refused`: it names `localhost`, a local name, a private address or a server of the deployment, such as a node, which the service must not reach into.',
      '`port-refused`: only 443, 4443, 8080, 8443, 9443, 10443 and 80 are allowed. `credentials-refused`: it contains a user or password. `url-too-long`: more than 2,048 characters.',
    ],
    fix: 'Register a public `https` address. For a receiver on your machine run `purser listen --forward-to http://localhost:3000/hook`, which needs no webhook; a deployment with `WEBHOOKS_ALLOW_PRIVATE=true`, such as that of `npm start`, delivers to local addresses.',
  },
  'webhook-disabled': {
    status: 409,
    title: 'Webhook Disabled',
    detail: 'The webhook is disabled. Enable it first: PATCH /webhooks/{id} with isActive true.',
    causes: [
      'Somebody turned the webhook off, or the service did after its deliveries had failed for days (event `webhook.disabled`).',
    ],
    fix: 'Fix the receiver, send `PATCH /webhooks/{webhookId}` with `{ "isActive": true }`, and replay the missed deliveries.',
  },
})
