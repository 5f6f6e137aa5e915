import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aBrowser, ownerOf } from '../../../test/people.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../../../test/world.ts'
import { instantOf } from '../../platform/clock.ts'
import { sql } from '../../platform/db/db.ts'
import type { ApiKeyId } from '../../platform/ids.ts'

let world: World
let org: Org

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
})
afterAll(() => world?.stop())

const path = '/organisations/current/api-keys'
const hourMs = 3_600_000
const inMs = (ms: number) => instantOf(Date.now() + ms).toISOString()

interface Made {
  readonly id: string
  readonly key: string
}

function make(by: string, more: object = {}): Promise<Answer> {
  return world.call(by, 'POST', path, { name: 'CI', environment: 'test', ...more })
}

async function aKey(by = org.testKey, more: object = {}): Promise<Made> {
  const { status, body } = await make(by, more)
  expect([status, body.detail]).toEqual([201, undefined])
  return { id: String(body.id), key: String(body.key) }
}

const works = async ({ key }: Pick<Made, 'key'>) => (await world.call(key, 'GET', '/account')).status === 200

test('a key makes only keys of its own environment, with its own scopes and end or narrower', async () => {
  const scopes = ['read', 'organisation']
  const expiresAt = inMs(2 * hourMs)
  const limited = await make(org.testKey, { scopes, expiresAt })
  expect(limited.body).toMatchObject({ scopes, expiresAt, madeBy: expect.stringMatching(/^key_/) })
  const by = String(limited.body.key)

  for (const wider of [
    { scopes: ['read', 'money'] },
    { scopes: ['organisation', 'payments', 'read'] },
    { scopes, expiresAt: inMs(3 * hourMs) },
  ]) {
    const refused = await make(by, wider)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'key-not-narrower'])
  }
  const same = await make(by)
  expect(same.body).toMatchObject({ scopes, expiresAt, madeBy: limited.body.id })
  const narrower = await make(by, { scopes: ['read'], expiresAt: inMs(hourMs) })
  expect([narrower.status, narrower.body.scopes]).toEqual([201, ['read']])
  const inPath = await world.call(by, 'POST', `/organisations/${org.id}/api-keys`, { name: 'x', scopes: ['money'] })
  expect(codeOf(inPath)).toBe('key-not-narrower')

  for (const [creator, environment] of [
    [org.testKey, 'live'],
    [org.liveKey, 'test'],
  ] as const)
    expect(codeOf(await make(creator, { environment }))).toBe('environment-not-allowed')
})

test('the organisation that a limited key founds has a key with the same limits', async () => {
  const expiresAt = inMs(hourMs)
  const { key } = await aKey(org.testKey, { scopes: ['organisation', 'read'], expiresAt })
  const founded = await world.call(key, 'POST', '/organisations', { name: 'Other' })
  expect(founded.body.apiKeys).toEqual([expect.objectContaining({ scopes: ['read', 'organisation'], expiresAt })])
})

test('a key that has expired is refused like one that never existed, and a time that has passed is no end', async () => {
  for (const expiresAt of [inMs(-1), 'tomorrow', '2026-13-01T00:00:00Z', 5])
    expect((await make(org.testKey, { expiresAt })).status).toBe(422)
  const { id, key } = await aKey(org.testKey, { expiresAt: inMs(hourMs) })
  expect(await works({ key })).toBe(true)
  await world.database.db.run(sql`update api_keys set expires_at = ${instantOf(Date.now() - 1)} where id = ${id}`)
  const expired = await world.call(key, 'GET', '/account')
  expect([expired.status, codeOf(expired)]).toEqual([401, 'unauthorized'])
  expect(await world.server.deps.endedReaders([id as ApiKeyId])).toEqual([id])
})

test('a key that is revoked before the body of its request has arrived changes nothing', async () => {
  const [slow, other] = [await aKey(), await aKey()]
  const sent = '{}'.padStart(20)
  const headers = { authorization: `Bearer ${slow.key}`, 'content-type': 'application/json' }
  const requested = httpRequest(`${world.base}/vaults`, { method: 'POST', headers })
  const responded = once(requested, 'response')
  requested.write(sent.slice(0, 5))
  // The use is written once the key is found, and the server counts the second of the body from there.
  const lastUsed = sql`select from api_keys where id = ${slow.id} and last_used_at is not null`
  await expect.poll(() => world.database.db.run(lastUsed), { timeout: 20_000 }).toBe(1)
  const foundAt = performance.now()
  await expect.poll(() => performance.now() - foundAt, { timeout: 10_000 }).toBeGreaterThan(1_100)
  expect((await world.call(other.key, 'DELETE', `${path}/${slow.id}`)).status).toBe(204)
  requested.end(sent.slice(5))
  const [response] = (await responded) as [IncomingMessage]
  response.resume()
  expect(response.statusCode).toBe(401)
})

test('a revocation lists the keys that the key made, and ends them when requested', async () => {
  const first = await aKey()
  const second = await aKey(first.key)
  const third = await aKey(second.key)
  const other = await aKey()
  expect((await world.call(org.testKey, 'DELETE', `${path}/${second.id}`)).body).toMatchObject({
    ended: [],
    stillValid: [{ id: third.id, madeBy: second.id }],
  })
  expect(await works(third)).toBe(true)

  const listed = await world.call(org.testKey, 'DELETE', `${path}/${first.id}`)
  expect([listed.status, listed.body]).toMatchObject([200, { ended: [], stillValid: [{ id: third.id }] }])
  const fourth = await aKey(third.key)
  const cascaded = await world.call(org.testKey, 'DELETE', `${path}/${first.id}?cascade=true`)
  expect(cascaded.status).toBe(200)
  expect(cascaded.body.stillValid).toEqual([])
  expect(new Set((cascaded.body.ended as { id: string }[]).map(({ id }) => id))).toEqual(new Set([third.id, fourth.id]))
  expect([await works(third), await works(fourth), await works(other)]).toEqual([false, false, true])
  expect((await world.call(org.testKey, 'DELETE', `${path}/${first.id}?cascade=true`)).status).toBe(204)
  const log = await world.call(org.testKey, 'GET', '/organisations/current/audit-log?limit=10')
  const revoked = log.list.filter(({ action }) => action === 'organisations.apiKeys.revoke').map(({ target }) => target)
  expect(revoked).toEqual(expect.arrayContaining([first.id, second.id, third.id, fourth.id]))
  expect((await world.call(org.testKey, 'DELETE', `${path}/${other.id}?cascade=yes`)).status).toBe(422)
})

test('a key that is revoked while it makes keys leaves none behind', async () => {
  const leaked = await aKey()
  const making = Array.from({ length: 10 }, () => make(leaked.key))
  const revoked = await world.call(org.testKey, 'DELETE', `${path}/${leaked.id}?cascade=true`)
  expect([200, 204]).toContain(revoked.status)
  for (const { status, body } of await Promise.all(making))
    if (status === 201) expect(await works({ key: String(body.key) })).toBe(false)
    else expect(status).toBe(401)
})

test('the keys of organisations that a key created end with it, also one that it creates meanwhile', async () => {
  const founder = await world.organisation()
  const leaked = await aKey(founder.testKey)
  const found = (key: string) => world.call(key, 'POST', '/organisations', { name: 'Elsewhere' })
  const firstKeyOf = (response: Answer) =>
    (response.body.apiKeys as { id: string; key: string }[])[0] as { id: string; key: string }
  const second = firstKeyOf(await found(leaked.key))
  const third = firstKeyOf(await found(second.key))
  const remove = `${path}/${leaked.id}`
  const listed = await world.call(founder.testKey, 'DELETE', remove)
  expect(new Set((listed.body.stillValid as { id: string }[]).map(({ id }) => id))).toEqual(
    new Set([second.id, third.id]),
  )
  const late = await aKey(founder.testKey)
  const [founded, revoked] = await Promise.all([
    found(late.key),
    world.call(founder.testKey, 'DELETE', `${path}/${late.id}?cascade=true`),
  ])
  expect([200, 204]).toContain(revoked.status)
  if (founded.status === 201) expect(await works(firstKeyOf(founded))).toBe(false)
  const cascaded = await world.call(founder.testKey, 'DELETE', `${remove}?cascade=true`)
  expect(cascaded.status).toBe(200)
  expect([await works(second), await works(third), await works({ key: founder.testKey })]).toEqual([false, false, true])
})

test('a cascade leaves the keys of an organisation that the key created and that has another owner since', async () => {
  const [agency, client] = [await world.organisation(), await world.organisation()]
  const leaked = await aKey(agency.testKey)
  const founded = await world.call(leaked.key, 'POST', '/organisations', { name: 'Shop' })
  const { id: shopId, apiKeys } = founded.body as { id: string; apiKeys: Made[] }
  const [shopKey = { id: '', key: '' }] = apiKeys
  await world.database.db.run(sql`
    update organisations set quota_account_id = (select quota_account_id from organisations where id = ${client.id}) where id = ${shopId}`)
  expect((await world.call(agency.testKey, 'DELETE', `${path}/${leaked.id}?cascade=true`)).status).toBe(204)
  expect(await works(shopKey)).toBe(true)
})

test('a cascade leaves the keys of an organisation that shares the quotas of its former owner', async () => {
  const agency = await world.organisation()
  const leaked = await aKey(agency.testKey)
  const founded = await world.call(leaked.key, 'POST', '/organisations', { name: 'Shop' })
  const { id: shopId, apiKeys } = founded.body as { id: string; apiKeys: Made[] }
  const [shopKey = { id: '', key: '' }] = apiKeys
  await world.database.db.run(sql`update members set role = 'viewer' where organisation_id = ${shopId}`)
  expect((await world.call(agency.testKey, 'DELETE', `${path}/${leaked.id}?cascade=true`)).status).toBe(204)
  expect(await works(shopKey)).toBe(true)
})

test('an organisation has at most 50 valid keys in each environment, made by keys or by people', async () => {
  const full = await world.organisation()
  const answers = await Promise.all(Array.from({ length: 60 }, () => make(full.testKey)))
  const made = answers.filter(({ status }) => status === 201)
  expect(made).toHaveLength(49)
  for (const refused of answers.filter(({ status }) => status !== 201))
    expect([refused.status, codeOf(refused)]).toEqual([409, 'api-key-limit-reached'])
  const owner = await aBrowser(world, { email: await ownerOf(world, full.id), organisationId: full.id })
  expect(codeOf(await owner.call('POST', path, { name: 'x', environment: 'test' }))).toBe('api-key-limit-reached')
  expect((await make(full.liveKey, { environment: 'live' })).status).toBe(201)
  await world.call(full.testKey, 'DELETE', `${path}/${made[0]?.body.id}`)
  expect((await make(full.testKey)).status).toBe(201)
})
