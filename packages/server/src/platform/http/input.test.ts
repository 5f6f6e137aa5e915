import { expect, test } from 'vitest'
import { z } from 'zod'
import { processorMs } from '../../../test/processor-time.ts'
import type { Deps } from '../ctx.ts'
import { failPlatform, Problem } from '../errors.ts'
import { operationFor } from '../operation.ts'
import { readInput } from './input.ts'

/** What a caller sends costs it what reading it takes. */

const spec = {
  id: 'toys.create',
  needs: { role: 'viewer', scope: 'read' },
  method: 'POST',
  path: '/toys',
  summary: 'Make toys.',
  input: z.strictObject({ name: z.string(), data: z.record(z.string(), z.unknown()).optional() }),
  run: () => undefined,
} as const
const operation = operationFor<Deps>()
const toys = operation(spec)

/** Reads a body and returns the tokens that it cost beyond its request. */
function tokensOf(body: string, of = toys, tokensMax = Number.POSITIVE_INFINITY) {
  let tokens = 0
  const charge = (cost: number): void => {
    if (tokens + cost > tokensMax) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: 1 })
    tokens += cost
  }
  const headers = { 'content-type': 'application/json' }
  const request = { method: 'POST', url: '/toys', params: {}, query: {}, headers, body: Buffer.from(body), charge }
  try {
    readInput(of, request)
    return { tokens, refused: undefined }
  } catch (error) {
    return { tokens, refused: error instanceof Problem ? error : undefined }
  }
}

const members = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, place) => [`k${place}`, 1]))
const many = JSON.stringify({ name: 'x', data: members(90_000) })

test('a body of many members costs a token for each thousand values and names, and for each 64 KiB', () => {
  expect(tokensOf(many)).toEqual({ tokens: 194, refused: undefined })
  const unknown = tokensOf(JSON.stringify({ name: 'x', ...members(90_000) }))
  expect([unknown.tokens, unknown.refused?.code]).toEqual([194, 'validation-error'])
})

test('a body of at most 4 KiB costs nothing beyond its request, and a megabyte of text sixteen requests', () => {
  expect(tokensOf(JSON.stringify({ name: 'x', data: members(300) })).tokens).toBe(0)
  expect(tokensOf(JSON.stringify({ name: 'x'.repeat(1_000_000) })).tokens).toBe(15)
})

test('a body a little above 4 KiB costs one request, and what a body costs is one charge', () => {
  expect(tokensOf(JSON.stringify({ name: 'x'.repeat(4_200) })).tokens).toBe(0)
  const charges: number[] = []
  const headers = { 'content-type': 'application/json' }
  const request = { method: 'POST', url: '/toys', params: {}, query: {}, headers, body: Buffer.from(many) }
  readInput(toys, { ...request, charge: (cost) => charges.push(cost) })
  expect(charges).toHaveLength(1)
})

test('a body whose caller lacks the tokens is not parsed', () => {
  const { tokens, refused } = tokensOf(`${many.slice(0, -1)},`, toys, 100)
  expect([tokens, refused?.code]).toEqual([0, 'rate-limit-exceeded'])
})

test('an operation whose values cost more to check takes more tokens for them', () => {
  const dear = operation({ ...spec, nodesPerToken: 100 })
  expect(tokensOf(many, dear).tokens).toBe(1_814)
})

test('of ninety thousand faults a hundred are listed', () => {
  const { refused } = tokensOf(JSON.stringify({ name: 'x', ...members(90_000) }))
  expect(refused?.members.errors).toHaveLength(100)
})

test.each([
  ['a value', '{"name":"a\\u0000b"}', '/name'],
  ['half a surrogate pair', '{"name":"\\uD83d"}', '/name'],
  ['a name', '{"name":"x","data":{"a":{"\\u0000":1}}}', '/data/a/\ufffd'],
])('text that PostgreSQL cannot store is refused in %s, with its place', (_, body, path) => {
  const errors = [{ path, message: 'must be well-formed text without NUL characters' }]
  expect(tokensOf(body).refused?.members.errors).toEqual(errors)
})

test.each(['{"name":"\\ud83d\\ude00"}', '{"name":"\\\\u0000"}', '{"name":"😀"}'])(
  '%s is text that is stored',
  (body) => {
    expect(tokensOf(body).refused).toBeUndefined()
  },
)

test('faults of a hundred thousand values are not compared with the texts that cannot be stored', async () => {
  const named = operation({
    ...spec,
    id: 'toys.name',
    input: z.strictObject({ names: z.record(z.string(), z.string()) }),
  })
  const texts = Object.fromEntries(Array.from({ length: 100 }, (_, place) => [`t${place}`, '\u0000']))
  const bodyOf = (names: object): string => JSON.stringify({ names })
  const [plain, compared] = [members(80_000), { ...members(80_000), ...texts }]
  const msOf = (names: object) =>
    processorMs(() => expect(tokensOf(bodyOf(names), named).refused?.code).toBe('validation-error'))
  await msOf(plain)
  const plainMs = await msOf(plain)
  expect(await msOf(compared)).toBeLessThan(plainMs * 2)
})
