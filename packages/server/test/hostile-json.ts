import fc from 'fast-check'
import { memberOf } from './declared.ts'

const hostileTexts = [
  'https://a.example/\u0000',
  'https://a.example/\ud800',
  'http://[::1]:1/?\u0000#\udfff',
  'https://a:b@c.example',
  '',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'a\udc00b',
  '\\u0000',
  '__proto__',
  'x'.repeat(5_000),
  "'; drop table payments; --",
  '%00',
  '../..',
  '\u202e',
  '９',
  '1e400',
  '-1',
  'null',
]
const hostileValues: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  2 ** 53,
  1.5,
  1e308,
  [],
  {},
  [[]],
  [null],
  { length: 1 },
  ...hostileTexts,
]

/**
 * Bodies for an operation: valid ones with one or two bad members, so that many pass validation; some generated from the
 * schema alone, with `knownTexts` as strings; some with missing or unknown members, and some of arbitrary form.
 */
export function hostileBodies(
  schema: unknown,
  good: () => object,
  knownTexts: readonly string[],
): fc.Arbitrary<unknown> {
  const spoilt = fc
    .tuple(fc.array(spoiling, { minLength: 1, maxLength: 2 }), near(schema, knownTexts))
    .map(([spoilings, made]) => spoil(good(), made, spoilings))
  return fc.oneof(
    { weight: 14, arbitrary: spoilt },
    { weight: 4, arbitrary: near(schema, knownTexts) },
    { weight: 1, arbitrary: fc.jsonValue() },
    { weight: 1, arbitrary: fc.constantFrom(...hostileValues) },
  )
}

interface Spoiling {
  readonly place: number
  readonly with: string
  readonly how: 'append' | 'insert' | 'replace'
}

const spoiling: fc.Arbitrary<Spoiling> = fc.record({
  place: fc.nat(),
  with: fc.constantFrom('\u0000', '\ud800', '\udfff', '\u202e', '%00', ' ', '٣', '/'),
  how: fc.constantFrom('append', 'insert', 'replace'),
})

function spoil(good: object, made: unknown, spoilings: readonly Spoiling[]): object {
  const body = { ...good }
  const names = Object.keys(good)
  for (const { place, with: text, how } of spoilings) {
    const name = names[place % names.length] ?? ''
    const value = how === 'replace' ? memberOf(made, name) : spoiltValue(memberOf(body, name), text, how === 'append')
    Reflect.set(body, name, value)
  }
  return body
}

function spoiltValue(value: unknown, text: string, atEnd: boolean): unknown {
  if (typeof value === 'string')
    return atEnd ? value + text : value.slice(0, value.length / 2) + text + value.slice(value.length / 2)
  if (Array.isArray(value)) return atEnd ? [...value, text] : [text, ...value.slice(1)]
  if (typeof value === 'object' && value !== null) return atEnd ? { ...value, inside: [text] } : { ...value, [text]: 1 }
  return text
}

function near(schema: unknown, knownTexts: readonly string[]): fc.Arbitrary<unknown> {
  const inner = (one: unknown): fc.Arbitrary<unknown> => near(one, knownTexts)
  const alternatives = ['anyOf', 'oneOf', 'allOf'].map((name) => memberOf(schema, name)).find(Array.isArray)
  if (alternatives !== undefined) return fc.oneof(...alternatives.map(inner))
  const constant = memberOf(schema, 'const')
  const choices = memberOf(schema, 'enum')
  const right =
    constant !== undefined
      ? fc.constant(constant)
      : Array.isArray(choices)
        ? fc.constantFrom(...choices)
        : ofType(schema, inner, knownTexts)
  return fc.oneof({ weight: 5, arbitrary: right }, { weight: 1, arbitrary: fc.constantFrom(...hostileValues) })
}

function ofType(
  schema: unknown,
  inner: (schema: unknown) => fc.Arbitrary<unknown>,
  knownTexts: readonly string[],
): fc.Arbitrary<unknown> {
  const type = memberOf(schema, 'type')
  if (Array.isArray(type))
    return fc.oneof(...type.map((one) => ofType({ ...Object(schema), type: one }, inner, knownTexts)))
  switch (type) {
    case 'object':
      return objectOf(schema, inner)
    case 'array':
      return fc.array(inner(memberOf(schema, 'items')), { maxLength: 4 })
    case 'boolean':
      return fc.boolean()
    case 'integer':
    case 'number':
      return fc.oneof(fc.integer({ min: -1, max: 120 }), fc.double())
    case 'string':
      return textOf(schema, knownTexts)
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

function objectOf(schema: unknown, inner: (schema: unknown) => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const properties = Object.entries(Object(memberOf(schema, 'properties')))
  const required = memberOf(schema, 'required')
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name)
  const members = properties.map(([name, property]) =>
    fc
      .option(inner(property), { freq: isRequired(name) ? 20 : 1, nil: undefined })
      .map((value): [string, unknown][] => (value === undefined ? [] : [[name, value]])),
  )
  const extra = memberOf(schema, 'additionalProperties')
  const others =
    typeof extra === 'object' && extra !== null
      ? fc.dictionary(
          fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom(...hostileTexts)),
          fc.oneof(
            inner(extra),
            fc.constantFrom(...hostileValues),
            fc.constantFrom(...hostileTexts).map((text) => ({ [text]: [text] })),
          ),
          { maxKeys: 4 },
        )
      : fc.oneof(
          { weight: 20, arbitrary: fc.constant({}) },
          {
            weight: 1,
            arbitrary: fc.dictionary(fc.string({ maxLength: 8 }), fc.constantFrom(...hostileValues), { maxKeys: 1 }),
          },
        )
  return fc.tuple(others, ...members).map(([rest, ...entries]) => ({ ...rest, ...Object.fromEntries(entries.flat()) }))
}

function textOf(schema: unknown, knownTexts: readonly string[]): fc.Arbitrary<unknown> {
  const pattern = memberOf(schema, 'pattern')
  const fitting = typeof pattern === 'string' ? matching(pattern) : undefined
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc.constantFrom(
        ...knownTexts.filter((text) => typeof pattern !== 'string' || new RegExp(pattern, 'u').test(text)),
        'a',
      ),
    },
    { weight: 3, arbitrary: fitting ?? fc.string({ maxLength: 40 }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 300 }) },
  )
}

/** Texts that match the pattern, where fast-check can generate them (no look-around). */
function matching(pattern: string): fc.Arbitrary<string> | undefined {
  try {
    return fc.stringMatching(new RegExp(pattern))
  } catch {
    return undefined
  }
}
