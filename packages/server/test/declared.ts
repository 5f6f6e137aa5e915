import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import openApi from '../../../openapi.json' with { type: 'json' }
import type { Operation } from '../src/platform/operation.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
ajv.addSchema({ ...openApi, $id: 'openapi' })
const compiled = new Map<string, ValidateFunction>()

/** An answer as it came over the wire, before anything in it is believed. */
export interface WireAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/**
 * Why the committed `openapi.json` does not allow this answer to the operation, or undefined when it does: status, media
 * type and body, and the request id that every answer carries.
 */
export function whyNotDeclared(operation: Pick<Operation, 'method' | 'path'>, answer: WireAnswer): string | undefined {
  const { status, headers, text } = answer
  if (!/^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(headers.get('x-request-id') ?? ''))
    return `${status} without X-Request-Id`
  const response = memberOf(openApi.paths, operation.path, operation.method.toLowerCase(), 'responses', String(status))
  if (response === undefined) return `${status} is not declared: ${text.slice(0, 300)}`
  const content = memberOf(response, 'content')
  if (content === undefined) return text === '' ? undefined : `${status} must have no body`
  const type = (headers.get('content-type') ?? '').split(';')[0] ?? ''
  if (memberOf(content, type) === undefined && memberOf(content, '*/*') === undefined)
    return `${status} is not declared as ${type}`
  if (!type.endsWith('json')) return undefined
  const validate = validatorOf([
    'paths',
    operation.path,
    operation.method.toLowerCase(),
    'responses',
    String(status),
    'content',
    type,
    'schema',
  ])
  const body: unknown = JSON.parse(text)
  return validate(body) ? undefined : `${status} ${ajv.errorsText(validate.errors)}: ${text.slice(0, 300)}`
}

function validatorOf(place: readonly string[]): ValidateFunction {
  const pointer = place.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
  const known = compiled.get(pointer)
  if (known !== undefined) return known
  const validate = ajv.compile({ $ref: `openapi#/${pointer}` })
  compiled.set(pointer, validate)
  return validate
}

/** What stands at a place in the document, or undefined. */
export function memberOf(value: unknown, ...place: readonly string[]): unknown {
  return place.reduce(
    (at: unknown, name) => (typeof at === 'object' && at !== null ? Reflect.get(at, name) : undefined),
    value,
  )
}

/** The schema of the operation's request body in `openapi.json`. */
export function bodySchemaOf(operation: Pick<Operation, 'method' | 'path'>): unknown {
  return memberOf(
    openApi.paths,
    operation.path,
    operation.method.toLowerCase(),
    'requestBody',
    'content',
    'application/json',
    'schema',
  )
}
