import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aMailbox, type Mailbox } from '../mailbox.ts'
import { aBrowser, ageSessions, browserOf, open, ownerOf, press, sessionCookie } from '../people.ts'
import { timesCovered } from '../steady-witness.ts'
import { aWorld, codeOf, type Org, type World } from '../world.ts'

let world: World
let org: Org
let email: string
let mailbox: Mailbox

beforeAll(async () => {
  mailbox = await aMailbox()
  const smtp = { url: mailbox.url, from: 'purser@example.com' }
  world = await aWorld({ config: { signIn: { isSignUpOpen: true, issuers: [], smtp } } })
  org = await world.organisation()
  email = await ownerOf(world, org.id)
})
afterAll(async () => {
  await world?.stop()
  await mailbox?.stop()
})

function post(path: string, body: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json', origin: 'http://dashboard.test' }
  return fetch(world.base + path, { method: 'POST', headers, body: JSON.stringify(body), redirect: 'manual' })
}

/** The link of the newest mail to an address, at the address of the test's server. */
async function linkTo(address: string): Promise<string> {
  const text = await mailbox.newest(address)
  const url = new URL(/https?:\/\/\S+/.exec(text)?.[0] ?? '')
  return `${world.base}${url.pathname}${url.search}`
}

test('a link by e-mail signs in, and an address without an account is answered alike', async () => {
  const response = await post('/auth/sign-in/link', { email })
  expect([response.status, await response.json()]).toEqual([200, { status: true }])
  const opened = await press(world, await linkTo(email))
  const browser = browserOf(world, { cookie: sessionCookie(world, opened) ?? '', organisationId: org.id })
  expect((await browser.call('GET', '/account')).body.email).toBe(email)
})

/** Requests a link in a browser with these cookies. Returns the cookie that it gets. */
async function requestIn(cookie: string, address: string): Promise<string> {
  const response = await fetch(`${world.base}/auth/sign-in/link`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: 'http://dashboard.test', cookie },
    body: JSON.stringify({ email: address }),
  })
  const [set = ''] = response.headers.getSetCookie()
  expect([response.status, set]).toEqual([
    200,
    expect.stringMatching(/^purser\.link_browser=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/),
  ])
  return String(set.split(';')[0])
}

test('a link signs in at once in the browser that requested it, also after a second request, and asks first in every other one', async () => {
  const address = await ownerOf(world, (await world.organisation()).id)
  const own = await requestIn('', address)
  const link = await linkTo(address)
  expect(await requestIn(own, 'nobody@example.com'), 'the browser keeps its secret').toBe(own)
  const other = await requestIn('', address)
  const weak = await requestIn('purser.link_browser=a', address)
  for (const cookie of [
    '',
    other,
    weak,
    'purser.link_browser=',
    `${own.slice(0, -1)}${own.endsWith('A') ? 'B' : 'A'}`,
  ]) {
    const shown = await open(link, { 'sec-fetch-site': 'none', cookie })
    expect([shown.status, sessionCookie(world, shown)]).toEqual([200, undefined])
    expect(await shown.text()).toContain(`<strong>${address}</strong>`)
  }
  const opened = await open(link, { 'sec-fetch-site': 'cross-site', cookie: own })
  expect([opened.status, opened.headers.get('location')]).toEqual([302, 'http://dashboard.test'])
  expect(sessionCookie(world, opened)).toBeDefined()
})

test('with open sign-up a new address gets an account by its link, without any organisation', async () => {
  await post('/auth/sign-in/link', { email: 'New@example.com' })
  const opened = await press(world, await linkTo('New@example.com'))
  const browser = browserOf(world, { cookie: sessionCookie(world, opened) ?? '' })
  expect((await browser.call('GET', '/account')).body).toMatchObject({ email: 'new@example.com', organisations: [] })
})

test('a password is chosen through a link by e-mail and signs in; a wrong one does not', async () => {
  const before = await aBrowser(world, { email, organisationId: org.id })
  await post('/auth/request-password-reset', { email, redirectTo: 'http://dashboard.test/new-password' })
  const led = await fetch(await linkTo(email), { redirect: 'manual' })
  const place = new URL(led.headers.get('location') ?? '')
  expect(place.origin).toBe('http://dashboard.test')
  const token = place.searchParams.get('token')
  const newPassword = 'correct horse battery'
  expect((await post('/auth/reset-password', { token, newPassword: 'short' })).status).toBe(400)
  const covered = await timesCovered(world.database.db)
  expect((await post('/auth/reset-password', { token, newPassword })).status).toBe(200)
  expect(await timesCovered(world.database.db)).toBeGreaterThan(covered)
  expect((await before.call('GET', '/account')).status).toBe(401)
  const signedIn = await post('/auth/sign-in/email', { email, password: newPassword })
  expect(signedIn.status).toBe(200)
  expect(await signedIn.text()).not.toMatch(/"token"/)
  const cookie = sessionCookie(world, signedIn) ?? ''
  expect((await browserOf(world, { cookie, organisationId: org.id }).call('GET', '/account')).status).toBe(200)
  const wrong = await post('/auth/sign-in/email', { email, password: 'another one entirely' })
  expect([wrong.status, sessionCookie(world, wrong)]).toEqual([401, undefined])
})

test('a password is changed, a passkey deleted and an issuer linked or unlinked only after a fresh sign-in', async () => {
  const browser = await aBrowser(world, { email, organisationId: org.id })
  const acts: readonly (readonly [string, object])[] = [
    ['/auth/change-password', { currentPassword: 'wrong horse battery', newPassword: 'another horse battery' }],
    ['/auth/passkey/delete-passkey', { id: 'unknown' }],
    ['/auth/link-social', { provider: 'unknown' }],
    ['/auth/unlink-account', { providerId: 'unknown' }],
  ]
  const codes = async () =>
    Promise.all(acts.map(async ([path, body]) => codeOf(await browser.call('POST', path, body))))
  expect(await codes()).not.toContain('fresh-authentication-required')
  await ageSessions(world, 10)
  expect(await codes()).toEqual(acts.map(() => 'fresh-authentication-required'))
})

test('while the mail server does not respond, an address with an account is answered like any other', async () => {
  await aBrowser(world, { email, organisationId: org.id })
  const silent = createServer()
  const sockets: Socket[] = []
  silent.on('connection', (socket) => sockets.push(socket))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = z.object({ port: z.number() }).parse(silent.address())
  const smtp = { url: `smtp://127.0.0.1:${port}`, from: 'purser@example.com' }
  const { base } = await world.another({ role: 'api', signIn: { isSignUpOpen: true, issuers: [], smtp } })
  try {
    for (const path of ['/auth/sign-in/link', '/auth/request-password-reset'])
      for (const address of [email, 'nobody-here@example.com']) {
        const headers = { 'content-type': 'application/json', origin: 'http://dashboard.test' }
        const signal = AbortSignal.timeout(5_000)
        const sent = { method: 'POST', headers, body: JSON.stringify({ email: address }), signal }
        expect([path, address, (await fetch(base + path, sent)).status]).toEqual([path, address, 200])
      }
    await expect.poll(() => sockets.length).toBeGreaterThan(1)
  } finally {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => silent.close(resolve))
  }
})

test('a reset that leads elsewhere than to the dashboard is refused', async () => {
  const response = await post('/auth/request-password-reset', { email, redirectTo: 'http://evil.example/' })
  expect(response.status).toBe(403)
})

test('guesses of a password are limited for the e-mail address', async () => {
  const statuses: number[] = []
  for (let guess = 0; guess < 12; guess++)
    statuses.push(
      (await post('/auth/sign-in/email', { email: 'guessed@example.com', password: `guess number ${guess}` })).status,
    )
  expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401))
  expect(statuses.slice(10)).toEqual([429, 429])
})

test('the sign-in page can read which ways to sign in there are', async () => {
  const methods = await (await fetch(`${world.base}/auth/methods`)).json()
  expect(methods).toEqual({ password: true, passkey: true, emailLink: true, oidc: [], signUp: 'open' })
})
