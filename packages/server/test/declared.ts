import { withoutReferences } from '@purser/protocol'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import openApi from '../../../openapi.json' with { type: 'json' }
import type { Operation } from '../src/platform/operation.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
ajv.addSchema({ ...openApi, $id: 'openapi' })
const compiled = new Map<string, ValidateFunction>()

/** A raw answer, before validation. */
export interface WireAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/**
 * Returns why the committed `openapi.json` does not allow this answer to the operation, or undefined when it does.
 * Checks status, media type and body, and the request id that every answer has.
 */
export function whyNotDeclared(
  operation: { readonly method: string; readonly path: string },
  answer: WireAnswer,
): string | undefined {
  const { status, headers, text } = answer
  if (!/^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(headers.get('x-request-id') ?? ''))
    return `${status} without X-Request-Id`
  const method = operation.method.toLowerCase()
  const described = memberOf(openApi, 'paths', operation.path, method)
  const key = [String(status), `${String(status).charAt(0)}XX`].find((name) => memberOf(described, 'responses', name))
  const place = referredFrom(['paths', operation.path, method, 'responses', key ?? ''])
  const response = memberOf(openApi, ...place)
  if (response === undefined) return `${status} is not declared: ${text.slice(0, 300)}`
  const ofMethod = status < 300 ? memberOf(openApi['x-every-operation'], method) : undefined
  const undeclared = [...headers.keys()].find((name) => !isHeaderDeclared([response, ofMethod], name))
  if (undeclared !== undefined) return `${status} with the header ${undeclared}, which is not declared`
  const code = /\/problems\/([\w-]+)"/.exec(text)?.[1]
  if (
    memberOf(response, 'content', problemType) !== undefined &&
    !codesOf(described, method, status).includes(code ?? '')
  )
    return `${status} is not declared to be ${code}: ${text.slice(0, 300)}`
  const content = memberOf(response, 'content')
  if (content === undefined) return text === '' ? undefined : `${status} must have no body`
  const type = (headers.get('content-type') ?? '').split(';')[0] ?? ''
  if (memberOf(content, type) === undefined && memberOf(content, '*/*') === undefined)
    return `${status} is not declared as ${type}`
  if (!type.endsWith('json')) return undefined
  const fault = whyNotOfSchema([...place, 'content', type, 'schema'], JSON.parse(text))
  return fault === undefined ? undefined : `${status} ${fault}: ${text.slice(0, 300)}`
}

/** Why a value does not fit the schema at this place of the committed `openapi.json`, or undefined when it does. */
export function whyNotOfSchema(place: readonly string[], value: unknown): string | undefined {
  const validate = validatorOf(place)
  return validate(value) ? undefined : ajv.errorsText(validate.errors)
}

/** As `whyNotDeclared`, for the operation at a requested address. An address without an operation declares nothing. */
export function whyNotDeclaredAt(
  requested: { readonly method: string; readonly path: string },
  response: WireAnswer,
): string | undefined {
  const [path = ''] = requested.path.split('?')
  const operation = templates.find(({ method, pattern }) => method === requested.method && pattern.test(path))
  return operation === undefined ? undefined : whyNotDeclared(operation, response)
}

/** Paths without parameters first, as in the router. */
const templates = Object.entries(openApi.paths)
  .sort(([left], [right]) => left.split('{').length - right.split('{').length)
  .flatMap(([path, methods]) => {
    const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    return Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path, pattern }))
  })

const problemType = 'application/problem+json'

/** The codes of the problems that the operation declares with this status. */
function codesOf(operation: unknown, method: string, status: number): string[] {
  const { '4XX': refused, '5XX': failed } = openApi.components.responses
  const lists = [operation, memberOf(openApi['x-every-operation'], method), refused, failed].map((one) =>
    memberOf(one, 'x-problems'),
  )
  return lists.flat().flatMap((name) => {
    if (typeof name !== 'string') return []
    const declared = memberOf(openApi.components['x-problems'], name, 'status')
    return declared === status ? [name.split('.')[0] ?? name] : []
  })
}

/** Header fields of HTTP and of Fetch itself, which no operation declares. */
const ofHttp =
  /^(connection|keep-alive|date|transfer-encoding|content-(type|length)|cache-control|access-control-[a-z-]+|x-(content-type-options|accel-buffering))$/

function isHeaderDeclared(places: readonly unknown[], name: string): boolean {
  const declared = [openApi['x-every-response'], ...places].flatMap((place) =>
    Object.keys(Object(memberOf(place, 'headers'))),
  )
  return ofHttp.test(name) || declared.some((header) => header.toLowerCase() === name)
}

/** Resolves a reference at this place to the place that it names. */
function referredFrom(place: readonly string[]): readonly string[] {
  const reference = memberOf(openApi, ...place, '$ref')
  return typeof reference === 'string' ? reference.replace(/^#\//, '').split('/') : place
}

function validatorOf(place: readonly string[]): ValidateFunction {
  const pointer = place.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
  const known = compiled.get(pointer)
  if (known !== undefined) return known
  const validate = ajv.compile({ $ref: `openapi#/${pointer}` })
  compiled.set(pointer, validate)
  return validate
}

/** The value at a place in the document, or undefined. */
export function memberOf(value: unknown, ...place: readonly string[]): unknown {
  return place.reduce(
    (at: unknown, name) => (typeof at === 'object' && at !== null ? Reflect.get(at, name) : undefined),
    value,
  )
}

/** The schema of the operation's request body in `openapi.json`, without references. */
export function bodySchemaOf(operation: Pick<Operation, 'method' | 'path'>): unknown {
  const place = [operation.path, operation.method.toLowerCase(), 'requestBody', 'content', 'application/json', 'schema']
  return withoutReferences(memberOf(openApi.paths, ...place), openApi)
}
