import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { instantOf } from '../../platform/clock.ts'
import { knownBrowserCookieOf, knownBrowserValue } from './known-browser.ts'
import { createSignInLimit } from './sign-in-limits.ts'

const baseUrl = 'https://pay.example.com'
const secret = 'a secret'

function aLimit() {
  let ms = 0
  const browser = { cookieName: knownBrowserCookieOf(baseUrl), secret }
  const limit = createSignInLimit({ now: () => instantOf(ms) }, browser)
  const isAdmitted = (path: string, address: string, more: { email?: string; cookies?: string } = {}): boolean => {
    try {
      limit({ path, address, cookies: more.cookies, accountId: undefined, sent: { email: more.email } })
      return true
    } catch {
      return false
    }
  }
  return {
    isAdmitted,
    advance: (by: number) => {
      ms += by
    },
  }
}

/** The cookie of a browser in which somebody signed in with this address before. */
function known(email: string): string {
  const value = knownBrowserValue(email, 'browser')
  const signature = createHmac('sha256', secret).update(value).digest('base64')
  return `${knownBrowserCookieOf(baseUrl)}=${encodeURIComponent(`${value}.${signature}`)}`
}

/** How many of 2,000 requests from as many blocks of one /48 are admitted. */
function admittedOf(isAdmitted: ReturnType<typeof aLimit>['isAdmitted'], path: string): number {
  const blocks = Array.from({ length: 2_000 }, (_, at) => at)
  return blocks.filter((at) => isAdmitted(path, `2001:db8:7:${at.toString(16)}::1`, { email: `a-${at}@example.com` }))
    .length
}

test.each(['/sign-in/email', '/sign-in/link', '/passkey/generate-authenticate-options', '/sign-in/social'])(
  'the blocks of one /48 have one limit of %s together, and others have theirs',
  (path) => {
    const { isAdmitted, advance } = aLimit()
    expect(admittedOf(isAdmitted, path)).toBe(300)
    for (const other of ['2001:db8:8::1', '192.0.2.1', '198.51.100.1'])
      expect(isAdmitted(path, other, { email: 'b@example.com' })).toBe(true)
    advance(1_000)
    expect(admittedOf(isAdmitted, path)).toBe(5)
  },
)

test('a known browser signs in from a /48 that has used up its limit', () => {
  const { isAdmitted } = aLimit()
  expect(admittedOf(isAdmitted, '/sign-in/email')).toBe(300)
  const [address, email] = ['2001:db8:7:ffff::1', 'owner@example.com']
  expect(isAdmitted('/sign-in/email', address, { email })).toBe(false)
  expect(isAdmitted('/sign-in/email', address, { email, cookies: known(email) })).toBe(true)
})
