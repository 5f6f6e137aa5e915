import { expect, test } from 'vitest'
import {
  decodeHeader,
  encodeHeader,
  exposeHeaders,
  isTargetedCaching,
  privateCacheControl,
} from '../src/middleware/headers.ts'

test.each([
  [undefined, 'private'],
  ['', 'private'],
  ['private', 'private'],
  ['no-store', 'no-store, private'],
  ['public, max-age=60', 'max-age=60, private'],
  ['Public, s-maxage=60, max-age=5', 'max-age=5, private'],
])('Cache-Control %j becomes %j: no shared cache keeps what one payer bought', (existing, expected) => {
  expect(privateCacheControl(existing)).toBe(expected)
})

test('payment headers are exposed once, beside what is exposed already', () => {
  const mpp = 'WWW-Authenticate, Payment-Receipt, Payment-Replayed, X-Service-Session-Id, Retry-After'
  const all = `PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, ${mpp}`
  expect(exposeHeaders(null)).toBe(all)
  expect(exposeHeaders('ETag, payment-required')).toBe(
    `ETag, payment-required, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, ${mpp}`,
  )
  expect(exposeHeaders(all)).toBe(all)
})

test('headers carry any text as standard base64 of UTF-8, and what is not an object is undefined', () => {
  const value = { text: 'zwölf Stück 🪙', deep: { a: [1] } }
  expect(Buffer.from(encodeHeader(value), 'base64').toString('utf8')).toBe(JSON.stringify(value))
  expect(decodeHeader(encodeHeader(value))).toEqual(value)
  for (const bad of ['', '%%%', 'stub_payment_accepted', btoa('[1]'), btoa('null'), btoa('{')]) {
    expect(decodeHeader(bad)).toBeUndefined()
  }
})

test.each([
  ['CDN-Cache-Control', true],
  ['vercel-cdn-cache-control', true],
  ['Cloudflare-CDN-Cache-Control', true],
  ['Surrogate-Control', true],
  ['Edge-Control', true],
  ['X-Accel-Expires', true],
  ['Cache-Control', false],
  ['Surrogate-Key', false],
])('%s permits caches of one kind to keep a response: %s', (name, expected) => {
  expect(isTargetedCaching(name)).toBe(expected)
})
