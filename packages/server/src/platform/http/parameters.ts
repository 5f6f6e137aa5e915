import type { z } from 'zod'
import type { Operation } from '../operation.ts'
import type { ComponentSchemas } from './component-schemas.ts'

type Json = Readonly<Record<string, unknown>>

/** The parameters of operations, with each that several operations have written once. */
export interface Parameters {
  of(operation: Operation): readonly Json[]
  readonly components: Json
}

/** Collects the parameters of all operations. Two that are the same in name, place, schema and description are one component. */
export function parametersOf(operations: readonly Operation[], schemas: ComponentSchemas): Parameters {
  const all = new Map(operations.map((operation) => [operation, writtenOut(operation, schemas)]))
  const each = [...all].flatMap(([operation, own]) => own.map((parameter) => ({ operation, parameter })))
  const uses = Map.groupBy(each, ({ parameter }) => JSON.stringify(parameter))
  const components: Record<string, Parameter> = {}
  const names = new Map<string, string>()
  for (const [text, [first, ...more]] of uses) {
    if (first === undefined || more.length === 0) continue
    const name = freeName(first, components)
    names.set(text, name)
    components[name] = first.parameter
  }
  const placed = (parameter: Parameter): Json => {
    const name = names.get(JSON.stringify(parameter))
    return name === undefined ? { ...parameter } : parameterRef(name)
  }
  return { of: (operation) => (all.get(operation) ?? []).map(placed), components }
}

export function parameterRef(name: string): Json {
  return { $ref: `#/components/parameters/${name}` }
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  /** Of an object: a parameter for each member, `name[member]`. */
  readonly style?: 'deepObject'
  readonly explode?: true
  readonly schema: Json
}

const idempotencyKey: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Send the same key again to repeat a request safely; its response is stored for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

function writtenOut(operation: Operation, schemas: ComponentSchemas): Parameter[] {
  return [
    ...membersOf(operation.params, 'path', schemas),
    ...membersOf(operation.query, 'query', schemas),
    ...(operation.method === 'POST' ? [idempotencyKey] : []),
  ]
}

function membersOf(schema: z.ZodType | undefined, place: 'path' | 'query', schemas: ComponentSchemas): Parameter[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schemas.of(schema, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description: own, ...property }]) => {
    const description = own ?? schemas.descriptionOf(property)
    return {
      name,
      in: place,
      required: place === 'path' || required.includes(name),
      ...(typeof description === 'string' ? { description } : {}),
      ...(property.type === 'object' ? ({ style: 'deepObject', explode: true } as const) : {}),
      schema: property,
    }
  })
}

interface Use {
  readonly operation: Operation
  readonly parameter: Parameter
}

/**
 * The name of the parameter or, in a path, of its schema. If another parameter has it, the tag of the first operation is before it: `status` of
 * payments, `walletsStatus`. Throws if both are taken.
 */
function freeName({ operation: { id }, parameter: { name, schema } }: Use, taken: Json): string {
  const reference = typeof schema.$ref === 'string' ? schema.$ref : name
  const own = reference.slice(reference.lastIndexOf('/') + 1)
  if (!Object.hasOwn(taken, own)) return own
  const withTag = `${id.slice(0, id.indexOf('.'))}${own.slice(0, 1).toUpperCase()}${own.slice(1)}`
  if (Object.hasOwn(taken, withTag)) throw new Error(`two parameters are named ${withTag}`)
  return withTag
}
