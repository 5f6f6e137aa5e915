import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, codeOf, type Org, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'

let world: World
let org: Org
let other: Org

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  other = await world.organisation()
})
afterAll(() => world.stop())

const path = '/organisations/current/api-keys'

async function aKey(creator = org.testKey, environment = 'test'): Promise<{ id: string; key: string }> {
  const made = await world.call(creator, 'POST', path, { name: 'CI', environment })
  expect(made.status).toBe(201)
  return { id: String(made.body.id), key: String(made.body.key) }
}

test('a new key is shown once, works at once, and is stored as its hash alone', async () => {
  const made = await world.call(org.testKey, 'POST', path, { name: 'CI', environment: 'test' })
  expect(made.status).toBe(201)
  expect(Object.keys(made.body).sort()).toEqual([
    'createdAt',
    'environment',
    'expiresAt',
    'id',
    'key',
    'madeBy',
    'name',
    'scopes',
  ])
  const key = String(made.body.key)
  expect((await world.call(key, 'GET', '/organisations/current')).body.id).toBe(org.id)
  const row = await world.database.db.one(
    z.object({ keyHash: z.instanceof(Uint8Array), everything: z.string() }),
    sql`select key_hash, api_keys::text as everything from api_keys where id = ${made.body.id}`,
  )
  expect(Buffer.from(row.keyHash)).toEqual(createHash('sha256').update(key).digest())
  expect(row.everything).not.toContain(key.slice(12, 40))
})

test('keys are listed newest first and never with their value', async () => {
  const fresh = await world.organisation()
  const { id, key } = await aKey(fresh.testKey)
  const listed = await world.call(fresh.testKey, 'GET', path)
  const fields = [
    'createdAt',
    'environment',
    'expiresAt',
    'id',
    'last4',
    'lastUsedAt',
    'madeBy',
    'name',
    'revokedAt',
    'scopes',
  ]
  expect(listed.list.map((record) => Object.keys(record).sort())).toEqual(listed.list.map(() => fields))
  expect(listed.list[0]).toMatchObject({
    id,
    name: 'CI',
    environment: 'test',
    last4: key.slice(-4),
    lastUsedAt: null,
    revokedAt: null,
  })
  expect(JSON.stringify(listed.list)).not.toContain('svc_')
})

test('a key creates, sees and revokes keys of its environment only', async () => {
  const refused = await world.call(org.testKey, 'POST', path, { name: 'x', environment: 'live' })
  expect([refused.status, codeOf(refused)]).toEqual([403, 'environment-not-allowed'])
  const live = await aKey(org.liveKey, 'live')
  const test = await aKey(org.testKey, 'test')
  expect(live.key).toMatch(/^svc_live_sk_/)
  const environmentsSeen = async (key: string) =>
    new Set((await world.call(key, 'GET', path)).list.map((record) => record.environment))
  expect(await environmentsSeen(org.testKey)).toEqual(new Set(['test']))
  expect(await environmentsSeen(org.liveKey)).toEqual(new Set(['live']))
  for (const [key, other] of [
    [org.testKey, live.id],
    [org.liveKey, test.id],
  ] as const) {
    const hidden = await world.call(key, 'DELETE', `${path}/${other}`)
    expect([hidden.status, codeOf(hidden)]).toEqual([404, 'api-key-not-found'])
  }
  for (const [key, own] of [
    [org.testKey, test.id],
    [org.liveKey, live.id],
  ] as const)
    expect((await world.call(key, 'DELETE', `${path}/${own}`)).status).toBe(204)
})

test('the form with the organisation in its path makes a key of the caller’s environment and answers no environment', async () => {
  for (const [creator, prefix] of [
    [org.testKey, 'svc_test_sk_'],
    [org.liveKey, 'svc_live_sk_'],
  ] as const) {
    const made = await world.call(creator, 'POST', `/organisations/${org.id}/api-keys`, { name: 'in path' })
    expect(made.status).toBe(201)
    expect(Object.keys(made.body).sort()).toEqual(['createdAt', 'id', 'key', 'name'])
    expect(String(made.body.key).startsWith(prefix)).toBe(true)
    const listed = await world.call(creator, 'GET', `/organisations/${org.id}/api-keys`)
    expect(listed.list[0]).toMatchObject({ id: made.body.id })
    expect(listed.list).toEqual((await world.call(creator, 'GET', path)).list)
    const revoked = () => world.call(creator, 'DELETE', `/organisations/${org.id}/api-keys/${made.body.id}`)
    expect([(await revoked()).status, (await revoked()).status]).toEqual([204, 204])
    expect((await world.call(String(made.body.key), 'GET', '/account')).status).toBe(401)
  }
  const withEnvironment = { name: 'x', environment: 'test' }
  expect((await world.call(org.testKey, 'POST', `/organisations/${org.id}/api-keys`, withEnvironment)).status).toBe(422)
})

test('another organisation in the path is 401, whether it exists or not', async () => {
  const { id } = await aKey(other.testKey)
  for (const orgId of [other.id, 'org_01h455vb4pex5vsknk084sn02q', 'nobody']) {
    const answers = [
      await world.call(org.testKey, 'POST', `/organisations/${orgId}/api-keys`, { name: 'x' }),
      await world.call(org.testKey, 'GET', `/organisations/${orgId}/api-keys`),
      await world.call(org.testKey, 'DELETE', `/organisations/${orgId}/api-keys/${id}`),
    ]
    for (const response of answers) {
      expect([response.status, codeOf(response)]).toEqual([401, 'unauthorized'])
      expect(response.body.detail).toMatch(/^API key is invalid or missing.*wrong organisation/)
    }
  }
})

test('a key of another organisation is the same 404 as one that never existed', async () => {
  const { id } = await aKey(other.testKey)
  const foreign = await world.call(org.testKey, 'DELETE', `${path}/${id}`)
  const missing = await world.call(org.testKey, 'DELETE', `${path}/key_01h455vb4pex5vsknk084sn02q`)
  const impossible = await world.call(org.testKey, 'DELETE', `${path}/nothing`)
  const shownOf = ({ status, body: { requestId: _, ...record } }: typeof foreign) => ({ status, record })
  expect(shownOf(foreign)).toEqual(shownOf(missing))
  expect(shownOf(impossible)).toEqual(shownOf(missing))
  expect(codeOf(missing)).toBe('api-key-not-found')
})

test('a revoked key fails at the next request, on every process, and is listed as revoked', async () => {
  const second = await world.another()
  const { id, key } = await aKey()
  const ask = (base: string) => fetch(`${base}/organisations/current`, { headers: { authorization: `Bearer ${key}` } })
  expect([(await ask(world.base)).status, (await ask(second.base)).status]).toEqual([200, 200])
  expect((await world.call(org.testKey, 'DELETE', `${path}/${id}`)).status).toBe(204)
  expect([(await ask(world.base)).status, (await ask(second.base)).status]).toEqual([401, 401])
  const record = (await world.call(org.testKey, 'GET', path)).list.find((listed) => listed.id === id)
  expect(record?.revokedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect((await world.call(org.testKey, 'DELETE', `${path}/${id}`)).status).toBe(204)
  const again = (await world.call(org.testKey, 'GET', path)).list.find((listed) => listed.id === id)
  expect(again?.revokedAt).toBe(record?.revokedAt)
})

test('no request that begins after the response to the revocation succeeds, however many are in flight', async () => {
  const { id, key } = await aKey()
  const under = Array.from({ length: 40 }, () => world.call(key, 'GET', '/organisations/current'))
  await world.call(org.testKey, 'DELETE', `${path}/${id}`)
  const after = await Promise.all(Array.from({ length: 40 }, () => world.call(key, 'GET', '/organisations/current')))
  expect(new Set(after.map((response) => response.status))).toEqual(new Set([401]))
  await Promise.all(under)
})

test('a key that was created by a key belongs to the same account', async () => {
  const { key } = await aKey()
  const account = await world.call(org.testKey, 'GET', '/account')
  expect((await world.call(key, 'GET', '/account')).body).toEqual(account.body)
})
