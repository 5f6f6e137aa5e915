import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Db } from '../../platform/db/db.ts'
import type { People } from '../../platform/http/identify.ts'
import { knownBrowserCookieOf, knownBrowserValue } from './known-browser.ts'
import { signInPages } from './pages.ts'
import type { Deps } from './ports.ts'

/** The pages of sign-in with a handler that ends when the test lets it. */
function aSignIn() {
  const running: { readonly email: string; readonly end: () => void }[] = []
  const handler = async (request: Request): Promise<Response> => {
    const { email } = (await request.json()) as { readonly email: string }
    const { promise, resolve } = Promise.withResolvers<void>()
    running.push({ email, end: resolve })
    await promise
    return new Response('{}', { headers: { 'content-type': 'application/json' } })
  }
  const deps = toyDeps({} as Db) as Deps
  const options = { secret: 'a secret', issuers: [], sendMail: undefined, isSignUpOpen: false }
  // No page of these reads the database. A cookie `session=acc_1` is a session of that account.
  const people: Pick<People, 'origin' | 'cookieOf'> & { readonly find: (cookie: string) => Promise<object> } = {
    origin: deps.baseUrl,
    cookieOf: (cookies) => /^session=(.+)$/.exec(cookies ?? '')?.[1],
    find: async (accountId) => ({ accountId, authenticatedAt: deps.clock.now() }),
  }
  const pages = signInPages(deps, { handler, people: people as People, options })
  const page = pages.find(({ path, method }) => path === '/auth/*' && method === 'POST')
  const post = async (path: string, email: string, address: string, cookie?: string): Promise<number> => {
    const body = Buffer.from(JSON.stringify({ email, password: 'some wrong password' }))
    const headers = {
      'content-type': 'application/json',
      ...(cookie !== undefined && { cookie, origin: deps.baseUrl }),
    }
    const response = await page?.respond({}, { method: 'POST', url: `/auth${path}`, headers, body, address })
    return response?.status ?? 0
  }
  /** The cookie of a browser in which somebody signed in with this address before. */
  const known = (email: string): string => {
    const value = knownBrowserValue(email, 'browser')
    const signature = createHmac('sha256', options.secret).update(value).digest('base64')
    return `${knownBrowserCookieOf(deps.baseUrl)}=${encodeURIComponent(`${value}.${signature}`)}`
  }
  return { running, post, known, emails: () => running.map(({ email }) => email) }
}

test('passwords from many addresses of one network are checked one at a time, so that they neither fill the threads nor stand before others', async () => {
  const { running, post, known, emails } = aSignIn()
  const flood = Array.from({ length: 40 }, (_, at) =>
    post('/sign-in/email', `flood-${at}@example.com`, `2001:db8:7:${at.toString(16)}::1`),
  )
  await expect.poll(emails).toEqual(['flood-0@example.com'])
  const first = post('/sign-in/email', 'first@example.com', '198.51.100.1')
  const second = post('/sign-in/email', 'second@example.com', '203.0.113.1')
  await expect.poll(emails).toEqual(['flood-0@example.com', 'first@example.com'])
  const returning = post('/sign-in/email', 'known@example.com', '192.0.2.1', known('known@example.com'))
  await expect.poll(emails).toContain('known@example.com')
  // The second stranger is before all others of the flood.
  running[0]?.end()
  await expect.poll(() => emails().at(3)).toBe('second@example.com')
  for (let at = 1; at < 43; at++) {
    await expect.poll(() => running.length).toBeGreaterThan(at)
    running[at]?.end()
  }
  expect(new Set(await Promise.all([...flood, first, second, returning]))).toEqual(new Set([200]))
})

test.each([
  ['resets with invented tokens', '/reset-password'],
  ['changes of passwords without a session', '/change-password'],
])('%s wait among strangers, and a known browser does not wait for them', async (_, path) => {
  const { running, post, known, emails } = aSignIn()
  const flood = Array.from({ length: 20 }, (_, at) =>
    post(path, `flood-${at}@example.com`, `2001:db8:7:${at.toString(16)}::1`),
  )
  const other = post(path, 'other@example.com', '198.51.100.1')
  await expect.poll(emails).toEqual(['flood-0@example.com', 'other@example.com'])
  const returning = post('/sign-in/email', 'known@example.com', '192.0.2.1', known('known@example.com'))
  await expect.poll(emails).toEqual(['flood-0@example.com', 'other@example.com', 'known@example.com'])
  for (let at = 0; at < 22; at++) {
    await expect.poll(() => running.length).toBeGreaterThan(at)
    running[at]?.end()
  }
  expect(new Set(await Promise.all([...flood, other, returning]))).toEqual(new Set([200]))
})

test('signed-in people change their passwords one at a time, and a known browser waits for one of each account', async () => {
  const { running, post, known, emails } = aSignIn()
  const changes = Array.from({ length: 10 }, (_, at) =>
    post('/change-password', `change-${at}`, '198.51.100.1', 'session=acc_1'),
  )
  await expect.poll(emails).toEqual(['change-0'])
  const returning = post('/sign-in/email', 'known@example.com', '192.0.2.1', known('known@example.com'))
  running[0]?.end()
  await expect.poll(emails).toEqual(['change-0', 'known@example.com'])
  for (let at = 1; at < 11; at++) {
    await expect.poll(() => running.length).toBeGreaterThan(at)
    running[at]?.end()
  }
  expect(new Set(await Promise.all([...changes, returning]))).toEqual(new Set([200]))
})
