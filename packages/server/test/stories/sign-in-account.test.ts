import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { id } from '../../src/platform/ids.ts'
import {
  aBrowser,
  ageSessions,
  aLink,
  type Browser,
  browserOf,
  invite,
  ownerOf,
  press,
  sessionCookie,
} from '../people.ts'
import { aWorld, codeOf, type Org, type World } from '../world.ts'

let world: World
let org: Org
let owner: Browser

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
})
afterAll(() => world?.stop())

const members = '/organisations/current/members'

test('a person sees their sessions without tokens, and ends one, which holds everywhere at once', async () => {
  const other = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  const { list } = await owner.call('GET', '/account/sessions')
  expect(list).toHaveLength(2)
  expect(list.filter(({ isCurrent }) => isCurrent)).toHaveLength(1)
  expect(Object.keys(list[0] ?? {}).sort()).toEqual([
    'createdAt',
    'expiresAt',
    'id',
    'ipAddress',
    'isCurrent',
    'userAgent',
  ])
  expect(list[0]?.ipAddress).toBe('127.0.0.1')
  expect((await owner.call('GET', '/account/sessions?limit=1')).list).toEqual(list.slice(0, 1))
  const others = list.find(({ isCurrent }) => !isCurrent)
  expect((await owner.call('DELETE', `/account/sessions/${others?.id}`)).status).toBe(204)
  expect((await other.call('GET', '/account')).status).toBe(401)
  expect(codeOf(await owner.call('DELETE', `/account/sessions/${others?.id}`))).toBe('session-not-found')
})

test.each([
  ['in quotes', (name: string, value: string) => `${name}="${value}"`],
  ['with a space before its sign', (name: string, value: string) => `${name} =${value}`],
  ['after a space of another kind', (name: string, value: string) => `\u00a0${name}=${value}`],
  ['in quotes, and again without', (name: string, value: string) => `${name}="${value}"; ${name}=${value}`],
])('a session cookie %s is none under /auth either, where its age could not be checked', async (_, written) => {
  const at = owner.cookie.indexOf('=')
  const cookie = written(owner.cookie.slice(0, at), owner.cookie.slice(at + 1))
  const passwords = { currentPassword: 'a password of twelve', newPassword: 'another password of twelve' }
  for (const [path, body] of [
    ['/auth/update-user', { name: 'Ann' }],
    ['/auth/change-password', passwords],
  ] as const)
    expect((await owner.call('POST', path, body, { cookie })).status).toBe(401)
  expect((await owner.call('POST', '/auth/update-user', { name: 'Ann' })).status).toBe(200)
})

test('a person has about a hundred sessions at most, and a session keeps 512 characters of its User-Agent', async () => {
  const email = await ownerOf(world, (await world.organisation()).id)
  await aBrowser(world, { email })
  await world.database.db.run(sql`
    insert into auth."session" ("id", "expiresAt", "token", "createdAt", "updatedAt", "userAgent", "userId")
    select 'ssn_' || n, now() + interval '1 day', 'token-' || n, now() - n * interval '1 minute', now(), '', "id"
    from auth."user", generate_series(1, 120) as n where email = ${email}`)
  const opened = await press(world, await aLink(world, email), { 'user-agent': 'x'.repeat(12_000) })
  expect(sessionCookie(world, opened)).toBeDefined()
  const left = await world.database.db.many(
    z.object({ id: z.string(), length: z.number() }),
    sql`select session."id", coalesce(length("userAgent"), 0) as length from auth."session" as session
      join auth."user" as owner on owner."id" = "userId" where owner.email = ${email}`,
  )
  // A sign-in that is written at the same moment may be one more.
  expect([100, 101]).toContain(left.length)
  expect(left.map(({ id }) => id)).not.toContain('ssn_120')
  expect(Math.max(...left.map(({ length }) => length))).toBe(512)
})

test('nobody ends a session of somebody else, and a key has none', async () => {
  const stranger = await invite(world, { owner, organisationId: org.id, email: 'stranger@example.com', role: 'viewer' })
  const [mine] = (await owner.call('GET', '/account/sessions')).list
  expect(codeOf(await stranger.call('DELETE', `/account/sessions/${mine?.id}`))).toBe('session-not-found')
  expect(codeOf(await world.call(org.testKey, 'GET', '/account/sessions'))).toBe('person-required')
  expect((await owner.call('GET', '/account')).status).toBe(200)
})

test('an invitation opens nothing until it is accepted, and is accepted once', async () => {
  const email = 'invited@example.com'
  const invited = await owner.call('POST', members, { email, role: 'member' })
  expect(invited.body).toMatchObject({ email, role: 'member', status: 'invited' })
  const browser = await aBrowser(world, { email, organisationId: org.id })
  expect(codeOf(await browser.call('GET', '/organisations/current'))).toBe('organisation-not-found')
  const { body } = await browser.call('GET', '/account', undefined, { 'x-service-organisation': undefined })
  expect(body).toMatchObject({ organisations: [], invitations: [{ id: org.id, name: 'Acme', role: 'member' }] })
  const accept = (): ReturnType<Browser['call']> =>
    browser.call('POST', `/account/invitations/${org.id}/accept`, undefined, { 'x-service-organisation': undefined })
  const answers = await Promise.all([accept(), accept(), accept()])
  expect(answers.map(({ status }) => status).sort()).toEqual([204, 404, 404])
  expect((await browser.call('GET', '/organisations/current')).status).toBe(200)
  const listed = (await owner.call('GET', members)).list.find((member) => member.email === email)
  expect(listed).toMatchObject({ status: 'active' })
})

test('an invitation by account answers alike whether or not there is one, and shows no address', async () => {
  const other = await world.organisation()
  const known = (await world.call(other.testKey, 'GET', '/account')).body.id
  const answers = []
  for (const accountId of [known, 'acc_01h455vb4pex5vsknk084sn02q'])
    for (const _ of [1, 2]) {
      const { status, body } = await owner.call('POST', members, { accountId })
      answers.push({ status, role: body.role, email: body.email, shown: body.status, title: body.title })
    }
  expect(answers.slice(0, 2)).toEqual(answers.slice(2))
  expect(answers[0]).toMatchObject({ status: 201, role: 'member', email: null, shown: 'invited' })
  const accepted = await world.call(other.testKey, 'POST', `/account/invitations/${org.id}/accept`)
  expect(accepted.status).toBe(204)
  const person = await aBrowser(world, { email: await ownerOf(world, other.id) })
  const { organisations } = (await person.call('GET', '/account')).body
  expect(organisations).toEqual(expect.arrayContaining([expect.objectContaining({ id: org.id, role: 'member' })]))
})

test('an API key neither grants nor takes owner and admin; an admin does not touch owners', async () => {
  const admin = await invite(world, { owner, organisationId: org.id, email: 'admin@example.com', role: 'admin' })
  const { accountId: ownersId } = (await owner.call('GET', members)).list.find(({ role }) => role === 'owner') ?? {}
  const { id: adminsId } = (await admin.call('GET', '/account')).body
  const refusals = [
    await world.call(org.testKey, 'POST', members, { email: 'a1@example.com', role: 'admin' }),
    await world.call(org.testKey, 'POST', members, { email: 'a2@example.com', role: 'owner' }),
    await world.call(org.testKey, 'PATCH', `${members}/${adminsId}`, { role: 'viewer' }),
    await world.call(org.testKey, 'DELETE', `${members}/${adminsId}`),
    await world.call(org.testKey, 'DELETE', `${members}/${ownersId}`),
    await admin.call('POST', members, { email: 'a3@example.com', role: 'owner' }),
    await admin.call('PATCH', `${members}/${adminsId}`, { role: 'owner' }),
    await admin.call('DELETE', `${members}/${ownersId}`),
  ]
  expect(refusals.map(codeOf)).toEqual(refusals.map(() => 'role-not-allowed'))
  expect((await admin.call('POST', members, { email: 'a4@example.com', role: 'admin' })).status).toBe(201)
})

test('an owner who signed in more than ten minutes ago changes no owners, and others as before', async () => {
  const other = await world.organisation()
  const email = await ownerOf(world, other.id)
  const first = await aBrowser(world, { email, organisationId: other.id })
  const invited = { owner: first, organisationId: other.id, email: 'second@example.com', role: 'owner' }
  const second = await invite(world, invited)
  const { id } = (await second.call('GET', '/account')).body
  await ageSessions(world, 10)
  const late = [
    await first.call('PATCH', `${members}/${id}`, { role: 'viewer' }),
    await first.call('DELETE', `${members}/${id}`),
    await first.call('POST', members, { email: 'third@example.com', role: 'owner' }),
  ]
  expect(late.map(codeOf)).toEqual(late.map(() => 'fresh-authentication-required'))
  expect((await first.call('POST', members, { email: 'plain@example.com', role: 'viewer' })).status).toBe(201)
  const fresh = await aBrowser(world, { email, organisationId: other.id })
  expect((await fresh.call('PATCH', `${members}/${id}`, { role: 'viewer' })).status).toBe(200)
  owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
})

test('the first live key is made by an owner who signed in within ten minutes, from the test environment', async () => {
  const email = await ownerOf(world, org.id)
  const browser = await aBrowser(world, { email, organisationId: org.id })
  const request = { name: 'Live', environment: 'live' }
  const once = { 'idempotency-key': 'the first live key' }
  const made = await browser.call('POST', '/organisations/current/api-keys', request, once)
  expect([made.status, made.body.environment]).toEqual([201, 'live'])
  const shown = await browser.call('POST', '/organisations/current/api-keys', request, once)
  expect(shown.body).toEqual(made.body)
  await ageSessions(world, 10)
  for (const headers of [{}, once]) {
    const late = await browser.call('POST', '/organisations/current/api-keys', request, headers)
    expect([late.status, codeOf(late)]).toEqual([403, 'fresh-authentication-required'])
  }
  const test = await browser.call('POST', '/organisations/current/api-keys', { name: 'Test', environment: 'test' })
  expect(test.status).toBe(201)
  const again = await aBrowser(world, { email, organisationId: org.id })
  expect((await again.call('POST', '/organisations/current/api-keys', request, once)).body).toEqual(made.body)
  expect((await again.call('POST', '/organisations/current/api-keys', request)).status).toBe(201)
  owner = again
})

test('an admin makes live keys, but not the first one of an organisation', async () => {
  const other = {
    id: id('org').parse((await world.call(org.testKey, 'POST', '/organisations', { name: 'New' })).body.id),
  }
  const first = await aBrowser(world, { email: await ownerOf(world, other.id), organisationId: other.id })
  const invited = { owner: first, organisationId: other.id, email: 'live-admin@example.com', role: 'admin' }
  const admin = await invite(world, invited)
  const request = { name: 'Live', environment: 'live' }
  const path = '/organisations/current/api-keys'
  const inPath = () =>
    admin.call('POST', `/organisations/${other.id}/api-keys`, { name: 'Live' }, { 'x-service-environment': 'live' })
  for (const refused of [await admin.call('POST', path, request), await inPath()])
    expect([refused.status, codeOf(refused)]).toEqual([403, 'role-not-allowed'])
  const { status, body } = await first.call('POST', path, request)
  expect(status).toBe(201)
  expect(
    (await first.call('DELETE', `${path}/${body.id}`, undefined, { 'x-service-environment': 'live' })).status,
  ).toBe(204)
  expect([(await admin.call('POST', path, request)).status, (await inPath()).status]).toEqual([201, 201])
})

test('a policy is tightened at any time and loosened by a person with a fresh sign-in alone', async () => {
  const wallet = await owner.call('POST', '/wallet-infra/master-wallets', {
    name: 'Treasury',
    chain: 'base',
    supportedTokens: ['USDC'],
  })
  const path = `/wallet-infra/master-wallets/${wallet.body.id}/policy`
  const policy = (perDay: string) => ({ operations: {}, tokens: { USDC: { perDay } } })
  expect((await owner.call('PUT', path, policy('10'))).status).toBe(200)
  expect((await owner.call('PUT', path, policy('20'))).status).toBe(200)
  expect(codeOf(await world.call(org.testKey, 'PUT', path, policy('30')))).toBe('policy-loosening-denied')
  await ageSessions(world, 10)
  expect(codeOf(await owner.call('PUT', path, policy('30')))).toBe('fresh-authentication-required')
  expect((await owner.call('PUT', path, policy('5'))).status).toBe(200)
})

test('where sign-up is closed, a person whom an invitation admitted makes no organisation, also as an owner of that one', async () => {
  const other = await world.organisation()
  const first = await aBrowser(world, { email: await ownerOf(world, other.id), organisationId: other.id })
  const invited = { owner: first, organisationId: other.id, email: 'guest@example.com', role: 'admin' }
  const guest = await invite(world, invited)
  const { list } = await first.call('GET', members)
  const { accountId } = list.find(({ email }) => email === 'guest@example.com') ?? {}
  const own = { name: 'Own' }
  expect(codeOf(await guest.call('POST', '/organisations', own))).toBe('sign-up-closed')
  const made = await guest.call('POST', '/organisations/current/api-keys', { name: 'Mine', environment: 'test' })
  const key = String(made.body.key)
  expect(codeOf(await world.call(key, 'POST', '/organisations', own))).toBe('sign-up-closed')
  expect((await first.call('PATCH', `${members}/${accountId}`, { role: 'owner' })).status).toBe(200)
  expect(codeOf(await guest.call('POST', '/organisations', own))).toBe('sign-up-closed')
  expect((await first.call('POST', '/organisations', own)).status).toBe(201)
})

test('an account makes at most ten organisations, also if it makes others their owners', async () => {
  const other = await world.organisation()
  const first = await aBrowser(world, { email: await ownerOf(world, other.id), organisationId: other.id })
  for (let made = 1; made < 10; made++)
    expect((await first.call('POST', '/organisations', { name: `Own ${made}` })).status).toBe(201)
  const [last] = z.array(z.object({ id: z.string() })).parse((await first.call('GET', '/account')).body.organisations)
  const inside = browserOf(world, { cookie: first.cookie, organisationId: last?.id as `org_${string}` })
  const email = 'heir@example.com'
  await invite(world, { owner: inside, organisationId: last?.id as `org_${string}`, email, role: 'admin' })
  const { list } = await inside.call('GET', members)
  const idOf = (whose: (role: unknown) => boolean) => list.find(({ role }) => whose(role))?.accountId
  const heir = `${members}/${idOf((role) => role === 'admin')}`
  expect((await inside.call('PATCH', heir, { role: 'owner' })).status).toBe(200)
  const self = `${members}/${idOf((role) => role === 'owner')}`
  expect((await inside.call('PATCH', self, { role: 'viewer' })).status).toBe(200)
  expect(codeOf(await first.call('POST', '/organisations', { name: 'Own 10' }))).toBe('organisation-limit-reached')
})

test('where sign-up is open, a person without an organisation founds one, once for each Idempotency-Key', async () => {
  const { base } = await world.another({
    role: 'api',
    signIn: { isSignUpOpen: true, issuers: [], smtp: undefined },
  })
  await owner.call('POST', members, { email: 'founder@example.com', role: 'viewer' })
  const browser = await aBrowser(world, { email: 'founder@example.com', base })
  const found = (key: string): ReturnType<Browser['call']> =>
    browser.call('POST', '/organisations', { name: 'Own' }, { 'idempotency-key': key })
  const [first, again] = [await found('one'), await found('one')]
  expect([first.status, again.body.id]).toEqual([201, first.body.id])
  const inside = browserOf(world, { cookie: browser.cookie, organisationId: first.body.id as `org_${string}` })
  expect((await inside.call('GET', '/organisations/current')).body.name).toBe('Own')
})

test('an environment that is not served is 403, and none at all is test', async () => {
  const named = (environment: string | undefined): ReturnType<Browser['call']> =>
    owner.call('GET', '/payments/logs', undefined, { 'x-service-environment': environment })
  expect((await named(undefined)).status).toBe(200)
  expect((await named('live')).status).toBe(200)
  expect(codeOf(await named('production'))).toBe('environment-not-served')
})
