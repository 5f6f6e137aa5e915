import { expect, test } from 'vitest'
import { z } from 'zod'
import { plainFaults } from '../fault-words.ts'
import { AnyJsonObject } from '../wire.ts'
import { validationProblem } from './problem.ts'

const walletId = z.object({
  walletId: z.union([
    z.string().startsWith('mwt_', 'must begin with mwt_'),
    z.string().startsWith('cad_', 'must begin with cad_'),
  ]),
})

test.each([
  [{ walletId: 'byw_1' }, 'must begin with mwt_, or must begin with cad_'],
  [{}, 'is missing'],
  [{ walletId: 7 }, 'must be text, not a number'],
])('the fault of %j, which fits no alternative of a union, is %s', (body, message) => {
  const issues = walletId.safeParse(body, plainFaults).error?.issues ?? []
  expect(validationProblem(issues).members).toEqual({ errors: [{ path: '/walletId', message }] })
})

test.each([
  [z.string(), 7, 'must be text, not a number'],
  [z.string(), null, 'must be text, not null'],
  [z.boolean(), 'yes', 'must be true or false, not text'],
  [z.array(z.string()), 'USDC', 'must be a list, not text'],
  [z.strictObject({}), [], 'must be an object, not a list'],
  [z.record(z.string(), z.string()), 'a', 'must be an object, not text'],
  [AnyJsonObject, 'a', 'must be an object, not text'],
  [z.int(), 1.5, 'must be an integer'],
  [z.coerce.number(), 'ten', 'must be a number'],
  [z.int().min(1).max(500), 0, 'must be at least 1'],
  [z.int().min(1).max(500), 501, 'must be at most 500'],
  [z.number().positive(), 0, 'must be more than 0'],
  [z.string().min(1), '', 'must not be empty'],
  [z.string().max(3), 'long', 'must have at most 3 characters'],
  [z.array(z.string()).min(1), [], 'must have at least 1 item'],
  [z.enum(['x402', 'mpp']), 'X402', 'must be one of x402, mpp'],
  [z.literal('USD'), 'EUR', 'must be USD'],
  [z.record(z.string().max(2), z.string()), { long: 'a' }, 'has a name that must have at most 2 characters'],
  [z.string().regex(/^a/, 'must begin with a'), 'b', 'must begin with a'],
])('the fault of a value is in the words of the interface: %#', (schema, value, message) => {
  expect(schema.safeParse(value, plainFaults).error?.issues.map((issue) => issue.message)).toEqual([message])
})

test('the fault of a value of a closed list of forms names the forms', () => {
  const form = z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })])
  const [issue] = form.safeParse({ kind: 'c' }, plainFaults).error?.issues ?? []
  expect(issue?.message).toBe('must be one of a, b')
})
