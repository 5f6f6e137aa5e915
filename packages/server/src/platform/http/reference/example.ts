import type { Described, MediaType, Schema } from './document.ts'

/** A request to paste into a shell: a recorded body or, without one, the required fields with valid values. */
export function exampleRequest(operation: Described, baseUrl: string): string {
  const { method, requestBody } = operation
  const body = requestBody?.content['application/json']
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(`${baseUrl}${addressOf(operation)}`)}`,
    "-H 'Authorization: Bearer svc_test_sk_…'",
    ...(operation.parameters.some(({ name }) => name === 'Idempotency-Key')
      ? [`-H 'Idempotency-Key: a-key-of-yours'`]
      : []),
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(bodyOf(body)))}`]),
    ...(requestBody !== undefined && body === undefined ? ['-F file=@report.pdf'] : []),
  ]
  return lines.join(' \\\n  ')
}

/** The example of a body: the recorded one, or one that fits the schema. */
export function bodyOf({ schema, examples }: MediaType): unknown {
  return examples === undefined ? exampleOf(schema) : examples.recorded.value
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function addressOf({ path, parameters }: Described): string {
  const values = new Map(parameters.map(({ name, schema }) => [name, String(exampleOf(schema))]))
  const query = parameters.filter((parameter) => parameter.in === 'query' && parameter.required)
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values.get(name) ?? name)
  const requested = query.map(({ name }) => `${name}=${encodeURIComponent(values.get(name) ?? '')}`).join('&')
  return requested === '' ? filled : `${filled}?${requested}`
}

const byFormat: Readonly<Record<string, string>> = {
  'date-time': '2026-11-22T12:00:00.000Z',
  email: 'agent@example.com',
  ipv4: '203.0.113.7',
  uri: 'https://example.com/path',
}

/** A simple value that is valid for the schema. */
function exampleOf(schema: Schema): unknown {
  const [first] = [schema.example, schema.const, schema.default, schema.enum?.[0]].filter(
    (value) => value !== undefined,
  )
  if (first !== undefined) return first
  const [shape] = schema.anyOf ?? []
  if (shape !== undefined) return exampleOf(shape)
  const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0]
  if (type === 'array') return schema.items === undefined ? [] : [exampleOf(schema.items)]
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1
  if (type === 'boolean') return true
  if (type === 'string') return byFormat[schema.format ?? ''] ?? 'text'
  return Object.fromEntries(schema.required.map((name) => [name, exampleOf(schema.properties?.[name] ?? Schemaless)]))
}

const Schemaless: Schema = { required: [] }
