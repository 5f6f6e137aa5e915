import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aMailbox, type Mailbox } from '../mailbox.ts'
import { aBrowser, aLink, type Browser, ownerOf, press } from '../people.ts'
import { aWorld, type World } from '../world.ts'

// Decisions 0174 and 0187. Each address is in a block of its own, because the limits are those of the whole process.

let world: World
let mailbox: Mailbox
let now = new Date()

beforeAll(async () => {
  mailbox = await aMailbox()
  const smtp = { url: mailbox.url, from: 'purser@example.com' }
  world = await aWorld({
    config: { trustProxy: 1, signIn: { isSignUpOpen: false, issuers: [], smtp } },
    // Limits refill with time, and a test may take any.
    boot: { clock: { now: () => now } },
  })
})
afterAll(async () => {
  await world?.stop()
  await mailbox?.stop()
})

interface From {
  readonly address: string
  readonly cookie?: string
}

async function post(path: string, body: unknown, { address, cookie }: From, base = world.base): Promise<number> {
  const headers = {
    'content-type': 'application/json',
    origin: 'http://dashboard.test',
    'x-forwarded-for': address,
    ...(cookie !== undefined && { cookie }),
  }
  return (await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) })).status
}

function guess(email: string, from: From): Promise<number> {
  return post('/auth/sign-in/email', { email, password: 'some wrong password' }, from)
}

function link(email: string, from: From): Promise<number> {
  return post('/auth/sign-in/link', { email }, from)
}

async function guesses(email: string, from: From, count: number): Promise<number[]> {
  const statuses: number[] = []
  for (let at = 0; at < count; at++) statuses.push(await guess(email, from))
  return statuses
}

const anOwner = async () => ownerOf(world, (await world.organisation()).id)
const cookiesOf = (response: Response) =>
  response.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ')

test('a stranger who guesses all the time keeps nobody else from signing in to the same account', async () => {
  const email = await anOwner()
  expect((await guesses(email, { address: '198.51.100.1' }, 14)).slice(9)).toEqual([401, 429, 429, 429, 429])
  expect(await guess(email, { address: '198.51.100.2' })).toBe(401)
  for (const path of ['/auth/sign-in/link', '/auth/request-password-reset'])
    expect(await post(path, { email }, { address: '198.51.100.1' })).toBe(200)
})

test('a host that has a whole /64 of IPv6 counts as one stranger', async () => {
  const email = await anOwner()
  const statuses: number[] = []
  for (let at = 1; at <= 12; at++) statuses.push(await guess(email, { address: `2001:db8:0:7::${at.toString(16)}` }))
  expect(statuses.slice(9)).toEqual([401, 429, 429])
  const others: number[] = []
  for (let at = 1; at <= 32; at++)
    others.push(await link(`nobody-${at}@example.com`, { address: `2001:db8:0:8::${at.toString(16)}` }))
  expect(others.slice(29)).toEqual([200, 429, 429])
})

test('guesses from many addresses are limited together, and a browser that has signed in before is not one of them', async () => {
  const email = await anOwner()
  const cookie = cookiesOf(await press(world, await aLink(world, email)))
  const known = cookie.split('; ').filter((part) => part.startsWith('purser.known_browser='))
  expect(known).toHaveLength(1)
  const statuses: number[] = []
  for (let at = 1; at <= 24; at++) statuses.push(await guess(email, { address: `203.0.113.${at}` }))
  expect(statuses.slice(19)).toEqual([401, 429, 429, 429, 429])
  const own = { address: '203.0.113.40', cookie: String(known[0]) }
  expect((await guesses(email, own, 12)).slice(9)).toEqual([401, 429, 429])
  expect(await link(email, own)).toBe(200)
})

test('the cookie of a browser counts for its own e-mail address alone, signed by this service, and signs nobody in', async () => {
  const [email, other] = [await anOwner(), await anOwner()]
  const cookie = String(
    cookiesOf(await press(world, await aLink(world, other)))
      .split('; ')
      .find((part) => part.startsWith('purser.known_browser=')),
  )
  for (let at = 1; at <= 21; at++) await guess(email, { address: `192.0.2.${at}` })
  const forged = cookie.replace(/[^.]*$/, Buffer.alloc(32).toString('base64'))
  expect(await guess(email, { address: '192.0.2.50', cookie })).toBe(429)
  expect(await guess(email, { address: '192.0.2.50', cookie: forged })).toBe(429)
  expect(await guess(other, { address: '192.0.2.50', cookie })).toBe(401)
  const value = cookie.slice(cookie.indexOf('=') + 1)
  const asSession = await fetch(`${world.base}/account`, { headers: { cookie: `purser.session_token=${value}` } })
  expect(asSession.status).toBe(401)
})

const addressOf = (at: number) => `10.0.${Math.floor(at / 250)}.${(at % 250) + 1}`
const urlIn = (text: string): string => (/https?:\S+/.exec(text)?.[0] ?? '').replace(world.config.baseUrl, world.base)

/** Mails are sent after the response: one that a request of an earlier hour brought late may come first, and its link has expired. */
function expectLinkByMail(email: string): Promise<void> {
  return expect
    .poll(async () => (await press(world, urlIn(await mailbox.newest(email)))).headers.get('location'))
    .toBe('http://dashboard.test')
}

test('strangers from any number of network addresses never keep a person from a link in a new browser', async () => {
  const email = await anOwner()
  for (let hour = 0; hour < 3; hour++) {
    const statuses = new Set<number>()
    for (let at = 0; at < 60; at++) statuses.add(await link(email, { address: addressOf(at) }))
    expect(statuses).toEqual(new Set([200]))
    // The person, from a network address of their own: the link of a stranger's request works as well as one of theirs.
    expect(await link(email, { address: `10.1.0.${hour + 1}` })).toBe(200)
    await expectLinkByMail(email)
    // A link that was used is followed by another, at once.
    expect(await link(email, { address: `10.1.1.${hour + 1}` })).toBe(200)
    await expectLinkByMail(email)
    now = new Date(now.getTime() + 3_600_000)
  }
})

test('strangers from any number of network addresses never keep a person from a new password', async () => {
  const email = await anOwner()
  await press(world, await aLink(world, email))
  const statuses = new Set<number>()
  for (let at = 0; at < 60; at++)
    statuses.add(await post('/auth/request-password-reset', { email }, { address: addressOf(at + 100) }))
  expect(statuses).toEqual(new Set([200]))
  const token = /reset-password\/([\w-]+)/.exec(await mailbox.newest(email))?.[1]
  const newPassword = 'a long enough password'
  expect(await post('/auth/reset-password', { token, newPassword }, { address: '10.1.2.1' })).toBe(200)
  expect(await post('/auth/request-password-reset', { email }, { address: '10.1.2.2' })).toBe(200)
  expect(await mailbox.newest(email)).toContain('reset-password')
})

test('requests for mail take no guess of a password away, and guesses no mail', async () => {
  const email = await anOwner()
  for (let at = 0; at < 24; at++) await link(email, { address: addressOf(at + 200) })
  expect(await guess(email, { address: addressOf(230) })).toBe(401)
  await Promise.all(Array.from({ length: 24 }, (_, at) => guess(email, { address: addressOf(at + 300) })))
  expect(await guess(email, { address: addressOf(330) })).toBe(429)
  expect(await link(email, { address: addressOf(330) })).toBe(200)
})

test('strangers in the network of a person use up no attempt of a browser in which the person signed in', async () => {
  const email = await anOwner()
  const known = cookiesOf(await press(world, await aLink(world, email)))
    .split('; ')
    .find((part) => part.startsWith('purser.known_browser='))
  const address = '10.1.3.1'
  const strangers: number[] = []
  for (let at = 0; at < 32; at++) strangers.push(await link(`nobody-${at}@example.com`, { address }))
  expect(strangers.slice(29)).toEqual([200, 429, 429])
  expect(await guess(email, { address, cookie: String(known) })).toBe(401)
  expect(await link(email, { address, cookie: String(known) })).toBe(200)
})

test('one address begins 30 sign-ins at once that nobody ends, and keeps no other from beginning one', async () => {
  const begin = async (address: string) => {
    const headers = { 'x-forwarded-for': address }
    return (await fetch(`${world.base}/auth/passkey/generate-authenticate-options`, { headers })).status
  }
  const statuses: number[] = []
  for (let at = 0; at < 32; at++) statuses.push(await begin('198.51.100.40'))
  expect(statuses.slice(29)).toEqual([200, 429, 429])
  expect(await post('/auth/sign-in/social', { provider: 'corp' }, { address: '198.51.100.40' })).toBe(429)
  expect(await begin('198.51.100.41')).toBe(200)
})

test('a person changes 60 things at once, and another person as many', async () => {
  const [one, other] = [
    await aBrowser(world, { email: await anOwner() }),
    await aBrowser(world, { email: await anOwner() }),
  ]
  const rename = async ({ call }: Browser, at: number) =>
    (await call('POST', '/auth/update-user', { name: `${at}` })).status
  const statuses: number[] = []
  for (let at = 0; at < 62; at++) statuses.push(await rename(one, at))
  expect(statuses.slice(59)).toEqual([200, 429, 429])
  expect(await rename(other, 0)).toBe(200)
})

test('a person has at most 20 passkeys', async () => {
  const email = await anOwner()
  const browser = await aBrowser(world, { email })
  const { db } = world.database
  const add = (at: number) =>
    db.run(sql`
      insert into auth."passkey" ("id", "publicKey", "userId", "credentialID", "counter", "deviceType", "backedUp")
      select ${`pk-${at}`}, '', user_id, ${`credential-${at}`}, 0, 'singleDevice', false from accounts where email = ${email}`)
  for (let at = 0; at < 19; at++) await add(at)
  const options = '/auth/passkey/generate-register-options'
  const full = { path: '', message: 'a person has at most 20 passkeys; remove one that is not used' }
  expect((await browser.call('GET', options)).status).toBe(200)
  await add(19)
  expect((await browser.call('GET', options)).body.errors).toEqual([full])
  const response = { id: 'credential-20', rawId: 'credential-20', type: 'public-key', response: {} }
  const registered = await browser.call('POST', '/auth/passkey/verify-registration', { response, name: 'one more' })
  expect([registered.status, registered.body.errors]).toEqual([422, [full]])
  await db.run(sql`delete from auth."passkey" where "id" = 'pk-0'`)
  expect((await browser.call('GET', options)).status).toBe(200)
})

test('where anybody may sign up, a site has 60 mails sent to strangers, and an account of it gets one beyond them', async () => {
  const smtp = { url: mailbox.url, from: 'purser@example.com' }
  const { base } = await world.another({
    role: 'api',
    trustProxy: 1,
    signIn: { isSignUpOpen: true, issuers: [], smtp },
  })
  const send = (email: string, address: string) => post('/auth/sign-in/link', { email }, { address }, base)
  const mails = async () => {
    const rows = sql`select email from auth.sign_in_mails where email like '%@stranger.example'`
    return (await world.database.db.many(z.object({ email: z.string() }), rows)).length
  }
  for (let at = 0; at < 80; at++)
    expect(await send(`a-${at}@stranger.example`, `203.0.114.${at % 4}`), `request ${at}`).toBe(200)
  const email = await anOwner()
  expect(await send(email, '203.0.114.9')).toBe(200)
  await mailbox.newest(email)
  await expect.poll(mails).toBe(60)
  expect(await send('another-site@stranger.example', '203.0.115.9')).toBe(200)
  await mailbox.newest('another-site@stranger.example')
})
