import { parameterRef } from './parameters.ts'

type Json = Readonly<Record<string, unknown>>

const headers = [
  [
    'X-Service-Signature',
    'sha256= and the hex HMAC-SHA256 of "<timestamp>.<body>"; two, separated by a comma, during a rotation.',
  ],
  ['X-Service-Timestamp', 'Time of this attempt, in Unix seconds.'],
  ['webhook-id', 'The eventId (Standard Webhooks).'],
  ['webhook-timestamp', 'Time of this attempt, in Unix seconds (Standard Webhooks).'],
  ['webhook-signature', 'Signatures v1 and v1a, separated by spaces (Standard Webhooks).'],
] as const

const responses = {
  410: ['Unsubscribed', 'Disables the webhook: no more deliveries.'],
  '2XX': ['Received', 'Received. Any other status, or none within ten seconds, and it is delivered again.'],
} as const

/** What all deliveries have, each defined once. */
export const deliveryComponents = {
  parameters: Object.fromEntries(
    headers.map(([name, description]) => [
      name,
      { name, in: 'header', required: true, schema: { type: 'string' }, description },
    ]),
  ),
  responses: Object.fromEntries(Object.values(responses).map(([name, description]) => [name, { description }])),
} as const

/** A webhook delivery. Only its receiver reads the body, so the schema is a promise. */
export function deliveryOf(type: string, payload: Json): Json {
  const schema = {
    type: 'object',
    properties: {
      eventId: { type: 'string', description: 'Equal on every delivery of the event.' },
      type: { type: 'string', const: type, description: 'The event type.' },
      payload,
    },
    required: ['eventId', 'type', 'payload'],
  }
  return {
    post: {
      summary: `The event ${type}.`,
      security: [],
      parameters: headers.map(([name]) => parameterRef(name)),
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: Object.fromEntries(
        Object.entries(responses).map(([status, [name]]) => [status, { $ref: `#/components/responses/${name}` }]),
      ),
    },
  }
}
