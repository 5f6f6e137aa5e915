import { withoutReferences } from '@purser/protocol'
import { expect, test } from 'vitest'
import { z } from 'zod'
import document from '../../../openapi.json' with { type: 'json' }
import { operations } from '../src/operations.ts'
import { componentSchemas } from '../src/platform/http/component-schemas.ts'
import { ProblemRecord } from '../src/platform/http/problem.ts'
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

test('an operation names each credential that it takes, and takes no other without a key', () => {
  const named = Object.values(document.paths).flatMap((methods) =>
    Object.values<{ operationId: string; security?: readonly object[] }>(methods).flatMap(
      ({ operationId, security }) =>
        security === undefined ? [] : [[operationId, security.flatMap((one) => Object.keys(one))]],
    ),
  )
  expect(document.security).toEqual([{ apiKey: [] }, { session: [] }])
  expect(Object.fromEntries(named)).toEqual({
    'vaults.get': ['apiKey', 'session', 'vaultToken'],
    'vaults.documents.get': ['apiKey', 'session', 'vaultToken'],
    'vaults.files.get': ['apiKey', 'session', 'vaultToken', 'signedLink'],
    'vaults.events': ['apiKey', 'session', 'vaultToken', 'streamTicket'],
  })
  const guests = operations.filter((operation) => operation.guests !== undefined).map(({ id }) => id)
  expect(guests.sort()).toEqual(named.map(([id]) => id).sort())
})

test('a parameter that several operations have is written once', () => {
  const written = Object.values(document.paths).flatMap((methods) =>
    Object.values<Described>(methods).flatMap(({ parameters = [] }) => parameters.map((one) => JSON.stringify(one))),
  )
  const inPlace = written.filter((one) => !one.includes('#/components/parameters/'))
  expect(inPlace.length).toBeGreaterThan(20)
  expect(new Set(inPlace).size).toBe(inPlace.length)
})

test('every error that an operation or a shared response names is a component, and every one of these is named', () => {
  const lists = [...JSON.stringify(document).matchAll(/"x-problems":\[([^\]]*)\]/g)].map(([, list = '']) => list)
  const named = new Set(lists.flatMap((list) => list.replaceAll('"', '').split(',')))
  expect([...named].sort()).toEqual(Object.keys(document.components['x-problems']).sort())
})

test('every operation may give the responses `4XX` and `5XX`, and those with the statuses of its own errors', () => {
  const problems: Readonly<Record<string, { readonly status: number }>> = document.components['x-problems']
  const described = Object.values(document.paths).flatMap((methods) => Object.values<Described>(methods))
  for (const { operationId, responses, 'x-problems': names = [] } of described) {
    expect(Object.keys(responses), operationId).toEqual(expect.arrayContaining(['4XX', '5XX']))
    const ofOperation = names.filter((name) => !('ofPlatform' in Object(problems[name])))
    const statuses = ofOperation.map((name) => String(problems[name]?.status))
    expect(Object.keys(responses).filter((status) => Number(status) >= 400)).toEqual([...new Set(statuses)].sort())
  }
})

test('no operation names an error that every operation with its method has', () => {
  const shared: Readonly<Record<string, { readonly 'x-problems': readonly string[] }>> = document['x-every-operation']
  expect(shared.post?.['x-problems'].length).toBeGreaterThan(2)
  const repeated = Object.values(document.paths).flatMap((methods) =>
    Object.entries<Described>(methods).flatMap(([method, { operationId, 'x-problems': names = [] }]) =>
      names.filter((name) => shared[method]?.['x-problems'].includes(name)).map((name) => `${operationId}: ${name}`),
    ),
  )
  expect(repeated).toEqual([])
})

test('every delivery has the header fields of all deliveries, the type of its event, and an id and a payload', () => {
  expect(document.components.pathItems.Delivery.parameters).toHaveLength(5)
  for (const [type, delivery] of Object.entries(document.webhooks)) {
    expect(delivery.$ref, type).toBe('#/components/pathItems/Delivery')
    const { schema } = delivery.post.requestBody.content['application/json']
    expect(withoutReferences(schema, document), type).toMatchObject({
      allOf: [
        { required: ['eventId', 'type', 'payload'] },
        { properties: { type: { const: type }, payload: { type: 'object' } } },
      ],
    })
  }
})

interface Described {
  readonly operationId: string
  readonly parameters?: readonly unknown[]
  readonly responses: object
  readonly 'x-problems'?: readonly string[]
}

test('problem records have one example, which is a problem record', () => {
  const { example } = document.components.schemas.Problem
  expect(ProblemRecord.parse(example)).toEqual(example)
  const { status, title } = document.components['x-problems'][example.type.split('/').at(-1) as 'validation-error']
  expect({ status, title }).toEqual({ status: example.status, title: example.title })
})

test('the document is less than 400 KB', () => {
  expect(Buffer.byteLength(JSON.stringify(document))).toBeLessThan(409_600)
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
