import { type ErrorEntry, type ErrorTable, failPlatform } from '../errors.ts'
import type { Operation } from '../operation.ts'
import { isKept } from './idempotency.ts'

type Json = Readonly<Record<string, unknown>>
type PlatformCode = keyof typeof failPlatform.table

/** What anybody may meet at any address, whatever stands there: some of it before it is known what was asked. */
const anywhere: readonly PlatformCode[] = [
  'bad-request',
  'unauthorized',
  'request-timeout',
  'validation-error',
  'rate-limit-exceeded',
  'request-header-fields-too-large',
  'internal-error',
  'service-unavailable',
]

/** Every refusal that an operation may answer: its room's and the platform's. */
export function errorsOf(operation: Operation): ErrorTable {
  return {
    ...pick(anywhere),
    // A name in the path that is longer than any, or that is no text, is no address at all.
    ...(operation.path.includes('{') ? pick(['not-found']) : {}),
    // A body is read with every method but GET, whether the operation takes one or not.
    ...(operation.method === 'GET' ? {} : pick(['payload-too-large', 'unsupported-media-type'])),
    ...(operation.input === undefined ? {} : pick(['malformed-json'])),
    ...(operation.method === 'POST' ? pick(['idempotency-key-reused', 'idempotency-in-progress']) : {}),
    ...operation.errors,
  }
}

/** The table of every refusal in the product: the platform's and all rooms'. */
export function allErrors(operations: readonly Operation[]): ErrorTable {
  return Object.assign({}, failPlatform.table, ...operations.map((operation) => errorsOf(operation))) as ErrorTable
}

function pick(codes: readonly PlatformCode[]): ErrorTable {
  return Object.fromEntries(codes.map((code) => [code, failPlatform.table[code]]))
}

/** Refusals as OpenAPI has them: what an operation answers, and what several of them share, said once. */
export interface Refusals {
  of(operation: Operation): Json
  /** Call it after the last operation was described. */
  components(): { readonly responses: Json; readonly examples: Json }
}

/** Gathers the refusals of operations while they are described. */
export function createRefusals(): Refusals {
  const responses: Record<string, Json> = {}
  const examples = new Map<string, ErrorEntry>()
  const referred = ([code, entry]: [string, ErrorEntry]): readonly [string, Json] => {
    const name = nameOf(examples, code, entry)
    examples.set(name, entry)
    return [code, { $ref: `#/components/examples/${name}` }]
  }
  const answered = (entries: [string, ErrorEntry][]): Json => {
    const made = refusal(entries, Object.fromEntries(entries.map(referred)))
    if (!entries.every(([code, entry]) => Reflect.get(failPlatform.table, code) === entry)) return made
    const name = entries.map(([code]) => code).join('-or-')
    responses[name] = made
    return { $ref: `#/components/responses/${name}` }
  }
  return {
    of: (operation) =>
      Object.fromEntries(
        [...Map.groupBy(Object.entries(errorsOf(operation)), ([, { status }]) => status)].map(([status, entries]) => [
          status,
          answered(entries),
        ]),
      ),
    components: () => ({
      responses,
      examples: Object.fromEntries([...examples].map(([name, entry]) => [name, exampleOf(name, entry)])),
    }),
  }
}

/** The code, and where rooms say different things by one code its status too. */
function nameOf(known: ReadonlyMap<string, ErrorEntry>, code: string, entry: ErrorEntry): string {
  const isFree = (name: string): boolean => {
    const other = known.get(name)
    return other === undefined || (other.status === entry.status && other.detail === entry.detail)
  }
  const names = [code, `${code}.${entry.status}`, ...[2, 3, 4].map((count) => `${code}.${entry.status}.${count}`)]
  const name = names.find(isFree)
  if (name === undefined) throw new Error(`too many rooms say different things by ${code}`)
  return name
}

function exampleOf(name: string, { status, title, detail }: ErrorEntry): Json {
  const type = `https://pay.example.com/problems/${name.split('.')[0]}`
  return { summary: title, value: { type, title, status, detail, requestId: 'req_01m7yt7rkmennbfhq2tbv5qtak' } }
}

function refusal(entries: readonly [string, ErrorEntry][], examples: Json): Json {
  const schema = { $ref: '#/components/schemas/Problem' }
  return {
    description: entries.map(([code]) => `\`${code}\``).join(', '),
    headers: { ...answerHeaders, ...headersOf(entries) },
    content: { 'application/problem+json': { schema, examples } },
  }
}

function headersOf(entries: readonly [string, ErrorEntry][]): Json {
  const status = entries[0]?.[1].status ?? 0
  const isWaitedFor = status === 429 || status === 503 || entries.some(([code]) => code === 'idempotency-in-progress')
  return {
    ...(isKept(status) ? headerRefs(['Idempotency-Replayed']) : {}),
    ...(isWaitedFor ? headerRefs(['Retry-After']) : {}),
    ...(status === 401 ? headerRefs(['WWW-Authenticate']) : {}),
    ...(status === 416 ? headerRefs(['Content-Range']) : {}),
  }
}

/** Header fields that answers carry, each said once. */
export const headerComponents = {
  'X-Request-Id': { schema: { type: 'string' }, description: 'Names this request in logs and problem records.' },
  RateLimit: {
    schema: { type: 'string' },
    description:
      'What is left: `"default";r=<requests>;t=<seconds until there are more>` (draft-ietf-httpapi-ratelimit-headers).',
  },
  'RateLimit-Policy': {
    schema: { type: 'string' },
    description:
      'The limit: `"default";q=<requests>;w=<seconds>`, of the key, or of the address where there is no good key.',
  },
  Link: { schema: { type: 'string' }, description: 'RFC 8288; rel="next" while more remain.' },
  'Retry-After': { schema: { type: 'integer' }, description: 'Seconds to wait before trying again.' },
  'Idempotency-Replayed': {
    schema: { type: 'string', const: 'true' },
    description: 'This is the answer of an earlier request with the same Idempotency-Key.',
  },
  'WWW-Authenticate': { schema: { type: 'string' }, description: 'That a Bearer key is asked for (RFC 6750).' },
  'Content-Range': {
    schema: { type: 'string' },
    description: 'Which bytes these are, or how many there are (RFC 9110).',
  },
} as const

/** Header fields by reference. */
export function headerRefs(names: readonly (keyof typeof headerComponents)[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** What every answer carries. */
export const answerHeaders: Json = headerRefs(['X-Request-Id', 'RateLimit', 'RateLimit-Policy'])
