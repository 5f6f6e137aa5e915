import { expect, test } from 'vitest'
import { returnUrl, returnUrlLengthMax } from '../src/sign-in/return-url.ts'

test('an issuer redirects to the page, and a page that is too long is opened without its filters', () => {
  const origin = 'https://purser.example.com'
  const filtered = (length: number) => `/dashboard/test/payments?q=${'%20'.repeat(length)}`
  expect(returnUrl(origin, filtered(10))).toBe(origin + filtered(10))
  expect(returnUrl(origin, filtered(200))).toBe(`${origin}/dashboard/test/payments`)
  expect(returnUrl(origin, `/dashboard/${'a'.repeat(returnUrlLengthMax)}`)).toBe(`${origin}/dashboard`)
  const longest = `/dashboard/${'a'.repeat(returnUrlLengthMax - origin.length - '/dashboard/'.length)}`
  expect(returnUrl(origin, longest)).toBe(origin + longest)
})
