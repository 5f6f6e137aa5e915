import type { z } from 'zod'
import type { GuestCredential, Operation } from '../operation.ts'
import { type ComponentSchemas, componentSchemas } from './component-schemas.ts'
import { csvOf } from './csv.ts'
import { deliveryComponents, deliveryOf } from './deliveries.ts'
import { type Parameters, parametersOf } from './parameters.ts'
import { ProblemRecord } from './problem.ts'
import {
  createRefusals,
  headerRefs,
  headersByName,
  type Refusals,
  responseHeaders,
  sharedByMethod,
} from './refusals.ts'

type Json = Readonly<Record<string, unknown>>

/** The subject of the operations of each tag. */
type TagDescriptions = Readonly<Record<string, string>>

export interface ApiInfo {
  readonly title: string
  readonly version: string
  readonly description: string
}

/** The schema of each event type's payload, as sent to webhooks. */
export type EventPayloads = Readonly<Record<string, z.ZodType>>

/** The texts that a document shows a reader beside the schemas. */
export interface Explanations {
  readonly tags?: TagDescriptions
  readonly examples?: RecordedExamples
}

const securitySchemes = {
  apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: svc_test_sk_… or svc_live_sk_…' },
  session: { type: 'apiKey', in: 'cookie', name: '__Host-purser.session_token' },
  vaultToken: { type: 'http', scheme: 'bearer' },
  streamTicket: { type: 'apiKey', in: 'query', name: 'ticket' },
  signedLink: { type: 'apiKey', in: 'query', name: 'signature' },
} satisfies Readonly<Record<'apiKey' | 'session' | GuestCredential, Json>>

/** The credentials that every operation takes. */
const memberCredentials = [{ apiKey: [] }, { session: [] }]

function webhooksOf(payloads: EventPayloads, schemas: ReturnType<typeof componentSchemas>): Json {
  return Object.fromEntries(
    Object.entries(payloads).map(([type, payload]) => [type, deliveryOf(type, schemas.of(payload, 'output'))]),
  )
}

/** The OpenAPI 3.1 document of these operations and events, generated from the schemas that validate them. */
export function openApiDocument(
  operations: readonly Operation[],
  info: ApiInfo,
  eventPayloads: EventPayloads = {},
  { tags = {}, examples: recorded = {} }: Explanations = {},
): Json {
  const schemas = componentSchemas(schemasUsed(operations, eventPayloads))
  const refusals = createRefusals()
  const parameters = parametersOf(operations, schemas)
  const examples = examplesOf(recorded)
  const paths = pathsOf(operations, (operation) => describe(operation, { schemas, refusals, parameters, examples }))
  const errors = refusals.components()
  const deliverySchemas = Object.keys(eventPayloads).length === 0 ? {} : deliveryComponents.schemas
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    security: memberCredentials,
    'x-every-response': { headers: responseHeaders },
    'x-every-operation': sharedByMethod(),
    tags: [...new Set(operations.map(tagOf))].sort().map((name) => ({ name, description: tags[name] ?? name })),
    paths,
    webhooks: webhooksOf(eventPayloads, schemas),
    components: {
      securitySchemes,
      schemas: { ...schemas.components, ...deliverySchemas },
      pathItems: deliveryComponents.pathItems,
      examples: examples.components,
      parameters: { ...parameters.components, ...deliveryComponents.parameters },
      headers: headersByName(),
      ...errors,
      responses: { ...errors.responses, ...deliveryComponents.responses },
    },
  }
}

/** The operations by path and method. */
function pathsOf(operations: readonly Operation[], described: (operation: Operation) => unknown): Json {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations)
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: described(operation) }
  return paths
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

function tagOf(operation: Operation): string {
  return operation.id.split('.')[0] ?? operation.id
}

interface Parts {
  readonly schemas: ComponentSchemas
  readonly refusals: Refusals
  readonly parameters: Parameters
  readonly examples: Examples
}

function describe(operation: Operation, { schemas, refusals, parameters: all, examples }: Parts): Json {
  const parameters = all.of(operation)
  const content =
    operation.streamsInput === undefined
      ? operation.input && {
          'application/json': { schema: schemas.of(operation.input, 'input'), ...examples.ofRequest(operation.id) },
        }
      : streamedBody(operation.streamsInput)
  const refused = refusals.of(operation)
  return {
    operationId: operation.id,
    tags: [tagOf(operation)],
    ...(operation.agent === undefined ? {} : { 'x-purser-tool': operation.agent }),
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(content === undefined ? {} : { requestBody: { required: true, content } }),
    ...securityOf(operation),
    ...refused,
    responses: { ...answersOf(operation, schemas, examples), ...refused.responses },
  }
}

/** The security of an operation that also takes other credentials than all operations. */
function securityOf({ guestCredentials }: Operation): Json {
  if (guestCredentials === undefined) return {}
  return { security: [...memberCredentials, ...guestCredentials.map((name) => ({ [name]: [] }))] }
}

function streamedBody({ mediaType, schema, example }: NonNullable<Operation['streamsInput']>): Json {
  return { [mediaType]: { schema, ...(example === undefined ? {} : { examples: { recorded: { value: example } } }) } }
}

function answersOf(operation: Operation, schemas: ComponentSchemas, examples: Examples): Json {
  const isJson = operation.streamsOutput === undefined
  const status = operation.status ?? (operation.output === undefined && isJson ? 204 : 200)
  const usual = isJson
    ? success(operation, schemas, { status, output: operation.output })
    : streamed(operation, operation.streamsOutput ?? '*/*')
  const others = Object.entries(operation.otherOutputs ?? {}).map(
    ([other, schema]) => [other, otherResponse(operation, schemas, Number(other), schema)] as const,
  )
  const answers = Object.entries<Json>({ [status]: usual, ...Object.fromEntries(others) })
  return Object.fromEntries(
    answers.map(([of, response]) => [of, exemplified(response, examples.ofResponse(operation, Number(of)))]),
  )
}

/** A response with the members of the example of each of its media types. */
function exemplified(response: Json, example: (mediaType: string) => Json): Json {
  if (response.content === undefined) return response
  const content = Object.entries(Object(response.content)).map(([type, described]) => [
    type,
    { ...Object(described), ...example(type) },
  ])
  return { ...response, content: Object.fromEntries(content) }
}

/** A response besides the usual one; that of a stream is bytes too, unless its status has no body. */
function otherResponse(operation: Operation, schemas: ComponentSchemas, status: number, schema: z.ZodType): Json {
  const empty = success(operation, schemas, { status, output: undefined })
  if (status === 304) return { ...empty, description: 'Not modified; no body.' }
  if (status === 204) return empty
  if (operation.streamsOutput === undefined) return success(operation, schemas, { status, output: schema })
  const response = streamed(operation, operation.streamsOutput)
  if (status !== 206) return response
  const headers = { ...Object(response.headers), ...headerRefs(['Content-Range']) }
  return { ...response, description: 'The requested part.', headers }
}

const phrases: Readonly<Record<number, string>> = { 201: 'Created.', 202: 'Accepted.' }

function success(
  operation: Operation,
  schemas: ComponentSchemas,
  { status, output }: { readonly status: number; readonly output: z.ZodType | undefined },
): Json {
  const headers = successHeaders(operation)
  if (output === undefined) return { description: 'Done; no body.', ...headers }
  const schema = schemas.of(output, 'output')
  const content = {
    'application/json': { schema: operation.list === true ? { type: 'array', items: schema } : schema },
    ...(operation.csvName === undefined ? {} : { 'text/csv': { schema: { type: 'string' } } }),
  }
  return { description: phrases[status] ?? 'OK.', ...headers, content }
}

/** A response of bytes, not JSON. */
function streamed(operation: Operation, mediaType: string): Json {
  const content = { [mediaType]: { schema: { type: 'string', format: 'binary' } } }
  return { description: 'OK.', ...successHeaders(operation), content }
}

/** Header fields of this operation's success responses, in addition to those that all responses of its method have. */
function successHeaders({ list, csvName, responseHeaders: own = {} }: Operation): Json {
  const headers = {
    ...(list === true ? headerRefs(['Link']) : {}),
    ...(csvName === undefined ? {} : headerRefs(['Vary', 'Content-Disposition'])),
    ...Object.fromEntries(
      Object.entries(own).map(([name, description]) => [name, { schema: { type: 'string' }, description }]),
    ),
  }
  return Object.keys(headers).length === 0 ? {} : { headers }
}

/** A call of an operation on a running service: the body of its request, and its successful response. */
export interface RecordedExample {
  readonly status: number
  readonly request?: unknown
  readonly response: unknown
  /** The responses to other calls with another success status, by that status. */
  readonly others?: Readonly<Record<string, unknown>>
}

/** A recorded call for each operation, by the id of the operation. */
type RecordedExamples = Readonly<Record<string, RecordedExample>>

/** The examples of an API document. */
interface Examples {
  /** Members of the media type of a request body. */
  ofRequest(operationId: string): Json
  /** Members of each media type of a response with this status. */
  ofResponse(operation: ExampleOf, status: number): (mediaType: string) => Json
  /** Values that several operations have, so that each is written once; read it after all others. */
  readonly components: Json
}

type ExampleOf = Pick<Operation, 'id' | 'output' | 'csvName' | 'streamExample'>

/** Shorter values are inlined, because a `$ref` would hardly be shorter. */
const sharedLengthMin = 100

/** The names of the values that occur several times and are long, by their JSON. */
function sharedNames(recorded: RecordedExamples): ReadonlyMap<string, string> {
  const values = Object.entries(recorded).flatMap(([id, { request, response, others = {} }]) => [
    { name: `${id}.request`, text: JSON.stringify(request) ?? '' },
    { name: id, text: JSON.stringify(response) ?? '' },
    ...Object.entries(others).map(([status, other]) => ({ name: `${id}.${status}`, text: JSON.stringify(other) })),
  ])
  const long = values.filter(({ text }) => text.length >= sharedLengthMin)
  const shared = [...Map.groupBy(long, ({ text }) => text).values()].filter((uses) => uses.length > 1)
  return new Map(shared.map(([first]) => [first?.text ?? '', first?.name ?? '']))
}

function examplesOf(recorded: RecordedExamples): Examples {
  const names = sharedNames(recorded)
  const membersOf = (value: unknown): Json => {
    if (!isShown(value)) return {}
    const name = names.get(JSON.stringify(value))
    return { examples: { recorded: name === undefined ? { value } : { $ref: `#/components/examples/${name}` } } }
  }
  const csvs = new Map<unknown, { readonly name: string; readonly value: string }>()
  const csvMembers = (operation: ExampleOf, response: unknown): Json => {
    const value = csvExample(operation, response)
    if (value === undefined) return {}
    const shared = csvs.get(operation.output) ?? { name: `${operation.id}.csv`, value }
    csvs.set(operation.output, shared)
    return { examples: { recorded: { $ref: `#/components/examples/${shared.name}` } } }
  }
  return {
    ofRequest: (id) => membersOf(recorded[id]?.request),
    ofResponse: (operation, status) => {
      const { id, streamExample } = operation
      if (streamExample !== undefined)
        return () => membersOf(status === 206 ? streamExample.slice(0, 9) : streamExample)
      const response = recorded[id]?.status === status ? recorded[id].response : recorded[id]?.others?.[status]
      return (mediaType) => (mediaType === 'text/csv' ? csvMembers(operation, response) : membersOf(response))
    },
    get components() {
      const values = [...names].map(([text, name]) => [name, { value: JSON.parse(text) }])
      return Object.fromEntries([...values, ...[...csvs.values()].map(({ name, value }) => [name, { value }])])
    },
  }
}

/** The first item of the recorded page of a list as CSV. Lists of one schema share the example of the first. */
function csvExample({ output, csvName }: ExampleOf, response: unknown): string | undefined {
  return output === undefined || csvName === undefined || !Array.isArray(response)
    ? undefined
    : csvOf(output, response.slice(0, 1))
}

const isShown = (value: unknown): boolean => value !== undefined && value !== ''
