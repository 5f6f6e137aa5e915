import { z } from 'zod'

type Json = Readonly<Record<string, unknown>>
export type Direction = 'input' | 'output'

/** The JSON Schemas of an API document. */
export interface ComponentSchemas {
  /** The schema as the document contains it: a reference if it has a name (`platform/named.ts`). */
  of(schema: z.ZodType, direction: Direction): Json
  /** Every named schema. One that differs between requests and responses is named `…Input` in requests. */
  readonly components: Json
  /** The description of the named schema that this one refers to, if it is a reference. */
  descriptionOf(schema: Json): unknown
}

/** Makes the JSON Schemas of all requests and responses at once, so that each named schema is written once. Throws if two have one name. */
export function componentSchemas(used: Readonly<Record<Direction, readonly z.ZodType[]>>): ComponentSchemas {
  const made = { input: madeOf(used.input, 'input'), output: madeOf(used.output, 'output') }
  const differing = namesThatDiffer(made.input.named, made.output.named)
  const nameOf = (name: string, direction: Direction): string =>
    direction === 'input' && differing.has(name) ? `${name}Input` : name
  const placed = (value: unknown, direction: Direction): Json =>
    Object(withReferences(value, (name) => `${componentPath}${nameOf(name, direction)}`))
  const components = (['output', 'input'] as const).flatMap((direction) =>
    Object.entries(made[direction].named).map(
      ([name, schema]) => [nameOf(name, direction), placed(schema, direction)] as const,
    ),
  )
  const all = Object.fromEntries(components.sort(([left], [right]) => (left < right ? -1 : 1)))
  return {
    of: (schema, direction) => {
      const found = made[direction].each.get(schema)
      if (found === undefined) throw new Error('this schema was not among those used')
      return placed(found, direction)
    },
    components: withExtensions(all),
    descriptionOf: ({ $ref }) =>
      typeof $ref === 'string' ? all[$ref.slice(componentPath.length)]?.description : undefined,
  }
}

const componentPath = '#/components/schemas/'

interface Made {
  readonly each: ReadonlyMap<z.ZodType, unknown>
  readonly named: Json
}

/** One conversion of an object that holds them all: only so does the library share names between them. */
function madeOf(schemas: readonly z.ZodType[], io: Direction): Made {
  const distinct = [...new Set(schemas)]
  const all = z.object(Object.fromEntries(distinct.map((schema, at) => [`at${at}`, schema])))
  const { properties, $defs = {} } = z.toJSONSchema(all, { target: 'draft-2020-12', io, unrepresentable: 'any' })
  const each = distinct.map((schema, at) => [schema, tidy(properties?.[`at${at}`], io)] as const)
  return { each: new Map(each), named: Object(tidy($defs, io)) }
}

/** Names whose schema, or one that it refers to, is not the same in both. */
function namesThatDiffer(input: Json, output: Json): ReadonlySet<string> {
  const both = Object.keys(input).filter((name) => Object.hasOwn(output, name))
  const differing = new Set(both.filter((name) => JSON.stringify(input[name]) !== JSON.stringify(output[name])))
  const refersToOne = (name: string): boolean => {
    const references: string[] = []
    withReferences(input[name], (inner) => {
      references.push(inner)
      return inner
    })
    return references.some((inner) => differing.has(inner))
  }
  for (let count = -1; count < differing.size; ) {
    count = differing.size
    for (const name of both.filter(refersToOne)) differing.add(name)
  }
  return differing
}

function withReferences(value: unknown, target: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((inner) => withReferences(inner, target))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) =>
      name === '$ref' && typeof inner === 'string'
        ? [name, target(inner.slice('#/$defs/'.length))]
        : [name, withReferences(inner, target)],
    ),
  )
}

/**
 * Removes details of the library's schemas that a reader should not rely on: bounds that are only those of a JavaScript integer or of
 * any text, patterns that only repeat a `format`, and, in responses, that no member may be added, which would make every new field a
 * breaking change. A value or null has one schema, if the value is of a simple type.
 */
function tidy(value: unknown, io: Direction): unknown {
  if (Array.isArray(value)) return value.map((inner) => tidy(inner, io))
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name, inner]) => {
    if (name === 'minimum' || name === 'maximum') return Math.abs(Number(inner)) !== Number.MAX_SAFE_INTEGER
    if (name === 'pattern') return !('format' in value)
    if (name === 'minLength') return inner !== 0
    if (name === 'propertyNames') return Object.keys(Object(inner)).some((key) => key !== 'type')
    return !(io === 'output' && name === 'additionalProperties' && inner === false)
  })
  return withNull(Object.fromEntries(kept.map(([name, inner]) => [name, tidy(inner, io)])))
}

/** `{ anyOf: [{ type: 'string' }, { type: 'null' }] }` as `{ type: ['string', 'null'] }`. */
function withNull(schema: Json): Json {
  const { anyOf, ...others } = schema
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || anyOf[1]?.type !== 'null') return schema
  const [{ type, ...constraints }] = anyOf
  const isSimple =
    ['string', 'integer', 'number', 'boolean'].includes(type) && !('enum' in constraints || 'const' in constraints)
  return isSimple ? { ...constraints, ...others, type: [type, 'null'] } : schema
}

/**
 * The schemas of responses, each that has all members of another one as that one and its further members (`allOf`), so that a resource is
 * written once and a reader sees what extends it. Requests are not changed: there, no further member is allowed.
 */
export function withExtensions(components: Readonly<Record<string, Json>>): Json {
  const objects = Object.entries(components).filter(([, schema]) => isOpenObject(schema))
  return Object.fromEntries(
    Object.entries(components).map(([name, schema]) => {
      const bases = objects.filter(
        ([other, base]) => other !== name && isOpenObject(schema) && isExtended(base, schema),
      )
      const [base] = bases.toSorted(([, left], [, right]) => membersOf(right).length - membersOf(left).length)
      return [name, base === undefined ? schema : extensionOf(base, schema)]
    }),
  )
}

/** Below this a reference saves nothing. */
const membersMin = 3

const membersOf = ({ properties }: Json): [string, unknown][] => Object.entries(Object(properties))
const requiredOf = ({ required }: Json): readonly unknown[] => (Array.isArray(required) ? required : [])

function isOpenObject(schema: Json): boolean {
  return schema.type === 'object' && membersOf(schema).length >= membersMin && schema.additionalProperties === undefined
}

/** Whether the schema has the members of the base and more, and requires each that the base requires. */
function isExtended(base: Json, schema: Json): boolean {
  const own = Object(schema.properties)
  return (
    membersOf(base).length < membersOf(schema).length &&
    membersOf(base).every(([name, member]) => JSON.stringify(own[name]) === JSON.stringify(member)) &&
    requiredOf(base).every((name) => requiredOf(schema).includes(name))
  )
}

function extensionOf([name, base]: readonly [string, Json], { properties, required, type, ...others }: Json): Json {
  const inherited = Object(base.properties)
  const more = membersOf({ properties }).filter(([member]) => !Object.hasOwn(inherited, member))
  const needed = requiredOf({ required }).filter((member) => !requiredOf(base).includes(member))
  const further = { type, properties: Object.fromEntries(more), ...(needed.length === 0 ? {} : { required: needed }) }
  return { ...others, allOf: [{ $ref: `#/components/schemas/${name}` }, further] }
}
