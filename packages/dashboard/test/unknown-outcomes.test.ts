import { ConnectionError, PurserError } from '@purser/sdk'
import { expect, test } from 'vitest'
import { errorWords } from '../src/ui/error-block.tsx'
import { type ActionKey, keyAfter } from '../src/ui/idempotency.ts'

const first: ActionKey = { key: 'key-1', isLost: false }

/** The error of a call that the service refused, after an attempt of the same call whose response was lost, if `isAfterLost`. */
function refusal(status: number, code: string, isAfterLost = false) {
  const problem = { type: `https://pay.example.com/problems/${code}`, title: 'No', status, detail: 'No.' }
  return new PurserError('No.', { status, code, problem, isAfterLost })
}

const lost = new ConnectionError('No response.', { code: 'timeout' })

/** The key of the press after these errors. */
function keyAfterAll(errors: readonly unknown[]): string {
  return errors.reduce<ActionKey>((before, error) => keyAfter(before, error, () => 'key-2'), first).key
}

test.each([
  ['no response', [lost]],
  ['a 503', [refusal(503, 'chain-unavailable')]],
  ['an attempt that the service still works on', [refusal(409, 'idempotency-in-progress')]],
  ['a lost attempt and too many requests', [refusal(429, 'rate-limit-exceeded', true)]],
  ['a lost attempt and an ended session', [refusal(401, 'unauthorized', true)]],
  ['a press without a response, and one with too many requests', [lost, refusal(429, 'rate-limit-exceeded')]],
  ['a press without a response, and one that needs a sign-in', [lost, refusal(403, 'fresh-authentication-required')]],
  ['a body that was changed', [lost, refusal(422, 'idempotency-key-reused')]],
  ['a fault of the page', [new Error('the wallet is gone')]],
])('after %s the next press has the same key', (_, errors) => {
  expect(keyAfterAll(errors)).toBe('key-1')
})

test.each([
  ['a refusal', [refusal(422, 'insufficient-balance')]],
  ['too many requests', [refusal(429, 'rate-limit-exceeded')]],
  ['an ended session', [refusal(401, 'unauthorized')]],
  ['a press without a response, and a refusal', [lost, refusal(422, 'insufficient-balance')]],
])('after %s the next press has a new key', (_, errors) => {
  expect(keyAfterAll(errors)).toBe('key-2')
})

test.each([
  ['fresh-authentication-required', 403],
  ['organisation-suspended', 403],
  ['approval-own-request', 403],
  ['rate-limit-exceeded', 429],
  ['unauthorized', 401],
] as const)('after a lost attempt, %s promises nothing', (code, status) => {
  const { advice } = errorWords(refusal(status, code, true))
  expect(advice).toMatch(/^The outcome is unknown/)
  expect(errorWords(refusal(status, code)).advice).not.toMatch(/unknown/)
})

test('a refusal of a first attempt says that nothing was changed', () => {
  expect(errorWords(refusal(403, 'organisation-suspended')).advice).toBe('Nothing was changed.')
  expect(errorWords(refusal(403, 'fresh-authentication-required')).advice).toMatch(/^Nothing was changed/)
})
