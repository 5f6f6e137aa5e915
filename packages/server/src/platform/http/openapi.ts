import { z } from 'zod'
import type { Operation } from '../operation.ts'
import { ProblemRecord } from './problem.ts'
import { answerHeaders, createRefusals, headerComponents, headerRefs, type Refusals } from './refusals.ts'

type Json = Readonly<Record<string, unknown>>

export interface ApiInfo {
  readonly title: string
  readonly version: string
  readonly description: string
}

/** The schema of each event type's payload, as sent to webhooks. */
export type EventPayloads = Readonly<Record<string, z.ZodType>>

/** The OpenAPI 3.1 document of these operations and events, generated from the schemas that validate them. */
export function openApiDocument(
  operations: readonly Operation[],
  info: ApiInfo,
  eventPayloads: EventPayloads = {},
): Json {
  const paths: Record<string, Record<string, unknown>> = {}
  const refusals = createRefusals()
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: describe(operation, refusals),
    }
  }
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: [...new Set(operations.map(tagOf))].sort().map((name) => ({ name })),
    paths,
    webhooks: Object.fromEntries(
      Object.entries(eventPayloads).map(([type, payload]) => [type, eventOf(type, payload)]),
    ),
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: svc_test_sk_… or svc_live_sk_…' },
      },
      schemas: { Problem: schemaOf(ProblemRecord, 'output') },
      headers: headerComponents,
      ...refusals.components(),
    },
  }
}

/** A webhook delivery. Only its receiver reads the body, so the schema is a promise. */
function eventOf(type: string, payload: z.ZodType): Json {
  const schema = {
    type: 'object',
    properties: {
      eventId: { type: 'string', description: 'Equal on every delivery of the event.' },
      type: { type: 'string', const: type },
      payload: schemaOf(payload, 'output'),
    },
    required: ['eventId', 'type', 'payload'],
  }
  return {
    post: {
      summary: `The event ${type}.`,
      security: [],
      parameters: deliveryHeaders.map(([name, description]) => {
        return { name, in: 'header', required: true, schema: { type: 'string' }, description }
      }),
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: {
        '2XX': { description: 'Received. Any other status, or none within ten seconds, and it is delivered again.' },
        410: { description: 'The receiver wants no more deliveries; the webhook is disabled.' },
      },
    },
  }
}

const deliveryHeaders = [
  [
    'X-Service-Signature',
    'sha256= and the hex HMAC-SHA256 of "<timestamp>.<body>"; two, separated by a comma, during a rotation.',
  ],
  ['X-Service-Timestamp', 'Time of this attempt, in Unix seconds.'],
  ['webhook-id', 'The eventId (Standard Webhooks).'],
  ['webhook-timestamp', 'Time of this attempt, in Unix seconds (Standard Webhooks).'],
  ['webhook-signature', 'Signatures v1 and v1a, separated by spaces (Standard Webhooks).'],
] as const

function tagOf(operation: Operation): string {
  return operation.id.split('.')[0] ?? operation.id
}

function describe(operation: Operation, refusals: Refusals): Json {
  const parameters = [
    ...parametersOf(operation.params, 'path'),
    ...parametersOf(operation.query, 'query'),
    ...(operation.method === 'POST' ? [idempotencyParameter] : []),
  ]
  const content =
    operation.streamsInput === undefined
      ? operation.input && { 'application/json': { schema: schemaOf(operation.input, 'input') } }
      : { [operation.streamsInput.mediaType]: { schema: operation.streamsInput.schema } }
  return {
    operationId: operation.id,
    tags: [tagOf(operation)],
    ...(operation.agent === undefined ? {} : { 'x-purser-tool': operation.agent }),
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(content === undefined ? {} : { requestBody: { required: true, content } }),
    responses: { ...answersOf(operation), ...refusals.of(operation) },
  }
}

const idempotencyParameter: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description: 'Send the same key again to repeat a request safely; its response is stored for 24 hours.',
}

function parametersOf(schema: z.ZodType | undefined, place: 'path' | 'query'): Json[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: property,
  }))
}

function answersOf(operation: Operation): Json {
  const isJson = operation.streamsOutput === undefined
  const status = operation.status ?? (operation.output === undefined && isJson ? 204 : 200)
  const usual = isJson ? success(operation, operation.output) : streamed(operation, operation.streamsOutput ?? '*/*')
  const others = Object.entries(operation.otherOutputs ?? {}).map(
    ([other, schema]) => [other, otherAnswer(operation, Number(other), schema)] as const,
  )
  return { [status]: usual, ...Object.fromEntries(others) }
}

/** A response besides the usual one; that of a stream is bytes too, unless its status has no body. */
function otherAnswer(operation: Operation, status: number, schema: z.ZodType): Json {
  if (status === 304) return { ...success(operation, undefined), description: 'Not modified; no body.' }
  if (status === 204) return success(operation, undefined)
  if (operation.streamsOutput === undefined) return success(operation, schema)
  const answer = streamed(operation, operation.streamsOutput)
  if (status !== 206) return answer
  const headers = { ...Object(answer.headers), ...headerRefs(['Content-Range']) }
  return { ...answer, description: 'The requested part.', headers }
}

function success(operation: Operation, output: z.ZodType | undefined): Json {
  const headers = successHeaders(operation)
  if (output === undefined) return { description: 'Done; no body.', headers }
  const schema = schemaOf(output, 'output')
  return {
    description: 'Success.',
    headers,
    content: { 'application/json': { schema: operation.list === true ? { type: 'array', items: schema } : schema } },
  }
}

/** A response of bytes, not JSON. */
function streamed(operation: Operation, mediaType: string): Json {
  const content = { [mediaType]: { schema: { type: 'string', format: 'binary' } } }
  return { description: 'OK', headers: successHeaders(operation), content }
}

function successHeaders({ method, list, answerHeaders: own = {} }: Operation): Json {
  return {
    ...answerHeaders,
    ...(method === 'POST' ? headerRefs(['Idempotency-Replayed']) : {}),
    ...(list === true ? headerRefs(['Link']) : {}),
    ...Object.fromEntries(
      Object.entries(own).map(([name, description]) => [name, { schema: { type: 'string' }, description }]),
    ),
  }
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const made = z.toJSONSchema(schema, { target: 'draft-2020-12', io, unrepresentable: 'any' }) as Record<
    string,
    unknown
  >
  const { $schema: _, ...rest } = tidy(made, io) as Record<string, unknown>
  return rest
}

/**
 * Removes details of the library's schemas that a reader should not rely on: bounds that are only those of a JavaScript integer, and, in
 * responses, that no member may be added, which would make every new field a breaking change.
 */
function tidy(value: unknown, io: 'input' | 'output'): unknown {
  if (Array.isArray(value)) return value.map((inner) => tidy(inner, io))
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name, inner]) => {
    if (name === 'minimum' || name === 'maximum') return Math.abs(Number(inner)) !== Number.MAX_SAFE_INTEGER
    return !(io === 'output' && name === 'additionalProperties' && inner === false)
  })
  return Object.fromEntries(kept.map(([name, inner]) => [name, tidy(inner, io)]))
}
