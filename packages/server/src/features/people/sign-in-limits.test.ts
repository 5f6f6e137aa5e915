import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { instantOf } from '../../platform/clock.ts'
import { knownBrowserCookieOf, knownBrowserValue } from './known-browser.ts'
import { createSignInLimit } from './sign-in-limits.ts'
import { signInPathOf } from './sign-in-paths.ts'

const baseUrl = 'https://pay.example.com'
const secret = 'a secret'

function aLimit() {
  let ms = 0
  const browser = { cookieName: knownBrowserCookieOf(baseUrl), secret }
  const limit = createSignInLimit({ now: () => instantOf(ms) }, browser)
  const isAdmitted = (name: string, address: string, more: { email?: string; cookies?: string } = {}): boolean => {
    const path = signInPathOf('POST', name) ?? signInPathOf('GET', name)
    if (path === undefined) throw new Error(`no path ${name}`)
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
function known(email: string, browser = 'browser'): string {
  const value = knownBrowserValue(email, browser)
  const signature = createHmac('sha256', secret).update(value).digest('base64')
  return `${knownBrowserCookieOf(baseUrl)}=${encodeURIComponent(`${value}.${signature}`)}`
}

/** How many requests from as many addresses are admitted, each with an e-mail address of its own. */
function admittedOf(
  isAdmitted: ReturnType<typeof aLimit>['isAdmitted'],
  path: string,
  addresses: readonly string[],
): number {
  return addresses.filter((address, at) => isAdmitted(path, address, { email: `a-${at}@example.com` })).length
}

const hex = (block: number): string => block.toString(16)
/** 1,000 addresses in the blocks of one /56, and 10,000 in those of one /48. */
const ofCustomer = Array.from({ length: 1_000 }, (_, at) => `2001:db8:7:${hex(0x1200 + (at % 256))}::1`)
const ofSite = Array.from({ length: 10_000 }, (_, at) => `2001:db8:7:${hex(at * 6)}::1`)
/** The addresses of one /24 of IPv4, four times. */
const ofIpv4Site = Array.from({ length: 1_000 }, (_, at) => `198.51.100.${at % 256}`)

const paths = ['/sign-in/email', '/sign-in/link', '/passkey/generate-authenticate-options', '/sign-in/social']

test.each(paths)('the blocks of one /56 have one limit of %s together, and others have theirs', (path) => {
  const { isAdmitted, advance } = aLimit()
  expect(admittedOf(isAdmitted, path, ofCustomer)).toBe(300)
  for (const other of ['2001:db8:7:1300::1', '2001:db8:7:11ff::1', '2001:db8:8:1200::1', '192.0.2.1'])
    expect(isAdmitted(path, other, { email: 'b@example.com' })).toBe(true)
  advance(1_000)
  expect(admittedOf(isAdmitted, path, ofCustomer)).toBe(5)
})

test.each(paths)('the blocks of one /48 have ten times as much of %s, and others have theirs', (path) => {
  const { isAdmitted, advance } = aLimit()
  expect(admittedOf(isAdmitted, path, ofSite)).toBe(3_000)
  expect(isAdmitted(path, '2001:db8:8::1', { email: 'b@example.com' })).toBe(true)
  advance(1_000)
  expect(admittedOf(isAdmitted, path, ofSite)).toBe(50)
})

test.each(paths)('the addresses of one /24 of IPv4 have each their own limit of %s', (path) => {
  const { isAdmitted } = aLimit()
  expect(admittedOf(isAdmitted, path, ofIpv4Site)).toBe(1_000)
})

test('a known browser signs in from blocks that have used up their limit', () => {
  const { isAdmitted } = aLimit()
  expect(admittedOf(isAdmitted, '/sign-in/email', ofCustomer)).toBe(300)
  const [address, email] = ['2001:db8:7:12ff::1', 'owner@example.com']
  expect(isAdmitted('/sign-in/email', address, { email })).toBe(false)
  expect(isAdmitted('/sign-in/email', address, { email, cookies: known(email) })).toBe(true)
})

test.each(['/passkey/generate-authenticate-options', '/passkey/verify-authentication', '/sign-in/social'])(
  'a known browser has ten attempts of %s from blocks that have used up their limits',
  (path) => {
    const { isAdmitted } = aLimit()
    for (const addresses of [ofCustomer, ofSite]) admittedOf(isAdmitted, path, addresses)
    // Each from another block of the /56, so that none uses up the block's own limit.
    const admitted = (block: string, cookies?: string) =>
      Array.from({ length: 12 }).filter(() =>
        isAdmitted(path, `2001:db8:7:${block}::1`, cookies === undefined ? {} : { cookies }),
      ).length
    const forged = known('owner@example.com').replace(/.{8}$/, 'AAAAAAAA')
    expect([admitted('1201'), admitted('1202', forged)]).toEqual([0, 0])
    expect(admitted('1203', known('owner@example.com'))).toBe(10)
    expect(admitted('1204', known('other@example.com', 'another'))).toBe(10)
  },
)

test('all browsers of one person have ten attempts together from blocks that have used up their limits: each sign-in makes a browser known', () => {
  const { isAdmitted } = aLimit()
  const path = '/passkey/generate-authenticate-options'
  for (const addresses of [ofCustomer, ofSite]) admittedOf(isAdmitted, path, addresses)
  const browsers = Array.from({ length: 50 }, (_, at) => known('owner@example.com', `browser-${at}`))
  const admitted = browsers.filter((cookies, at) => isAdmitted(path, `2001:db8:7:12${hex(0x40 + at)}::1`, { cookies }))
  expect(admitted).toHaveLength(10)
})
