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
  const uses = Map.groupBy([...all.values()].flat(), (parameter) => JSON.stringify(parameter))
  const components: Record<string, Parameter> = {}
  const names = new Map<string, string>()
  for (const [text, [parameter, ...more]] of uses) {
    if (parameter === undefined || more.length === 0) continue
    const name = freeName(parameter, components)
    names.set(text, name)
    components[name] = parameter
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

/** The name of the parameter or, in a path, of its schema, with a number if another parameter has it. */
function freeName({ name, schema }: Parameter, taken: Json): string {
  const reference = typeof schema.$ref === 'string' ? schema.$ref : name
  const own = reference.slice(reference.lastIndexOf('/') + 1)
  return [own, ...[2, 3, 4, 5, 6].map((count) => `${own}${count}`)].find((one) => !Object.hasOwn(taken, one)) ?? own
}
