import { STATUS_CODES } from 'node:http'
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
  'organisation-suspended',
  'origin-not-allowed',
  'environment-not-served',
  'organisation-not-found',
  'request-timeout',
  'validation-error',
  'rate-limit-exceeded',
  'idempotency-storage-exceeded',
  'request-header-fields-too-large',
  'internal-error',
  'service-unavailable',
]

/** A body is read with every method except GET, whether the operation takes one or not. */
const withBody: readonly PlatformCode[] = ['payload-too-large', 'unsupported-media-type']

/** Errors that every operation with the method may return. */
const ofMethod: Readonly<Record<Operation['method'], readonly PlatformCode[]>> = {
  GET: [],
  POST: [...withBody, 'idempotency-key-reused', 'idempotency-in-progress'],
  PUT: withBody,
  PATCH: withBody,
  DELETE: withBody,
}

/** Every error that an operation may return: its module's and the platform's. */
export function errorsOf(operation: Operation): ErrorTable {
  return {
    ...pick(anywhere),
    // A name in the path that is too long, or is not valid text, is an unknown address.
    ...(operation.path.includes('{') ? pick(['not-found']) : {}),
    ...pick(ofMethod[operation.method]),
    ...(operation.input === undefined ? {} : pick(['malformed-json'])),
    ...operation.errors,
  }
}

/**
 * The header fields of success responses, and the errors, that all operations with one method share, for the document. An operation does
 * not repeat these.
 */
export function sharedByMethod(): Json {
  const shared = Object.entries(ofMethod).flatMap(([method, codes]) => {
    if (codes.length === 0) return []
    const headers = method === 'POST' ? { headers: headerRefs(['Idempotency-Replayed']) } : {}
    return [[method.toLowerCase(), { ...headers, 'x-problems': codes }]]
  })
  return Object.fromEntries(shared)
}

/** The table of all errors of the product: the platform's and all modules'. */
export function allErrors(operations: readonly Operation[]): ErrorTable {
  return Object.assign({}, failPlatform.table, ...operations.map((operation) => errorsOf(operation))) as ErrorTable
}

function pick(codes: readonly PlatformCode[]): ErrorTable {
  return Object.fromEntries(codes.map((code) => [code, failPlatform.table[code]]))
}

/** Errors in OpenAPI form: those of one operation by name, and what they share, each defined once. */
export interface Refusals {
  of(operation: Operation): { readonly responses: Json; readonly 'x-problems'?: readonly string[] }
  /** Call it after the last operation was described. */
  components(): { readonly responses: Json; readonly 'x-problems': Json }
}

/**
 * Collects the errors of operations while they are described. `4XX` and `5XX` are the responses that every operation may give,
 * `sharedByMethod` has the errors of every operation with one method, and `x-problems` of an operation names its other errors; a status
 * that only the operation's module uses has its own response.
 */
export function createRefusals(): Refusals {
  const statuses = new Set<number>()
  const known = new Map<string, ErrorEntry>()
  const nameFor = ([code, entry]: CodedError): string => {
    const name = nameOf(known, code, entry)
    known.set(name, entry)
    return name
  }
  for (const code of [...anywhere, ...ofMethod.POST]) known.set(code, failPlatform.table[code])
  return {
    of: (operation) => {
      const entries = Object.entries(errorsOf(operation)).filter(([code, entry]) => !isShared(operation, code, entry))
      const own = entries.filter(([code, entry]) => !isOfPlatform(code, entry)).map(([, { status }]) => status)
      for (const status of own) statuses.add(status)
      const names = [...own.map(String), '4XX', '5XX']
      return {
        ...(entries.length === 0 ? {} : { 'x-problems': entries.map(nameFor) }),
        responses: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/responses/${name}` }])),
      }
    },
    components: () => ({
      responses: {
        ...Object.fromEntries([...statuses].toSorted().map((status) => [status, ownResponse(status)])),
        '4XX': sharedResponse('Refused', 4),
        '5XX': sharedResponse('Failed', 5),
      },
      'x-problems': Object.fromEntries([...known].map(([name, entry]) => [name, recordOf(name, entry)])),
    }),
  }
}

type CodedError = readonly [code: string, entry: ErrorEntry]

/** Whether all operations, or all with this method, may return the error. */
function isShared({ method }: Operation, code: string, entry: ErrorEntry): boolean {
  return isOfPlatform(code, entry) && [...anywhere, ...ofMethod[method]].some((other) => other === code)
}

function isOfPlatform(code: string, entry: ErrorEntry): boolean {
  return Reflect.get(failPlatform.table, code) === entry
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

/** `ofPlatform` marks the errors that are the same in all operations, such as a wrong key. */
function recordOf(name: string, entry: ErrorEntry): Json {
  const { status, title, detail } = entry
  return { status, title, detail, ...(isOfPlatform(name, entry) ? { ofPlatform: true } : {}) }
}

/** A status that modules use. */
function ownResponse(status: number): Json {
  const description = `${STATUS_CODES[status]}: one of the operation's \`x-problems\` with this status.`
  return { description, headers: headersOf(status), content: problemContent }
}

/** The response that every operation may return for one class of statuses. */
function sharedResponse(word: string, statusClass: number): Json {
  const isMeant = (status: number): boolean => Math.floor(status / 100) === statusClass
  const codes = anywhere.filter((code) => isMeant(failPlatform.table[code].status))
  const statuses = Object.values(failPlatform.table).map(({ status }) => status)
  return {
    description: `${word}, as any operation may be: ${codes.map((code) => `\`${code}\``).join(', ')}.`,
    headers: Object.assign({}, ...statuses.filter(isMeant).map(headersOf)),
    content: problemContent,
    'x-problems': codes,
  }
}

const problemContent = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }

function headersOf(status: number): Json {
  return {
    ...(isKept(status) ? headerRefs(['Idempotency-Replayed']) : {}),
    ...(status === 409 || status === 429 || status === 503 ? headerRefs(['Retry-After']) : {}),
    ...(status === 401 ? headerRefs(['WWW-Authenticate']) : {}),
    ...(status === 416 ? headerRefs(['Content-Range']) : {}),
  }
}

/** Header fields of responses, each defined once. */
const headerComponents = {
  'X-Request-Id': { schema: { type: 'string' }, description: 'Names this request in logs and problem records.' },
  'X-Service-Version': { schema: { type: 'string' }, description: 'The version of the interface, `info.version`.' },
  'X-Service-Organisation': {
    schema: { type: 'string' },
    description: 'For API keys: the organisation; also on errors.',
  },
  'X-Service-Share': {
    schema: { type: 'string' },
    description: 'For API keys: an opaque id that is the same for organisations with common limits.',
  },
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

/** Shorter component names for header fields that many operations refer to. */
const headerNames: Readonly<Record<string, string>> = { 'Idempotency-Replayed': 'Replayed' }

/** Header fields by reference. */
export function headerRefs(names: readonly (keyof typeof headerComponents)[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${headerNames[name] ?? name}` }]))
}

/** The components of all header fields, for the document. */
export function headersByName(): Json {
  return Object.fromEntries(
    Object.entries(headerComponents).map(([name, header]) => [headerNames[name] ?? name, header]),
  )
}

/** Headers that every response has; `x-every-response` of the document names them once. */
export const responseHeaders: Json = headerRefs([
  'X-Request-Id',
  'X-Service-Version',
  'X-Service-Organisation',
  'X-Service-Share',
  'RateLimit',
  'RateLimit-Policy',
])
