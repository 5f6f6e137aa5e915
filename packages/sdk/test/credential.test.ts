import { expect, test } from 'vitest'
import { findCredential } from '../src/middleware/credential.ts'

const authorization = (value: string) => findCredential((name) => (name === 'authorization' ? value : undefined))

test.each([
  ['Payment abc', { protocol: 'mpp', value: 'Payment abc' }],
  ['Bearer key, payment abc', { protocol: 'mpp', value: 'payment abc' }],
  ['Payment stub_payment_accepted', { protocol: 'mpp', value: 'stub_payment_accepted' }],
  ['Digest a="x, Payment abc", Payment def', { protocol: 'mpp', value: 'Payment def' }],
  ['Digest a="x\\", Payment abc", Payment def', { protocol: 'mpp', value: 'Payment def' }],
  ['Digest a="x, Payment abc', 'none'],
  ['Payment abc, Payment abc', 'ambiguous'],
  ['Payment', 'none'],
])('the payment in the header %s is found', (value, found) => {
  expect(authorization(value)).toEqual(found)
})

test('a header with a quotation that does not end is read once, however many quotation marks it has', () => {
  const began = performance.now()
  expect(authorization(`${'\\"'.repeat(150_000)}\\`)).toBe('none')
  // Reading it once from each of its quotation marks takes half a minute.
  expect(performance.now() - began).toBeLessThan(5_000)
})
