import type { z } from 'zod'
import type { Operation } from '../operation.ts'
import { type ComponentSchemas, componentSchemas } from './component-schemas.ts'
import { ProblemRecord } from './problem.ts'
import { answerHeaders, createRefusals, headerComponents, headerRefs, type Refusals } from './refusals.ts'

type Json = Readonly<Record<string, unknown>>

/** What the operations of each tag are about. */
export type TagDescriptions = Readonly<Record<string, string>>

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
  tags: TagDescriptions = {},
): Json {
  const paths: Record<string, Record<string, unknown>> = {}
  const schemas = componentSchemas(schemasUsed(operations, eventPayloads))
  const refusals = createRefusals()
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: describe(operation, schemas, refusals),
    }
  }
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: [...new Set(operations.map(tagOf))].sort().map((name) => ({ name, description: tags[name] ?? name })),
    paths,
    webhooks: Object.fromEntries(
      Object.entries(eventPayloads).map(([type, payload]) => [type, eventOf(type, schemas.of(payload, 'output'))]),
    ),
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: svc_test_sk_… or svc_live_sk_…' },
      },
      schemas: schemas.components,
      parameters: sharedParameters,
      headers: headerComponents,
      ...refusals.components(),
    },
  }
}

function schemasUsed(operations: readonly Operation[], eventPayloads: EventPayloads) {
  const given = (schema: z.ZodType | undefined): readonly z.ZodType[] => (schema === undefined ? [] : [schema])
  return {
    input: operations.flatMap(({ params, query, input }) => [params, query, input].flatMap(given)),
    output: [
      ProblemRecord,
      ...Object.values(eventPayloads),
      ...operations.flatMap(({ output, otherOutputs = {} }) => [...given(output), ...Object.values(otherOutputs)]),
    ],
  }
}

/** A webhook delivery. Only its receiver reads the body, so the schema is a promise. */
function eventOf(type: string, payload: Json): Json {
  const schema = {
    type: 'object',
    properties: {
      eventId: { type: 'string', description: 'Equal on every delivery of the event.' },
      type: { type: 'string', const: type },
      payload,
    },
    required: ['eventId', 'type', 'payload'],
  }
  return {
    post: {
      summary: `The event ${type}.`,
      security: [],
      parameters: deliveryHeaders.map(([name]) => parameterRef(name)),
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: {
        '2XX': { description: 'Received. Any other status, or none within ten seconds, and it is delivered again.' },
        410: { description: 'Disables the webhook: no more deliveries.' },
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

function describe(operation: Operation, schemas: ComponentSchemas, refusals: Refusals): Json {
  const parameters = [
    ...parametersOf(operation.params, 'path', schemas),
    ...parametersOf(operation.query, 'query', schemas),
    ...(operation.method === 'POST' ? [parameterRef('Idempotency-Key')] : []),
  ]
  const content =
    operation.streamsInput === undefined
      ? operation.input && { 'application/json': { schema: schemas.of(operation.input, 'input') } }
      : { [operation.streamsInput.mediaType]: { schema: operation.streamsInput.schema } }
  const refused = refusals.of(operation)
  return {
    operationId: operation.id,
    tags: [tagOf(operation)],
    ...(operation.agent === undefined ? {} : { 'x-purser-tool': operation.agent }),
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(content === undefined ? {} : { requestBody: { required: true, content } }),
    ...refused,
    responses: { ...answersOf(operation, schemas), ...refused.responses },
  }
}

/** Parameters of many operations and of all deliveries, each defined once. */
const sharedParameters: Readonly<Record<string, Json>> = {
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    description: 'Send the same key again to repeat a request safely; its response is stored for 24 hours.',
  },
  limit: {
    name: 'limit',
    in: 'query',
    required: false,
    schema: { default: 50, type: 'integer', minimum: 1, maximum: 500 },
    description: 'Most items of a page.',
  },
  cursor: {
    name: 'cursor',
    in: 'query',
    required: false,
    schema: { type: 'string', maxLength: 512 },
    description: 'Where the page starts: the cursor in the `Link` header of the page before.',
  },
  ...Object.fromEntries(
    deliveryHeaders.map(([name, description]) => [
      name,
      { name, in: 'header', required: true, schema: { type: 'string' }, description },
    ]),
  ),
}

function parameterRef(name: string): Json {
  return { $ref: `#/components/parameters/${name}` }
}

function parametersOf(schema: z.ZodType | undefined, place: 'path' | 'query', schemas: ComponentSchemas): Json[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schemas.of(schema, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => {
    const isRequired = place === 'path' || required.includes(name)
    const shared = sharedParameters[name]
    const isShared = JSON.stringify([shared?.schema, shared?.required]) === JSON.stringify([property, isRequired])
    return isShared ? parameterRef(name) : { name, in: place, required: isRequired, schema: property }
  })
}

function answersOf(operation: Operation, schemas: ComponentSchemas): Json {
  const isJson = operation.streamsOutput === undefined
  const status = operation.status ?? (operation.output === undefined && isJson ? 204 : 200)
  const usual = isJson
    ? success(operation, schemas, operation.output)
    : streamed(operation, operation.streamsOutput ?? '*/*')
  const others = Object.entries(operation.otherOutputs ?? {}).map(
    ([other, schema]) => [other, otherAnswer(operation, schemas, Number(other), schema)] as const,
  )
  return { [status]: usual, ...Object.fromEntries(others) }
}

/** A response besides the usual one; that of a stream is bytes too, unless its status has no body. */
function otherAnswer(operation: Operation, schemas: ComponentSchemas, status: number, schema: z.ZodType): Json {
  if (status === 304) return { ...success(operation, schemas, undefined), description: 'Not modified; no body.' }
  if (status === 204) return success(operation, schemas, undefined)
  if (operation.streamsOutput === undefined) return success(operation, schemas, schema)
  const answer = streamed(operation, operation.streamsOutput)
  if (status !== 206) return answer
  const headers = { ...Object(answer.headers), ...headerRefs(['Content-Range']) }
  return { ...answer, description: 'The requested part.', headers }
}

function success(operation: Operation, schemas: ComponentSchemas, output: z.ZodType | undefined): Json {
  const headers = successHeaders(operation)
  if (output === undefined) return { description: 'Done; no body.', headers }
  const schema = schemas.of(output, 'output')
  const content = {
    'application/json': { schema: operation.list === true ? { type: 'array', items: schema } : schema },
    ...(operation.csvName === undefined ? {} : { 'text/csv': { schema: { type: 'string' } } }),
  }
  return { description: 'Success.', headers, content }
}

/** A response of bytes, not JSON. */
function streamed(operation: Operation, mediaType: string): Json {
  const content = { [mediaType]: { schema: { type: 'string', format: 'binary' } } }
  return { description: 'OK', headers: successHeaders(operation), content }
}

function successHeaders({ method, list, csvName, answerHeaders: own = {} }: Operation): Json {
  return {
    ...answerHeaders,
    ...(method === 'POST' ? headerRefs(['Idempotency-Replayed']) : {}),
    ...(list === true ? headerRefs(['Link']) : {}),
    ...(csvName === undefined ? {} : headerRefs(['Vary', 'Content-Disposition'])),
    ...Object.fromEntries(
      Object.entries(own).map(([name, description]) => [name, { schema: { type: 'string' }, description }]),
    ),
  }
}
