import { type ErrorEntry, type ErrorTable, failPlatform } from '../errors.ts'
import type { Operation } from '../operation.ts'
import { isKept } from './idempotency.ts'

type Json = Readonly<Record<string, unknown>>
type PlatformCode = keyof typeof failPlatform.table

/** Errors that any address may return; some of them before the operation is known. */
const anywhere: readonly PlatformCode[] = [
  'bad-request',
  'unauthorized',
  'role-not-allowed',
  'scope-not-allowed',
  'fresh-authentication-required',
  'origin-not-allowed',
  'environment-not-served',
  'organisation-not-found',
  'request-timeout',
  'validation-error',
  'rate-limit-exceeded',
  'request-header-fields-too-large',
  'internal-error',
  'service-unavailable',
]

/** Every error that an operation may return: its module's and the platform's. */
export function errorsOf(operation: Operation): ErrorTable {
  return {
    ...pick(anywhere),
    // A name in the path that is too long, or is not valid text, is an unknown address.
    ...(operation.path.includes('{') ? pick(['not-found']) : {}),
    // A body is read with every method except GET, whether the operation takes one or not.
    ...(operation.method === 'GET' ? {} : pick(['payload-too-large', 'unsupported-media-type'])),
    ...(operation.input === undefined ? {} : pick(['malformed-json'])),
    ...(operation.method === 'POST' ? pick(['idempotency-key-reused', 'idempotency-in-progress']) : {}),
    ...operation.errors,
  }
}

/** The table of all errors of the product: the platform's and all modules'. */
export function allErrors(operations: readonly Operation[]): ErrorTable {
  return Object.assign({}, failPlatform.table, ...operations.map((operation) => errorsOf(operation))) as ErrorTable
}

function pick(codes: readonly PlatformCode[]): ErrorTable {
  return Object.fromEntries(codes.map((code) => [code, failPlatform.table[code]]))
}

/** Errors in OpenAPI form: those of one operation, and the shared ones, each defined once. */
export interface Refusals {
  of(operation: Operation): Json
  /** Call it after the last operation was described. */
  components(): { readonly responses: Json; readonly examples: Json }
}

/** Collects the errors of these operations while they are described. */
export function createRefusals(operations: readonly Operation[]): Refusals {
  const uses = Map.groupBy(operations.flatMap(answersOf), signatureOf)
  const responses: Record<string, Json> = {}
  const examples = new Map<string, ErrorEntry>()
  const referred = ([code, entry]: CodedError): readonly [string, Json] => {
    const name = nameOf(examples, code, entry)
    examples.set(name, entry)
    return [code, { $ref: `#/components/examples/${name}` }]
  }
  const answered = (entries: readonly CodedError[]): Json => {
    const made = refusal(entries, Object.fromEntries(entries.map(referred)))
    if ((uses.get(signatureOf(entries)) ?? []).length < 2) return made
    const name = responseNameOf(entries)
    if (responses[name] !== undefined && JSON.stringify(responses[name]) !== JSON.stringify(made)) return made
    responses[name] = made
    return { $ref: `#/components/responses/${name}` }
  }
  return {
    of: (operation) =>
      Object.fromEntries(answersOf(operation).map((entries) => [entries[0]?.[1].status, answered(entries)])),
    components: () => ({
      responses,
      examples: Object.fromEntries([...examples].map(([name, entry]) => [name, exampleOf(name, entry)])),
    }),
  }
}

type CodedError = readonly [code: string, entry: ErrorEntry]

/** The errors of an operation, by status. */
function answersOf(operation: Operation): CodedError[][] {
  return [...Map.groupBy(Object.entries(errorsOf(operation)), ([, { status }]) => status).values()]
}

function signatureOf(entries: readonly CodedError[]): string {
  return entries.map(([code, { status, detail }]) => `${code} ${status} ${detail}`).join('\n')
}

/** The status, and the codes that not every address has. */
function responseNameOf(entries: readonly CodedError[]): string {
  const isAnywhere = (code: string): boolean => anywhere.some((other) => other === code)
  return [entries[0]?.[1].status, ...entries.map(([code]) => code).filter((code) => !isAnywhere(code))].join('.')
}

/** The code; with its status too if modules use it for different errors. */
function nameOf(known: ReadonlyMap<string, ErrorEntry>, code: string, entry: ErrorEntry): string {
  const isFree = (name: string): boolean => {
    const other = known.get(name)
    return other === undefined || (other.status === entry.status && other.detail === entry.detail)
  }
  const names = [code, `${code}.${entry.status}`, ...[2, 3, 4].map((count) => `${code}.${entry.status}.${count}`)]
  const name = names.find(isFree)
  if (name === undefined) throw new Error(`too many modules use ${code} for different errors`)
  return name
}

/** `x-of-platform` marks the errors that are the same in all operations, such as a wrong key. */
function exampleOf(name: string, entry: ErrorEntry): Json {
  const { status, title, detail } = entry
  const code = name.split('.')[0] ?? name
  const type = `https://pay.example.com/problems/${code}`
  const isOfPlatform = Reflect.get(failPlatform.table, code) === entry
  return {
    ...(isOfPlatform ? { 'x-of-platform': true } : {}),
    value: { type, title, status, detail, requestId: 'req_01m7yt7rkmennbfhq2tbv5qtak' },
  }
}

function refusal(entries: readonly CodedError[], examples: Json): Json {
  const schema = { $ref: '#/components/schemas/Problem' }
  return {
    description: entries.map(([code]) => `\`${code}\``).join(', '),
    headers: { ...answerHeaders, ...headersOf(entries) },
    content: { 'application/problem+json': { schema, examples } },
  }
}

function headersOf(entries: readonly CodedError[]): Json {
  const status = entries[0]?.[1].status ?? 0
  const isWaitedFor = status === 429 || status === 503 || entries.some(([code]) => code === 'idempotency-in-progress')
  return {
    ...(isKept(status) ? headerRefs(['Idempotency-Replayed']) : {}),
    ...(isWaitedFor ? headerRefs(['Retry-After']) : {}),
    ...(status === 401 ? headerRefs(['WWW-Authenticate']) : {}),
    ...(status === 416 ? headerRefs(['Content-Range']) : {}),
  }
}

/** Header fields of responses, each defined once. */
export const headerComponents = {
  'X-Request-Id': { schema: { type: 'string' }, description: 'Names this request in logs and problem records.' },
  RateLimit: {
    schema: { type: 'string' },
    description:
      'The remaining requests: `"default";r=<requests>;t=<seconds until there are more>` (draft-ietf-httpapi-ratelimit-headers).',
  },
  'RateLimit-Policy': {
    schema: { type: 'string' },
    description:
      'The limit: `"default";q=<requests>;w=<seconds>`, of the key, or of the address if there is no valid key.',
  },
  Link: { schema: { type: 'string' }, description: 'RFC 8288; rel="next" while more remain.' },
  Vary: { schema: { type: 'string' }, description: 'The request header fields that decide which response this is.' },
  'Content-Disposition': { schema: { type: 'string' }, description: 'Of CSV: the name of the file.' },
  'Retry-After': { schema: { type: 'integer' }, description: 'Seconds to wait before a retry.' },
  'Idempotency-Replayed': {
    schema: { type: 'string', const: 'true' },
    description: 'This is the response to an earlier request with the same Idempotency-Key.',
  },
  'WWW-Authenticate': { schema: { type: 'string' }, description: 'A Bearer key is required (RFC 6750).' },
  'Content-Range': {
    schema: { type: 'string' },
    description: 'The range of these bytes, or their total number (RFC 9110).',
  },
} as const

/** Header fields by reference. */
export function headerRefs(names: readonly (keyof typeof headerComponents)[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** Headers that every response has. */
export const answerHeaders: Json = headerRefs(['X-Request-Id', 'RateLimit', 'RateLimit-Policy'])
