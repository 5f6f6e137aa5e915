import { afterAll, beforeAll, expect, test } from 'vitest'
import { aBrowser, aLink, type Browser, open, ownerOf, press, sessionCookie } from '../people.ts'
import { aWorld, codeOf, type Org, type World } from '../world.ts'

let world: World
let org: Org
let browser: Browser

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  browser = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
})
afterAll(() => world?.stop())

const foreign = [
  undefined,
  'null',
  '',
  'https://dashboard.test',
  'http://dashboard.test:81',
  'http://dashboard.test.evil.example',
  'http://evil.example',
  'http://purser.test',
]

test.each(foreign)('a write with a cookie from the origin %s is 403 and changes nothing', async (origin) => {
  const changes = [
    ['PATCH', '/organisations/current', { name: 'Taken over' }],
    ['POST', '/organisations/current/api-keys', { name: 'Stolen', environment: 'test' }],
    ['DELETE', `/organisations/current/api-keys/key_01h455vb4pex5vsknk084sn02q`, undefined],
  ] as const
  for (const [method, path, body] of changes) {
    const response = await browser.call(method, path, body, { origin })
    expect([response.status, codeOf(response)]).toEqual([403, 'origin-not-allowed'])
    expect(response.body.detail).toContain('the header Origin: http://dashboard.test.')
    expect(response.headers.get('access-control-allow-credentials')).toBeNull()
  }
  expect((await browser.call('GET', '/organisations/current')).body.name).toBe('Acme')
})

test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', undefined])(
  'a body of the type %s, as forms of pages can send it, is not taken with a cookie',
  async (type) => {
    const response = await fetch(`${world.base}/organisations/current`, {
      method: 'PATCH',
      headers: {
        cookie: browser.cookie,
        origin: 'http://dashboard.test',
        'x-service-organisation': org.id,
        ...(type === undefined ? {} : { 'content-type': type }),
      },
      body: '{"name":"Taken over"}',
    })
    expect(response.status).toBe(415)
  },
)

test('a form of another page can neither sign its visitor in nor out', async () => {
  for (const [path, type] of [
    ['/auth/sign-out', 'application/json'],
    ['/auth/sign-in/email', 'application/json'],
    ['/auth/sign-in/email', 'text/plain'],
    ['/auth/sign-in/link', 'application/json'],
    ['/auth/sign-in/link', 'text/plain'],
  ]) {
    const response = await fetch(world.base + path, {
      method: 'POST',
      headers: { cookie: browser.cookie, origin: 'http://evil.example', 'content-type': type ?? '' },
      body: '{"email":"a@example.com","password":"long enough to be one"}',
    })
    expect(response.status).toBe(403)
    expect(response.headers.getSetCookie()).toEqual([])
  }
  expect((await browser.call('GET', '/account')).status).toBe(200)
})

test.each([
  [
    'an image of another page',
    { 'sec-fetch-dest': 'image', 'sec-fetch-mode': 'no-cors', 'sec-fetch-site': 'same-site' },
  ],
  ['a frame', { 'sec-fetch-dest': 'iframe', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-site' }],
  ['a script', { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'cross-site' }],
  ['a browser that prefetches it', { 'sec-fetch-dest': 'document', 'sec-purpose': 'prefetch;prerender' }],
])('a link that %s opens signs nobody in, ends no session and is not used up', async (_case, headers) => {
  const email = await ownerOf(world, org.id)
  const url = await aLink(world, email)
  const opened = await open(url, { ...headers, cookie: browser.cookie })
  expect([opened.status, sessionCookie(world, opened)]).toEqual([403, undefined])
  expect((await browser.call('GET', '/account')).status).toBe(200)
  expect((await open(url, { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' })).status).toBe(200)
  expect(sessionCookie(world, await press(world, url))).toBeDefined()
})

test.each([
  ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
  ['a page of another site after a click', { 'sec-fetch-site': 'cross-site', 'sec-fetch-user': '?1' }],
  ['a page of another host of the site', { 'sec-fetch-site': 'same-site' }],
  ['a browser that does not name its opener', { 'sec-fetch-site': '' }],
  // A server that answers with a redirect keeps this value of the program or address bar that opened its own address.
  ['an address bar, a program or a redirect behind them', { 'sec-fetch-site': 'none' }],
])('a link that %s opens shows its address, and signs in only by the button of that page', async (_case, site) => {
  const email = await ownerOf(world, (await world.organisation()).id)
  const url = await aLink(world, email)
  const visitor = await aBrowser(world, { email: await ownerOf(world, org.id) })
  const headers = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', ...site, cookie: visitor.cookie }
  const shown = await open(url, headers)
  expect([shown.status, shown.headers.getSetCookie()]).toEqual([200, []])
  const page = await shown.text()
  expect(page).toContain(`<strong>${email}</strong>`)
  expect(page).toMatch(/<form method="post">.*<button>Sign in<\/button>/s)
  expect(shown.headers.get('content-security-policy')).toMatch(
    /form-action 'self' http:\/\/dashboard\.test; .*frame-ancestors 'none'/,
  )
  expect(shown.headers.get('referrer-policy')).toBe('same-origin')
  const pressed = (origin: string) =>
    fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { ...headers, origin, 'content-type': 'application/x-www-form-urlencoded' },
    })
  for (const origin of ['https://evil.example', 'null', 'http://dashboard.test'])
    expect((await pressed(origin)).status).toBe(403)
  expect((await visitor.call('GET', '/account')).status).toBe(200)
  const signedIn = await pressed(new URL(world.config.baseUrl).origin)
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([302, 'http://dashboard.test'])
  expect(sessionCookie(world, signedIn)).toBeDefined()
  expect(sessionCookie(world, await open(url))).toBeUndefined()
})

test('text that the database cannot store is refused by every part of the sign-in', async () => {
  const body = {
    name: 'a\u0000b',
    email: 'a\u0000@example.com',
    newPassword: '\ud800 long enough to be one',
    token: '\u0000',
  }
  for (const path of [
    '/update-user',
    '/sign-in/email',
    '/sign-in/link',
    '/request-password-reset',
    '/reset-password',
  ]) {
    const response = await browser.call('POST', `/auth${path}`, body)
    expect([path, response.status, codeOf(response)]).toEqual([path, 422, 'validation-error'])
  }
  for (const path of ['/link?token=%00', '/callback/corp?state=%00&code=a', '/reset-password/a?callbackURL=%00'])
    expect([path, (await open(`${world.base}/auth${path}`, { cookie: browser.cookie })).status]).toEqual([path, 422])
})

test('the dashboard of another host of the site may call with its cookie, and no other origin may', async () => {
  const preflight = (origin: string): Promise<Response> =>
    fetch(`${world.base}/organisations/current`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'PATCH',
        'access-control-request-headers': 'content-type,x-service-organisation',
      },
    })
  const allowed = await preflight('http://dashboard.test')
  expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([204, 'http://dashboard.test'])
  expect(allowed.headers.get('access-control-allow-credentials')).toBe('true')
  expect(allowed.headers.get('access-control-allow-headers')).toMatch(/X-Service-Organisation/)
  const refused = await preflight('http://evil.example')
  expect(refused.headers.get('access-control-allow-origin')).toBeNull()
  const read = await browser.call('GET', '/organisations/current')
  expect(read.headers.get('access-control-allow-origin')).toBe('http://dashboard.test')
  const foreignRead = await browser.call('GET', '/organisations/current', undefined, { origin: 'http://evil.example' })
  expect(foreignRead.headers.get('access-control-allow-credentials')).toBeNull()
})

test('what anybody may read with a token names the dashboard where the dashboard asks', async () => {
  const own = await fetch(`${world.base}/openapi.json`, { headers: { origin: 'http://dashboard.test' } })
  expect(own.headers.get('access-control-allow-origin')).toBe('http://dashboard.test')
  const other = await fetch(`${world.base}/openapi.json`, { headers: { origin: 'http://evil.example' } })
  expect(other.headers.get('access-control-allow-origin')).toBe('*')
  expect(other.headers.get('access-control-allow-credentials')).toBeNull()
})

test('what better-auth offers beyond what the dashboard needs is not there', async () => {
  for (const path of ['/get-session', '/list-sessions', '/ok', '/error', '/callback/', '/link/x'])
    expect((await browser.call('GET', `/auth${path}`)).status).toBe(404)
  for (const path of ['/sign-up/email', '/delete-user', '/get-access-token', '/revoke-sessions', '/sign-in/magic-link'])
    expect((await browser.call('POST', `/auth${path}`, {})).status).toBe(404)
})
