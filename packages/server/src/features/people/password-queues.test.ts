import { expect, test } from 'vitest'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Db } from '../../platform/db/db.ts'
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
  const options = { secret: 'a secret', issuers: [], sendMail: undefined, isSignUpOpen: false }
  // No page of these reads the database or a session.
  const pages = signInPages(toyDeps({} as Db) as Deps, { handler, people: {} as never, options })
  const page = pages.find(({ path, method }) => path === '/auth/*' && method === 'POST')
  const post = async (path: string, email: string, address: string): Promise<number> => {
    const body = Buffer.from(JSON.stringify({ email, password: 'some wrong password' }))
    const headers = { 'content-type': 'application/json' }
    const answer = await page?.answer({}, { method: 'POST', url: `/auth${path}`, headers, body, address })
    return answer?.status ?? 0
  }
  return { running, post, emails: () => running.map(({ email }) => email) }
}

test('passwords from many addresses of one network are checked one at a time, so that they neither fill the threads nor stand before others', async () => {
  const { running, post, emails } = aSignIn()
  const flood = Array.from({ length: 40 }, (_, at) =>
    post('/sign-in/email', `flood-${at}@example.com`, `2001:db8:7:${at.toString(16)}::1`),
  )
  await expect.poll(emails).toEqual(['flood-0@example.com'])
  const first = post('/sign-in/email', 'first@example.com', '198.51.100.1')
  const second = post('/sign-in/email', 'second@example.com', '203.0.113.1')
  await expect.poll(emails).toEqual(['flood-0@example.com', 'first@example.com'])
  const reset = post('/reset-password', 'reset@example.com', '192.0.2.1')
  await expect.poll(emails).toContain('reset@example.com')
  // The second stranger is before all others of the flood.
  running[0]?.end()
  await expect.poll(() => emails().at(3)).toBe('second@example.com')
  for (let at = 1; at < 43; at++) {
    await expect.poll(() => running.length).toBeGreaterThan(at)
    running[at]?.end()
  }
  expect(new Set(await Promise.all([...flood, first, second, reset]))).toEqual(new Set([200]))
})
