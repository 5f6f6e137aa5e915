import { page } from '../guides/layout.ts'
import {
  type ApiDocument,
  apiDocument,
  type Described,
  type DocumentedProblem,
  type DocumentedResponse,
  type MediaType,
  operationsOf,
  type Parameter,
  referred,
  type Schema,
} from './document.ts'
import { code, escapeHtml, prose, table } from './html.ts'

/** The human-readable API page, generated from the OpenAPI document only. Generation takes some milliseconds, so it runs once. */
export function referencePage(openApi: unknown, baseUrl: string): string {
  const document = apiDocument(openApi)
  const groups = [...Map.groupBy(operationsOf(document), ({ tags }) => tags[0])]
  const parts = groups.map(([tag, members]) =>
    group(
      tag,
      members.map((operation) => section(operation, document, baseUrl)),
    ),
  )
  const body = [
    `<div class="plain"><header><h1>${escapeHtml(document.info.title)} API</h1>${introduction(document, baseUrl)}</header>`,
    `<nav aria-label="Operations">${groups.map(contentsOf).join('')}<p><a href="#all-errors">Errors of every operation</a> · <a href="#event-types">Events</a></p></nav>`,
    `<main id="content">${parts.join('\n')}${sharedErrors(document)}${events(document)}</main></div>`,
  ]
  return page(`${document.info.title} API`, body.join('\n'), { place: 'reference' })
}

function introduction(document: ApiDocument, baseUrl: string): string {
  const { info } = document
  return `<p>${prose(info.description)}</p>
<p>Version ${escapeHtml(info.version)}. Base address ${code(baseUrl)}. Every request carries ${code('Authorization: Bearer <API key>')}; bodies are JSON. The machine-readable description is <a href="/openapi.json">/openapi.json</a>.</p>
<p>Every response has these header fields:</p>${headersList(document['x-every-response'].headers, document.components.headers)}`
}

function contentsOf([tag, members]: readonly [string, readonly Described[]]): string {
  const items = members.map(({ operationId, method, path }) => {
    return `<li><a href="#${operationId}">${method} ${escapeHtml(path)}</a></li>`
  })
  return `<h2><a href="#${tag}">${escapeHtml(tag)}</a></h2><ul>${items.join('')}</ul>`
}

function group(tag: string, sections: readonly string[]): string {
  return `<section aria-labelledby="${tag}"><h2 id="${tag}">${escapeHtml(tag)}</h2>
${sections.join('\n')}</section>`
}

function section(operation: Described, document: ApiDocument, baseUrl: string): string {
  const { operationId, method, path, summary, description, requestBody } = operation
  const bodies = Object.entries(requestBody?.content ?? {}).map(
    ([type, { schema }]) => `<h4>Body (${escapeHtml(type)})</h4>${fieldsTable(`Body of ${operationId}`, schema)}`,
  )
  return `<section aria-labelledby="${operationId}"><h3 id="${operationId}">${code(`${method} ${path}`)}</h3>
<p>${prose(summary)} <small>${operationId}</small></p>${description === undefined ? '' : `<p>${prose(description)}</p>`}
${parametersOf(operation)}${bodies.join('')}
<h4>Example</h4><pre tabindex="0">${escapeHtml(exampleRequest(operation, baseUrl))}</pre>
${answersOf(operation, document)}
${errorsOf(operation, document)}</section>`
}

function parametersOf({ operationId, parameters }: Described): string {
  const row = ({ name, in: place, required, description, schema }: Parameter): string[] => {
    const notes = notesOf({ ...schema, description: description ?? schema.description })
    return [code(name), place, typeOf(schema), required ? 'yes' : 'no', notes]
  }
  if (parameters.length === 0) return ''
  const rows = table(`Parameters of ${operationId}`, ['Name', 'In', 'Type', 'Required', 'Notes'], parameters.map(row))
  return `<h4>Parameters</h4>${rows}`
}

function answersOf({ operationId, method, responses }: Described, document: ApiDocument): string {
  const { components, 'x-every-operation': ofMethods } = document
  const shared = ofMethods[method.toLowerCase()]?.headers
  const answers = Object.entries(responses).flatMap(([status, response]) => {
    if ('$ref' in response || Number(status) >= 400) return []
    const bodies = Object.entries(response.content ?? {}).map(([type, content]) =>
      type === 'application/json' && 'schema' in content
        ? fieldsTable(`Response ${status} of ${operationId}`, content.schema) + recordedResponse(content)
        : `<p>${code(type)}</p>`,
    )
    const fields = headersList({ ...shared, ...response.headers }, components.headers)
    const named = fields === '' ? '' : `<details><summary>Header fields</summary>${fields}</details>`
    return [`<h4>Response ${status}</h4><p>${prose(response.description)}</p>${bodies.join('')}${named}`]
  })
  return answers.join('')
}

/** The response that was recorded, if there is one. */
function recordedResponse({ examples }: MediaType): string {
  if (examples === undefined) return ''
  const text = JSON.stringify(examples.recorded.value, null, 2)
  return `<details><summary>Example</summary><pre tabindex="0">${escapeHtml(text)}</pre></details>`
}

function headersList(headers: DocumentedResponse['headers'], known: ApiDocument['components']['headers']): string {
  const items = Object.entries(headers).map(([name, header]) => {
    const description = '$ref' in header ? known[referred(header)]?.description : header.description
    return `<li>${code(name)}: ${prose(description ?? '')}</li>`
  })
  return items.length === 0 ? '' : `<ul>${items.join('')}</ul>`
}

/** The operation's own errors in full, and the shared ones by name. */
function errorsOf(operation: Described, { components, 'x-every-operation': ofMethods }: ApiDocument): string {
  const { '4XX': refused, '5XX': failed } = components.responses
  const lists = [operation, ofMethods[operation.method.toLowerCase()], refused, failed]
  const problems = lists
    .flatMap((one) => one?.['x-problems'] ?? [])
    .map((name) => [name, problemOf(name, components['x-problems'])] as const)
  const shared = problems.filter(([, { ofPlatform }]) => ofPlatform)
  const others = shared.map(([name]) => `<a href="#error-${name}">${code(name)}</a>`)
  const own = problems.filter(([, { ofPlatform }]) => !ofPlatform)
  const rows = own.map(([name, problem]) => errorRow(name, problem))
  return `<h4>Errors</h4>${table(`Errors of ${operation.operationId}`, ['Code', 'Status', 'Title', 'Detail'], rows)}<p>As everywhere: ${others.join(', ')}.</p>`
}

function problemOf(name: string, problems: ApiDocument['components']['x-problems']): DocumentedProblem {
  const problem = problems[name]
  if (problem === undefined) throw new Error(`the document has no problem ${name}`)
  return problem
}

/** The name of a problem is its code, followed by a dot and its status if modules use the code for different errors. */
function errorRow(name: string, { title, status, detail }: DocumentedProblem): string[] {
  const [problem = name] = name.split('.')
  return [`<a href="/problems/${problem}">${code(problem)}</a>`, String(status), escapeHtml(title), prose(detail)]
}

function sharedErrors({ components }: ApiDocument): string {
  const shared = Object.entries(components['x-problems']).filter(([, { ofPlatform }]) => ofPlatform)
  const rows = shared.map(([name, problem]) => {
    const [first = '', ...rest] = errorRow(name, problem)
    return [`<span id="error-${name}">${first}</span>`, ...rest]
  })
  return `<section aria-labelledby="all-errors"><h2 id="all-errors">Errors of every operation</h2>
<p>Each is a problem record (RFC 9457), ${code('application/problem+json')}: ${code('type')}, ${code('title')}, ${code('status')}, ${code('detail')} and ${code('requestId')}.</p>
${table('Errors of every operation', ['Code', 'Status', 'Title', 'Detail'], rows)}</section>`
}

function events({ webhooks }: ApiDocument): string {
  const parts = Object.entries(webhooks).map(([type, { post }]) => {
    const payload = post.requestBody.content['application/json'].schema.properties?.payload
    const fields = payload === undefined ? '' : fieldsTable(`Payload of ${type}`, payload)
    return `<section aria-labelledby="event-${type}"><h3 id="event-${type}">${code(type)}</h3>${fields}</section>`
  })
  return `<section aria-labelledby="event-types"><h2 id="event-types">Events</h2>
<p>What is delivered to webhooks: ${code('eventId')}, ${code('type')} and ${code('payload')}, whose fields these are.</p>${parts.join('\n')}</section>`
}

/** A table of all fields of a schema, including nested ones; a sentence if it has no fields. */
function fieldsTable(label: string, schema: Schema): string {
  const rows = rowsOf('', schema)
  if (rows.length === 0) return `<p>${typeOf(schema)}. ${notesOf(schema)}</p>`
  const head = ['Field', 'Type', 'Required', 'Notes']
  const kind = schema.type === 'array' ? '<p>A list of:</p>' : schema.anyOf === undefined ? '' : '<p>One of these:</p>'
  return kind + table(label, head, rows)
}

/** The type of a value, in words. */
function typeOf(schema: Schema): string {
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(' or ')
  if (schema.const !== undefined) return code(JSON.stringify(schema.const))
  if (schema.type === 'array') return schema.items === undefined ? 'list' : `list of ${typeOf(schema.items)}`
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['any JSON'])
  return types.join(' or ') + (schema.format === undefined ? '' : ` (${schema.format})`)
}

/** Notes of a schema: its description, its limits and its default. */
function notesOf(schema: Schema): string {
  const { description, enum: values, default: usual, example } = schema
  return [
    ...(description === undefined ? [] : [prose(description)]),
    ...(values === undefined ? [] : [`One of ${values.map((value) => code(String(value))).join(', ')}.`]),
    ...limitsOf(schema).map((limit) => `${limit}.`),
    ...(usual === undefined ? [] : [`Default ${code(JSON.stringify(usual))}.`]),
    ...(example === undefined
      ? []
      : [`Such as ${code(typeof example === 'string' ? example : JSON.stringify(example))}.`]),
  ].join(' ')
}

/** A pattern is shown only if nothing more readable describes it. */
function limitsOf(schema: Schema): string[] {
  const { pattern, format, example, items } = schema
  return [
    between(schema.minLength, schema.maxLength, 'characters'),
    between(schema.minItems, schema.maxItems, 'items'),
    between(schema.minimum, schema.maximum, ''),
    pattern !== undefined && format === undefined && example === undefined ? `Matches ${code(pattern)}` : '',
    ...(items === undefined ? [] : limitsOf(items).map((limit) => `Each: ${limit}`)),
    items?.enum === undefined ? '' : `Each one of ${items.enum.map((value) => code(String(value))).join(', ')}`,
  ].filter((limit) => limit !== '')
}

function between(least: number | undefined, most: number | undefined, unit: string): string {
  const [from, to] = [least === 0 && unit !== '' ? undefined : least, most]
  if (from !== undefined && to !== undefined)
    return from === to ? `${to} ${unit}`.trim() : `${from} to ${to} ${unit}`.trim()
  if (to !== undefined) return `At most ${to} ${unit}`.trim()
  return from === undefined ? '' : `At least ${from} ${unit}`.trim()
}

/** Rows for the fields of an object, of a list's items, and of each variant of a value. */
function rowsOf(path: string, schema: Schema): string[][] {
  if (schema.anyOf !== undefined) return merged(schema.anyOf.flatMap((one) => rowsOf(path, one)))
  if (schema.items !== undefined) return rowsOf(path === '' ? '' : `${path}[]`, schema.items)
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const inner = path === '' ? name : `${path}.${name}`
    const isRequired = schema.required.includes(name) ? 'yes' : 'no'
    return [[code(inner), typeOf(field), isRequired, notesOf(field)], ...rowsOf(inner, field)]
  })
}

/** Merges equal fields of variants; a field with different notes has one row for each. */
function merged(rows: readonly string[][]): string[][] {
  return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()]
}

/** A request to paste into a shell: a recorded body or, without one, the required fields with valid values. */
function exampleRequest(operation: Described, baseUrl: string): string {
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
