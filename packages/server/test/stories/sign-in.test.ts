import { randomBytes } from 'node:crypto'
import { newTypeId } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { listInvitationsTo } from '../../src/features/organisations/index.ts'
import { hashOfToken, makeSignInLink } from '../../src/features/people/links.ts'
import { sql } from '../../src/platform/db/db.ts'
import type { AccountId, OrganisationId } from '../../src/platform/ids.ts'
import { aBrowser, aLink, browserOf, invite, ownerOf, press, sessionCookie } from '../people.ts'
import { aWorld, codeOf, countByStatus, type Org, type World } from '../world.ts'

let world: World
let org: Org
let email: string

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  email = await ownerOf(world, org.id)
})
afterAll(() => world?.stop())

const Count = z.object({ count: z.bigint() })

test('a one-time link signs in and leads to the dashboard, with a cookie that scripts cannot read', async () => {
  const response = await press(world, await aLink(world, email))
  expect([response.status, response.headers.get('location')]).toEqual([302, 'http://dashboard.test'])
  expect(response.headers.get('referrer-policy')).toBe('no-referrer')
  const [cookie = ''] = response.headers.getSetCookie()
  expect(cookie).toMatch(/^purser\.session_token=/)
  expect(cookie).toMatch(/; HttpOnly/)
  expect(cookie).toMatch(/; SameSite=Lax/)
  expect(cookie).not.toMatch(/; (Secure|Domain)/)
  const browser = browserOf(world, { cookie: sessionCookie(world, response) ?? '', organisationId: org.id })
  expect((await browser.call('GET', '/organisations/current')).body.id).toBe(org.id)
  const account = await browser.call('GET', '/account')
  expect(account.body).toMatchObject({ email, organisations: [{ id: org.id, role: 'owner' }] })
})

test('a link works once, also after HEAD of it: of twenty browsers that open it together one is signed in', async () => {
  const url = await aLink(world, email)
  expect((await fetch(url, { method: 'HEAD', redirect: 'manual' })).status).toBe(404)
  const responses = await Promise.all(Array.from({ length: 20 }, () => press(world, url)))
  expect(countByStatus(responses)).toEqual({ 302: 20 })
  expect(responses.flatMap((response) => sessionCookie(world, response) ?? [])).toHaveLength(1)
  const late = await press(world, url)
  expect(late.headers.get('location')).toBe('http://dashboard.test/sign-in?error=link-not-valid')
  expect(sessionCookie(world, late)).toBeUndefined()
})

test('a link that is older than ten minutes and a made-up one sign nobody in', async () => {
  const url = await aLink(world, email)
  const token = new URL(url).searchParams.get('token') ?? ''
  await world.database.db.run(
    sql`update auth.sign_in_links set expires_at = ${new Date(Date.now() - 1)} where token_hash = ${hashOfToken(token)}`,
  )
  for (const link of [url, `${world.base}/auth/link?token=${'A'.repeat(43)}`])
    expect(sessionCookie(world, await press(world, link))).toBeUndefined()
})

test('the database holds no token of a link', async () => {
  const url = await aLink(world, email)
  const token = new URL(url).searchParams.get('token') ?? ''
  const rows = await world.database.db.many(
    z.object({ everything: z.string() }),
    sql`select sign_in_links::text as everything from auth.sign_in_links`,
  )
  expect(rows.some(({ everything }) => everything.includes(token))).toBe(false)
})

test('links that are opened at once for one new person make one user and one account', async () => {
  const invited = 'first@example.com'
  await world.call(org.testKey, 'POST', '/organisations/current/members', { email: invited, role: 'member' })
  const urls = await Promise.all(Array.from({ length: 8 }, () => aLink(world, invited)))
  const responses = await Promise.all(urls.map((url) => press(world, url)))
  expect(responses.some((response) => sessionCookie(world, response) !== undefined)).toBe(true)
  const browser = await aBrowser(world, { email: invited, organisationId: org.id })
  expect((await browser.call('GET', '/account')).body).toMatchObject({ email: invited })
  const { count } = await world.database.db.one(
    Count,
    sql`select count(*) as count from auth."user" where email = ${invited}`,
  )
  expect(count).toBe(1n)
})

test('a user whose account was lost to a crash is joined to it by the next sign-in', async () => {
  const other = await world.organisation()
  const address = await ownerOf(world, other.id)
  await aBrowser(world, { email: address })
  await world.database.db.run(sql`update accounts set user_id = null where email = ${address}`)
  const browser = await aBrowser(world, { email: address, organisationId: other.id })
  expect((await browser.call('GET', '/organisations/current')).body.id).toBe(other.id)
})

test('signing in again ends the session that the browser had before', async () => {
  const first = await aBrowser(world, { email, organisationId: org.id })
  const again = await press(world, await aLink(world, email), { cookie: first.cookie })
  const cookie = sessionCookie(world, again) ?? ''
  expect(cookie).not.toBe(first.cookie)
  expect((await first.call('GET', '/organisations/current')).status).toBe(401)
  const second = browserOf(world, { cookie, organisationId: org.id })
  expect((await second.call('GET', '/organisations/current')).status).toBe(200)
})

test('a session that is ended opens nothing from the next request on, in any process', async () => {
  const another = await world.another()
  const browser = await aBrowser(world, { email, organisationId: org.id })
  const elsewhere = browserOf(world, { cookie: browser.cookie, organisationId: org.id, base: another.base })
  expect((await elsewhere.call('GET', '/organisations/current')).status).toBe(200)
  expect((await browser.call('POST', '/auth/sign-out')).status).toBe(200)
  for (const one of [browser, elsewhere]) {
    const refused = await one.call('GET', '/organisations/current')
    expect([refused.status, codeOf(refused)]).toEqual([401, 'unauthorized'])
  }
})

test('a forged cookie, a cookie with another signature and an old session are 401', async () => {
  const { cookie } = await aBrowser(world, { email, organisationId: org.id })
  const [name = '', value = ''] = cookie.split('=')
  const [token = ''] = decodeURIComponent(value).split('.')
  const [good, other] = [`${token}.${'A'.repeat(43)}=`, 'x']
  for (const forged of [good, other, token, '', `${token}.`])
    expect(
      (
        await browserOf(world, { cookie: `${name}=${encodeURIComponent(forged)}`, organisationId: org.id }).call(
          'GET',
          '/account',
        )
      ).status,
    ).toBe(401)
  await world.database.db.run(
    sql`update auth."session" set "expiresAt" = now() - interval '1 second' where "token" = ${token}`,
  )
  expect((await browserOf(world, { cookie, organisationId: org.id }).call('GET', '/account')).status).toBe(401)
})

test('a person who was removed from an organisation is refused from the next request on', async () => {
  const owner = await aBrowser(world, { email, organisationId: org.id })
  const member = { owner, organisationId: org.id, email: 'leaver@example.com', role: 'admin' }
  const browser = await invite(world, member)
  expect((await browser.call('GET', '/organisations/current')).status).toBe(200)
  const { id } = (await browser.call('GET', '/account')).body
  expect((await owner.call('DELETE', `/organisations/current/members/${id}`)).status).toBe(204)
  const refused = await browser.call('GET', '/organisations/current')
  expect(codeOf(refused)).toBe('organisation-not-found')
  expect(refused.body.detail).toContain('X-Service-Organisation')
})

test('an organisation of others, one that does not exist and none at all are answered alike', async () => {
  const other = await world.organisation()
  const browser = await aBrowser(world, { email, organisationId: org.id })
  const named = [other.id, 'org_01h455vb4pex5vsknk084sn02q', 'nonsense', undefined]
  const answers = await Promise.all(
    named.map((id) => browser.call('GET', '/organisations/current', undefined, { 'x-service-organisation': id })),
  )
  const [first, ...rest] = answers.map(({ status, body: { requestId: _, ...body } }) => ({ status, body }))
  expect(first).toMatchObject({ status: 404, body: { title: 'Organisation Not Found' } })
  for (const response of rest) expect(response).toEqual(first)
})

test('a key beside a cookie is what counts, also when it is not good', async () => {
  const browser = await aBrowser(world, { email, organisationId: org.id })
  const other = await world.organisation()
  const withKey = { authorization: `Bearer ${other.testKey}` }
  expect((await browser.call('GET', '/organisations/current', undefined, withKey)).body.id).toBe(other.id)
  const bad = await browser.call('GET', '/organisations/current', undefined, { authorization: 'Bearer svc_test_sk_x' })
  expect(bad.status).toBe(401)
})

test('what a person does is in the audit log under their account', async () => {
  const browser = await aBrowser(world, { email, organisationId: org.id })
  const { body: account } = await browser.call('GET', '/account')
  await browser.call('PATCH', '/organisations/current', { name: 'Renamed by a person' })
  const [record] = (await browser.call('GET', '/organisations/current/audit-log?limit=1')).list
  expect(record).toMatchObject({ action: 'organisations.update', actor: { kind: 'person', accountId: account.id } })
})

test('a link is not made for another address than it says', async () => {
  const { deps } = world.server
  const url = await makeSignInLink(deps, deps.db, { email: 'stranger@example.com', baseUrl: world.base })
  expect(sessionCookie(world, await press(world, url))).toBeUndefined()
})

test('accounts that invite somebody from many organisations hide no older invitation of another', async () => {
  const { db } = world.database
  const { accountId } = await db.one(
    z.object({ accountId: z.string() }),
    sql`select account_id from members where organisation_id = ${(await world.organisation()).id}`,
  )
  const invited = newTypeId('acc', Date.now(), randomBytes(10))
  const invite = (ids: readonly string[], account: string) =>
    db.run(sql`
      with made as (
        insert into organisations (id, name, type, plan, created_at, quota_account_id)
        select id, 'Acme', 'team', 'hobby', now(), ${account} from unnest(${ids}::text[]) as given (id) returning id
      )
      insert into members (organisation_id, account_id, role, is_live, created_at)
      select id, ${invited}, 'viewer', true, now() from made`)
  const ids = (count: number) => Array.from({ length: count }, () => newTypeId('org', Date.now(), randomBytes(10)))
  const [own = ''] = ids(1)
  await invite([own], await accountOf(email))
  await invite(ids(600), accountId)
  const listed = await listInvitationsTo(db, invited as AccountId)
  expect([
    listed.length,
    listed
      .slice(0, 2)
      .map(({ id }) => id)
      .includes(own as OrganisationId),
  ]).toEqual([500, true])
})

async function accountOf(address: string): Promise<string> {
  const Account = z.object({ id: z.string() })
  return (await world.database.db.one(Account, sql`select id from accounts where email = ${address}`)).id
}
