import { expect, test } from 'vitest'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Db } from '../../platform/db/db.ts'
import type { People } from '../../platform/http/identify.ts'
import type { PublicPage } from '../../platform/http/public-page.ts'
import { signInPages } from './pages.ts'
import type { Deps } from './ports.ts'

/** The sign-in pages. The handler, which is better-auth elsewhere, returns 200. */
function somePages(): readonly PublicPage[] {
  const deps = toyDeps({} as Db) as Deps
  const people = { origin: deps.baseUrl, cookieOf: () => undefined, find: async () => undefined } as People
  const options = { secret: 'a secret', issuers: [], sendMail: undefined, isSignUpOpen: false }
  const handler = async () => new Response('{}', { headers: { 'content-type': 'application/json' } })
  return signInPages(deps, { handler, people, options })
}

/** Sends a request to the sign-in pages. */
async function send(path: string, sent?: object): Promise<number> {
  const method = sent === undefined ? 'GET' : 'POST'
  const page = somePages().find((one) => one.path === '/auth/*' && (one.method ?? 'GET') === method)
  const body = Buffer.from(sent === undefined ? '' : JSON.stringify(sent))
  const headers = { 'content-type': 'application/json' }
  return (await page?.respond({}, { method, url: `/auth${path}`, headers, body, address: '192.0.2.1' }))?.status ?? 0
}

const wide = String.fromCodePoint(...Array.from({ length: 5_400 }, (_, at) => 0x4e00 + at))

test.each<readonly [path: string, sent: object | undefined]>([
  ...['callbackURL', 'redirectTo', 'errorCallbackURL', 'newUserCallbackURL'].flatMap((name) => [
    ['/sign-out', { [name]: `https://${wide}/` }] as const,
    ['/sign-out', { [name]: `https://${wide.slice(0, 400)}/` }] as const,
  ]),
  ['/update-user', { name: 'x'.repeat(201) }],
  ['/update-user', { image: 'x'.repeat(513) }],
  ['/update-user', { image: { text: 'x' } }],
  ['/passkey/update-passkey', { id: 'pk', name: 'x'.repeat(201) }],
  ['/passkey/verify-registration', { response: { id: 'x'.repeat(1_365) } }],
  [`/reset-password/x?callbackURL=${encodeURIComponent(`https://${wide.slice(0, 500)}/`)}`, undefined],
  [`/passkey/generate-register-options?context=${'x'.repeat(513)}`, undefined],
])('%s with a long value is refused before it is parsed', async (path, sent) => {
  const { user: start } = process.cpuUsage()
  expect(await send(path, sent)).toBe(422)
  expect(process.cpuUsage().user - start).toBeLessThan(50_000)
})

test('a body of thousands of members costs no more than a short one', async () => {
  const members = Object.fromEntries(Array.from({ length: 3_600 }, (_, at) => [at.toString(36), []]))
  const { user: start } = process.cpuUsage()
  for (let time = 0; time < 10; time += 1) expect(await send('/sign-out', members)).toBe(422)
  expect(process.cpuUsage().user - start).toBeLessThan(200_000)
})

test.each<readonly [path: string, sent: object | undefined]>([
  ['/sign-out', {}],
  ['/sign-in/email', { email: 'a@example.com', password: 'x'.repeat(128), rememberMe: true }],
  ['/update-user', { name: 'Ann' }],
  ['/request-password-reset', { email: 'a@example.com', redirectTo: '/new-password' }],
  ['/request-password-reset', { email: 'a@example.com', redirectTo: 'http://dashboard.test/new-password' }],
  [
    '/passkey/verify-registration',
    { name: 'Phone', response: { id: 'x', response: { attestationObject: 'x'.repeat(9_000) } } },
  ],
  [`/callback/corp?code=${'x'.repeat(3_000)}&state=y`, undefined],
])('%s with ordinary values is passed on', async (path, sent) => {
  expect(await send(path, sent)).toBe(200)
})
