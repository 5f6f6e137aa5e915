type Json = Readonly<Record<string, unknown>>

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
