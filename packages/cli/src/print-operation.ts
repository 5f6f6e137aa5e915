import { withoutReferences } from '@purser/protocol'
import type { ApiOperation, ArgumentType, OperationArgument } from './operation.ts'

interface Schema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly description?: string
  readonly schema: Schema
}

type Contents = Readonly<Record<string, { readonly schema?: Schema }>>

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Contents }
  readonly responses: Readonly<Record<string, { readonly content?: Contents }>>
}

/** The part of openapi.json that is used. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Returns the operations of the interface whose requests and responses are JSON. Streams and uploads have no command. */
export function operationsOf(document: ApiDocument): readonly ApiOperation[] {
  const found = Object.entries(document.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation =
        item[method] === undefined ? undefined : (withoutReferences(item[method], document) as Operation)
      return operation === undefined || !isJson(operation) ? [] : [operationOf(path as `/${string}`, method, operation)]
    }),
  )
  return found.toSorted((left, right) => (left.name < right.name ? -1 : 1))
}

function isJson({ requestBody, responses }: Operation): boolean {
  const successes = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  const bodies = [requestBody?.content, ...successes.map(([, { content }]) => content)]
  return bodies.every((content) => content === undefined || Object.hasOwn(content, 'application/json'))
}

function operationOf(path: `/${string}`, method: (typeof methods)[number], operation: Operation): ApiOperation {
  const { operationId, summary, parameters = [], requestBody } = operation
  const own = parameters.flatMap((parameter) =>
    parameter.in === 'header' ? [] : [ofParameter(parameter, parameter.in)],
  )
  const body = requestBody?.content['application/json']?.schema
  return {
    name: operationId.split('.').map(kebab).join(' '),
    summary,
    method: method.toUpperCase() as ApiOperation['method'],
    path,
    isList: method === 'get' && parameters.some(({ name }) => name === 'cursor'),
    takesIdempotencyKey: parameters.some(({ name }) => name === 'Idempotency-Key'),
    arguments: [...own, ...(body === undefined ? [] : ofBody(body))],
  }
}

function ofParameter({ name, required, description, schema }: Parameter, place: 'path' | 'query'): OperationArgument {
  const about = description ?? schema.description
  return { name, in: place, type: typeOf(schema), required: required === true, about: aboutOf(about, schema) }
}

/**
 * The members of a body. For a body with several variants: the members of all variants; required are those that every
 * variant requires.
 */
function ofBody(schema: Schema): OperationArgument[] {
  const shapes = schema.properties === undefined ? (schema.anyOf ?? schema.oneOf ?? []) : [schema]
  const members = new Map(shapes.flatMap(({ properties = {} }) => Object.entries(properties)))
  return [...members].map(([name, member]) => ({
    name,
    in: 'body',
    type: typeOf(member),
    required: shapes.every(({ required = [] }) => required.includes(name)),
    about: aboutOf(member.description, member),
  }))
}

/** `json` for every type other than string, number and boolean. */
function typeOf({ type, enum: values, anyOf, oneOf }: Schema): ArgumentType {
  const inner = anyOf ?? oneOf
  if (inner !== undefined) {
    const types = new Set(inner.map(typeOf))
    return types.size === 1 ? ([...types][0] ?? 'json') : 'json'
  }
  if (type === 'string' || (type === undefined && values?.every((value) => typeof value === 'string'))) return 'text'
  if (type === 'integer' || type === 'number') return 'number'
  return type === 'boolean' ? 'boolean' : 'json'
}

function aboutOf(description: string | undefined, { enum: values }: Schema): string {
  const choice = values === undefined || values.length > 12 ? undefined : `one of ${values.join(', ')}`
  return [description?.replace(/\.$/, ''), choice].filter((text) => text !== undefined).join('; ')
}

function kebab(word: string): string {
  return word.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
