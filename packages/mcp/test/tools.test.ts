import { readFileSync } from 'node:fs'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import { expect, test } from 'vitest'
import { operations } from '../../server/src/operations.ts'
import { tools } from '../src/generated/tools.ts'
import { toolsOf } from '../src/print-tool.ts'
import { faultsOf, requestOf } from '../src/request.ts'
import { annotationsOf } from '../src/tool.ts'

const document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'))
const each = tools.map((tool) => [tool.name, tool] as const)

test('the tools are the operations that are marked for agents, all of them and no other', () => {
  const marked = operations.filter(({ agent }) => agent !== undefined).map(({ id }) => id)
  expect(tools.map(({ operationId }) => operationId).sort()).toEqual(marked.sort())
  expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length)
})

test('no tool answers a secret, hears one, or changes who may do what', () => {
  const offered = operations.filter(({ agent }) => agent !== undefined)
  expect(offered.filter(({ secretResponse, secretInput }) => secretResponse === true || secretInput === true)).toEqual(
    [],
  )
  expect(offered.filter(({ id }) => /apiKeys|members|policy|token|secret|listener|^organisations/i.test(id))).toEqual([
    expect.objectContaining({ id: 'chains.tokens' }),
  ])
})

test('the annotations of a tool agree with the method of its operation', () => {
  for (const { agent, method, id } of operations.filter((operation) => operation.agent !== undefined)) {
    if (method === 'GET') expect([id, agent]).toEqual([id, expect.stringMatching(/^(reads|searches)$/)])
    if (method === 'DELETE') expect([id, agent]).toEqual([id, 'ends'])
  }
  const paying = tools.filter(({ effect }) => effect === 'moves-money')
  expect(paying.map(({ name }) => name).sort()).toEqual(['pay_and_fetch', 'transfers_create', 'withdrawals_create'])
  for (const tool of paying)
    expect(annotationsOf(tool)).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: false })
})

test.each(each)('%s has a name that every client takes, and self-contained schemas that compile', (_, tool) => {
  expect(tool.name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
  const schemas = new AjvJsonSchemaValidator()
  const { inputSchema } = tool
  expect(JSON.stringify(inputSchema)).not.toContain('$ref')
  expect(() => schemas.getValidator({ ...inputSchema })).not.toThrow()
  expect(tool.path.match(/\{\w+\}/g) ?? []).toHaveLength(
    Object.values(tool.places).filter((at) => at === 'path').length,
  )
  expect(Object.keys(tool.places)).toEqual(Object.keys(tool.inputSchema.properties))
})

test('every tool that changes something takes an Idempotency-Key', () => {
  const changing = tools.filter(({ effect }) => !['reads', 'searches'].includes(effect))
  expect(changing.length).toBeGreaterThan(4)
  expect(changing.filter(({ places }) => places.idempotencyKey !== 'key')).toEqual([])
})

test('a filter by metadata is a parameter of its own for its member, and a value that is no text is a fault', () => {
  const tool = tools.find(({ name }) => name === 'transfers_list')
  if (tool === undefined) throw new Error('there is no such tool')
  const given = { metadata: { 'order id': '42' } }
  expect(faultsOf(tool, given)).toEqual([])
  expect(requestOf(tool, given, undefined).query).toEqual({ limit: 20, 'metadata.order id': '42' })
  for (const metadata of [{ order: { id: '42' } }, ['42'], null])
    expect(faultsOf(tool, { metadata })).toEqual([expect.objectContaining({ path: '/metadata' })])
})

test('every argument of every tool is described', () => {
  const bare = tools.flatMap(({ name, inputSchema: { properties } }) =>
    Object.entries(properties).flatMap(([argument, schema]) =>
      'description' in schema && schema.description !== '' ? [] : [`${name}.${argument}`],
    ),
  )
  expect(bare).toEqual([])
})

test('an operation with two parameters of one name, a body without names or a reference to nothing becomes no tool', () => {
  const operation = (changes: object) => ({
    paths: {
      '/x/{id}': {
        post: { operationId: 'x.do', summary: 'Do.', 'x-purser-tool': 'adds' as const, responses: {}, ...changes },
      },
    },
  })
  const body = (schema: object) => ({ requestBody: { content: { 'application/json': { schema: { ...schema } } } } })
  const parameters = [{ name: 'id', in: 'path' as const, required: true, schema: { type: 'string' } }]
  expect(() => toolsOf(operation({ parameters, ...body({ properties: { id: {} } }) }))).toThrow(/x\.do: two/)
  expect(() => toolsOf(operation(body({ properties: { idempotencyKey: {} } })))).toThrow(/x\.do: two/)
  expect(() => toolsOf(operation(body({ anyOf: [] })))).toThrow(/x\.do: its body/)
  expect(() => toolsOf(operation(body({ properties: { a: { $ref: '#/a' } } })))).toThrow('#/a is not in this document')
  expect(() => toolsOf(operation(body({ properties: { bare: {} } })))).toThrow('bare (body) has no description')
  expect(toolsOf(operation(body({ properties: { a: { description: 'A.' } } })))).toHaveLength(1)
})

test('a description names tools and not their operations', () => {
  const ids = tools.map(({ operationId }) => operationId).filter((id) => id.includes('.'))
  const naming = tools.filter(({ description }) => ids.some((id) => description.includes(`\`${id}\``)))
  expect(naming).toEqual([])
  expect(tools.find(({ name }) => name === 'wallets_master_get')?.description).toContain('wallets_master_balances')
})

test('what is committed is what openapi.json gives', () => {
  expect(toolsOf(document)).toEqual(tools)
})
