import { parameterRef } from './parameters.ts'

type Json = Readonly<Record<string, unknown>>

/** Component name, header field, description. */
const headers = [
  [
    'Signature',
    'X-Service-Signature',
    'sha256= and the hex HMAC-SHA256 of "<timestamp>.<body>"; two, separated by a comma, during a rotation.',
  ],
  ['Timestamp', 'X-Service-Timestamp', 'Time of this attempt, in Unix seconds.'],
  ['webhook-id', 'webhook-id', 'The eventId, equal on every delivery (Standard Webhooks).'],
  ['webhook-timestamp', 'webhook-timestamp', 'Time of this attempt, in Unix seconds (Standard Webhooks).'],
  ['webhook-signature', 'webhook-signature', 'Signatures v1 and v1a, separated by spaces (Standard Webhooks).'],
] as const

const responses = {
  410: ['Unsubscribed', 'Disables the webhook: no more deliveries.'],
  '2XX': ['Received', 'Received. Any other status, or none within ten seconds, and it is delivered again.'],
} as const

/** The components that all deliveries use, each defined once. */
export const deliveryComponents = {
  parameters: Object.fromEntries(
    headers.map(([component, name, description]) => [
      component,
      { name, in: 'header', required: true, schema: { type: 'string' }, description },
    ]),
  ),
  responses: Object.fromEntries(Object.values(responses).map(([name, description]) => [name, { description }])),
  pathItems: { Delivery: { parameters: headers.map(([component]) => parameterRef(component)) } },
  schemas: {
    DeliveryBody: {
      type: 'object',
      properties: {
        eventId: { $ref: '#/components/schemas/EventId' },
        type: { type: 'string', description: 'Event type.' },
        payload: { type: 'object', description: 'What happened, by the type.' },
      },
      required: ['eventId', 'type', 'payload'],
      description: 'The body of a delivery to a webhook.',
    },
  },
} as const

/** A webhook delivery. Only its receiver reads the body, so the schema is a promise. */
export function deliveryOf(type: string, payload: Json): Json {
  const own = { properties: { type: { const: type }, payload } }
  const schema = { allOf: [{ $ref: '#/components/schemas/DeliveryBody' }, own] }
  return {
    $ref: '#/components/pathItems/Delivery',
    post: {
      summary: `Event ${type}.`,
      security: [],
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: Object.fromEntries(
        Object.entries(responses).map(([status, [name]]) => [status, { $ref: `#/components/responses/${name}` }]),
      ),
    },
  }
}
