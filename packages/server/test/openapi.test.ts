import { withoutReferences } from '@purser/protocol'
import { expect, test } from 'vitest'
import { z } from 'zod'
import document from '../../../openapi.json' with { type: 'json' }
import { componentSchemas } from '../src/platform/http/component-schemas.ts'
import { named } from '../src/platform/named.ts'

const Toy = z.strictObject({ name: z.string() })
const Part = z.strictObject({ name: z.string().default('none') })
const Machine = z.strictObject({ part: Part, toy: Toy.meta({ description: 'The toy.' }) })
named({ Toy, Part, Machine })

test('a named schema is written once, and what differs between request and response has a name for each', () => {
  const Owned = z.strictObject({ machine: Machine })
  const made = componentSchemas({ input: [Machine], output: [Owned, z.array(Toy)] })
  expect(made.of(Owned, 'output')).toMatchObject({ properties: { machine: { $ref: '#/components/schemas/Machine' } } })
  expect(made.of(Machine, 'input')).toEqual({ $ref: '#/components/schemas/MachineInput' })
  expect(made.components).toMatchObject({
    MachineInput: { properties: { part: { $ref: '#/components/schemas/PartInput' } }, additionalProperties: false },
    Machine: { properties: { toy: { $ref: '#/components/schemas/Toy', description: 'The toy.' } } },
    PartInput: { properties: { name: { default: 'none' } } },
    Part: { required: ['name'] },
  })
})

test('two schemas with one name make the document fail', () => {
  const [one, other] = [z.object({ a: z.string() }), z.object({ b: z.string() })]
  named({ Ambiguous: one })
  named({ Ambiguous: other })
  expect(() => componentSchemas({ input: [], output: [one, other] })).toThrow('Ambiguous')
})

test('every request and response body is a named schema, a list of one, or a choice of these', () => {
  expect(Object.keys(document.components.schemas).length).toBeGreaterThan(120)
  const anonymous = bodiesOf(document.paths).filter(({ schema }) => !isNamed(schema))
  expect(anonymous.map(({ place }) => place)).toEqual([])
})

test('every reference names something, and every named schema is used', () => {
  expect(JSON.stringify(withoutReferences(document, document))).not.toContain('"$ref"')
  const used = new Set([...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name))
  expect(Object.keys(document.components.schemas).filter((name) => !used.has(name))).toEqual([])
})

test('the document is less than 500 KB', () => {
  expect(JSON.stringify(document).length).toBeLessThan(500_000)
})

function isNamed(schema: unknown): boolean {
  const { $ref, items, anyOf, type, format } = Object(schema)
  if (Array.isArray(anyOf)) return anyOf.every(isNamed)
  return typeof $ref === 'string' || (type === 'array' && isNamed(items)) || format === 'binary'
}

interface Body {
  readonly place: string
  readonly schema: unknown
}

/** The schemas of JSON bodies in this part of the document. */
function bodiesOf(value: unknown, place = ''): Body[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    name === 'application/json' ? [{ place, schema: inner.schema }] : bodiesOf(inner, `${place}/${name}`),
  )
}
