import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { anIssuer, type Claims, type OidcIssuer } from '../oidc-issuer.ts'
import { aLink, browserOf, open, ownerOf, press, sessionCookie } from '../people.ts'
import { aWorld, type Org, type World } from '../world.ts'

// The service behind a proxy that ends TLS: its own address is https, where cookies take the prefix __Host-.

const site = 'https://pay.example.com'

let issuer: OidcIssuer
let world: World
let org: Org
let email: string

beforeAll(async () => {
  issuer = await anIssuer()
  const { url, clientId, clientSecret } = issuer
  const issuers = [{ name: 'corp', issuer: url, clientId, clientSecret }]
  const config = {
    baseUrl: site,
    dashboardUrl: `${site}/dashboard`,
    signIn: { isSignUpOpen: false, issuers, smtp: undefined },
  }
  world = await aWorld({ config })
  org = await world.organisation()
  email = await ownerOf(world, org.id)
})
afterAll(async () => {
  await world?.stop()
  await issuer?.stop()
})

interface Attempt {
  readonly authorizationUrl: string
  readonly cookies: string
}

/** What the sign-in page does: where the browser is sent, and the cookies that bind the attempt to it. */
async function begin(): Promise<Attempt> {
  const response = await fetch(`${world.base}/auth/sign-in/social`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: site },
    body: JSON.stringify({ provider: 'corp', callbackURL: `${site}/dashboard` }),
  })
  expect(response.status).toBe(200)
  const { url } = (await response.json()) as { url: string }
  return { authorizationUrl: url, cookies: cookiesOf(response) }
}

function cookiesOf(response: Response): string {
  return response.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ')
}

function comeBack({ code, state }: { code: string; state: string }, cookies: string): Promise<Response> {
  return open(`${world.base}/auth/callback/corp?${new URLSearchParams({ code, state })}`, { cookie: cookies })
}

async function signInAs(claims: Claims, options?: { forge: true }): Promise<Response> {
  const { authorizationUrl, cookies } = await begin()
  return comeBack(issuer.consent(authorizationUrl, claims, options), cookies)
}

const verified = (): Claims => ({ sub: 'person-1', email, email_verified: true, name: 'Owner' })

test('the session of an https address is in a __Host- cookie: Secure, HttpOnly, Lax, for the root and no domain', async () => {
  const [cookie = ''] = (await press(world, await aLink(world, email))).headers.getSetCookie()
  expect(cookie).toMatch(/^__Host-purser\.session_token=/)
  const attributes = cookie.split(/;\s*/).slice(1)
  expect(attributes).toEqual(expect.arrayContaining(['Path=/', 'Secure', 'HttpOnly', 'SameSite=Lax']))
  expect(attributes.filter((one) => /^Domain/i.test(one))).toEqual([])
})

test('every cookie of the sign-in has the prefix and its attributes, and the request has PKCE, state and nonce', async () => {
  const response = await fetch(`${world.base}/auth/sign-in/social`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: site },
    body: JSON.stringify({ provider: 'corp', callbackURL: `${site}/dashboard` }),
  })
  const cookies = response.headers.getSetCookie()
  expect(cookies.length).toBeGreaterThan(0)
  for (const cookie of cookies) expect(cookie).toMatch(/^__Host-purser\.(?=.*; Path=\/)(?=.*; Secure)(?=.*; HttpOnly)/)
  const { url } = (await response.json()) as { url: string }
  const { searchParams } = new URL(url)
  expect(searchParams.get('redirect_uri')).toBe(`${site}/auth/callback/corp`)
  expect(searchParams.get('code_challenge_method')).toBe('S256')
  for (const name of ['state', 'nonce', 'code_challenge']) expect(searchParams.get(name)?.length).toBeGreaterThan(20)
})

test('a person with an address that the issuer verified is signed in to the account with that address', async () => {
  const response = await signInAs(verified())
  expect([response.status, response.headers.get('location')]).toEqual([302, `${site}/dashboard`])
  const browser = browserOf(world, { cookie: sessionCookie(world, response) ?? '', organisationId: org.id })
  expect((await browser.call('GET', '/organisations/current')).body.id).toBe(org.id)
})

test.each<[string, Claims]>([
  ['an address that is not verified', { email_verified: false }],
  ['an address of which the issuer says nothing', { email_verified: undefined }],
  ['"true" as text', { email_verified: 'true' }],
  ['an id_token for another client', { aud: 'another' }],
  ['an id_token of another issuer', { iss: 'https://evil.example' }],
  ['another nonce', { nonce: 'another' }],
  ['an id_token that is too old', { exp: 1_000_000_000 }],
  ['nobody with an account', { email: 'nobody@example.com' }],
])('%s signs nobody in', async (_, change) => {
  const other = await world.organisation()
  const claims = { ...verified(), sub: `sub-${other.id}`, email: await ownerOf(world, other.id), ...change }
  const response = await signInAs(claims)
  expect([response.status < 500, sessionCookie(world, response)]).toEqual([true, undefined])
})

test('who was invited signs in, and no longer once the invitation is withdrawn', async () => {
  const inviting = await world.organisation()
  const members = '/organisations/current/members'
  for (const isWithdrawn of [false, true]) {
    const address = `guest-${isWithdrawn}@example.com`
    const invited = await world.call(inviting.testKey, 'POST', members, { email: address, role: 'viewer' })
    expect(invited.status).toBe(201)
    if (isWithdrawn)
      expect((await world.call(inviting.testKey, 'DELETE', `${members}/${invited.body.accountId}`)).status).toBe(204)
    const response = await signInAs({ ...verified(), sub: address, email: address })
    expect([isWithdrawn, sessionCookie(world, response) === undefined]).toEqual([isWithdrawn, isWithdrawn])
  }
})

test.each<[string, (address: string) => unknown]>([
  ['another letter that becomes the same in lower case', (address) => address.replace('k', '\u212a')],
  ['a NUL', (address) => `${address}\u0000`],
  ['a space', (address) => ` ${address}`],
  ['a line break', (address) => `${address}\n`],
  ['a list around it', (address) => [address]],
])('a verified address with %s is not the address of an account', async (_, change) => {
  const other = await world.organisation()
  const address = `k${await ownerOf(world, other.id)}`
  await world.database.db.run(sql`update accounts set email = ${address} where email = ${address.slice(1)}`)
  const response = await signInAs({ ...verified(), sub: `sub-${other.id}`, email: change(address) })
  expect([response.status < 500, sessionCookie(world, response)]).toEqual([true, undefined])
})

test('another person of the issuer who claims the address of somebody signed in before does not become them', async () => {
  expect(sessionCookie(world, await press(world, await aLink(world, email)))).toBeDefined()
  const response = await signInAs({ ...verified(), sub: 'intruder', email_verified: false })
  expect(sessionCookie(world, response)).toBeUndefined()
})

test('an id_token that another key signed signs nobody in', async () => {
  expect(sessionCookie(world, await signInAs(verified(), { forge: true }))).toBeUndefined()
})

test('an answer of the issuer works once, in the browser that began and in no other', async () => {
  const { authorizationUrl, cookies } = await begin()
  const elsewhere = await comeBack(issuer.consent(authorizationUrl, verified()), (await begin()).cookies)
  expect(sessionCookie(world, elsewhere)).toBeUndefined()
  const second = await begin()
  const given = issuer.consent(second.authorizationUrl, verified())
  expect(sessionCookie(world, await comeBack(given, second.cookies))).toBeDefined()
  expect(sessionCookie(world, await comeBack(given, second.cookies))).toBeUndefined()
  expect(sessionCookie(world, await comeBack({ code: 'made-up', state: given.state }, cookies))).toBeUndefined()
})

test('an id_token that was read anywhere signs nobody in, however good it is', async () => {
  const token = issuer.idToken(verified())
  for (const path of ['/auth/sign-in/social', '/auth/link-social']) {
    const response = await fetch(world.base + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: site },
      body: JSON.stringify({ provider: 'corp', idToken: { token } }),
    })
    expect([path, response.status, sessionCookie(world, response)]).toEqual([path, 422, undefined])
  }
})

test('a sign-in that nobody ends stores little', async () => {
  for (const name of ['callbackURL', 'errorCallbackURL']) {
    const response = await fetch(`${world.base}/auth/sign-in/social`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: site },
      body: JSON.stringify({ provider: 'corp', callbackURL: site, [name]: `${site}/${'x'.repeat(2_000)}` }),
    })
    expect([name, response.status]).toEqual([name, 422])
  }
})

test('a sign-in that leads elsewhere than to the dashboard is refused', async () => {
  const response = await fetch(`${world.base}/auth/sign-in/social`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: site },
    body: JSON.stringify({ provider: 'corp', callbackURL: 'https://evil.example/' }),
  })
  expect(response.status).toBe(403)
})
