import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aBrowser } from '../../../test/people.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'

let world: World
let org: Org

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation('pro')
})
afterAll(() => world.stop())

function firstKey(response: Answer): Record<string, unknown> {
  return z.tuple([z.record(z.string(), z.unknown())]).parse(response.body.apiKeys)[0]
}

test('a created organisation is on the hobby plan and has one test key that works', async () => {
  const made = await world.call(org.testKey, 'POST', '/organisations', { name: 'Second', type: 'team' })
  expect(made.status).toBe(201)
  expect(made.body).toMatchObject({ name: 'Second', type: 'team', plan: 'hobby' })
  expect(Object.keys(made.body).sort()).toEqual([
    'apiKeys',
    'createdAt',
    'id',
    'name',
    'plan',
    'suspendedAt',
    'suspensionReason',
    'type',
  ])
  const key = firstKey(made)
  expect(key.key).toMatch(/^svc_test_sk_[0-9A-Za-z]{49}$/)
  expect(key).toMatchObject({ id: expect.stringMatching(/^key_/), environment: 'test' })
  const current = await world.call(String(key.key), 'GET', '/organisations/current')
  const { apiKeys: _, ...organisation } = made.body
  expect(current.body).toEqual(organisation)
})

test('the account behind the calling key becomes the owner of the organisation that the key creates', async () => {
  const made = await world.call(org.testKey, 'POST', '/organisations', { name: 'Mine' })
  expect(made.body.type).toBe('personal')
  const caller = await world.call(org.testKey, 'GET', '/account')
  const members = await world.call(String(firstKey(made).key), 'GET', '/organisations/current/members')
  expect(members.list).toHaveLength(1)
  expect(members.list[0]).toMatchObject({ accountId: caller.body.id, role: 'owner', status: 'active' })
  const mine = {
    id: made.body.id,
    name: 'Mine',
    type: 'personal',
    role: 'owner',
    suspendedAt: null,
    suspensionReason: null,
  }
  // The key shows its own organisation; the person sees both.
  expect(caller.body.organisations).toEqual([expect.objectContaining({ id: org.id })])
  const ofMade = await world.call(String(firstKey(made).key), 'GET', '/account')
  expect(ofMade.body).toMatchObject({ id: caller.body.id, organisations: [mine] })
  const person = await aBrowser(world, { email: String(caller.body.email) })
  const { organisations } = (await person.call('GET', '/account')).body
  expect(organisations).toEqual(expect.arrayContaining([mine, expect.objectContaining({ id: org.id })]))
})

test('PATCH renames the organisation and can change nothing else', async () => {
  const renamed = await world.call(org.testKey, 'PATCH', '/organisations/current', { name: 'Acme & Söhne' })
  expect(renamed.status).toBe(200)
  expect(renamed.body).toMatchObject({ id: org.id, name: 'Acme & Söhne', plan: 'pro' })
  const plan = await world.call(org.testKey, 'PATCH', '/organisations/current', { name: 'x', plan: 'enterprise' })
  expect(plan.status).toBe(422)
  expect(plan.body.errors).toEqual([{ path: '/plan', message: expect.any(String) }])
  expect((await world.call(org.liveKey, 'GET', '/organisations/current')).body.name).toBe('Acme & Söhne')
})

test.each([
  [{}, '/name'],
  [{ name: '' }, '/name'],
  [{ name: '   ' }, '/name'],
  [{ name: 'a\u0000b' }, '/name'],
  [{ name: 'x'.repeat(201) }, '/name'],
  [{ name: 'x', type: 'club' }, '/type'],
  [{ name: 7 }, '/name'],
])('an organisation of %j is refused and the error names the field', async (body, path) => {
  const response = await world.call(org.testKey, 'POST', '/organisations', body)
  expect([response.status, codeOf(response)]).toEqual([422, 'validation-error'])
  expect(response.body.errors).toEqual(expect.arrayContaining([expect.objectContaining({ path })]))
})

test('repeating a creation with its Idempotency-Key creates one organisation and returns the same key, only to the calling key', async () => {
  const headers = { 'idempotency-key': 'once' }
  const first = await world.call(org.testKey, 'POST', '/organisations', { name: 'Once' }, headers)
  const again = await world.call(org.testKey, 'POST', '/organisations', { name: 'Once' }, headers)
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  expect(again.body).toEqual(first.body)
  const other = await world.call(org.testKey, 'POST', '/organisations/current/api-keys', {
    name: 'b',
    environment: 'test',
  })
  const stolen = await world.call(String(other.body.key), 'POST', '/organisations', { name: 'Once' }, headers)
  expect([stolen.status, codeOf(stolen)]).toEqual([422, 'idempotency-key-reused'])
  const rows = await world.database.db.many(
    z.object({ sealedBody: z.instanceof(Uint8Array) }),
    sql`select sealed_body from idempotency_keys where key = 'once'`,
  )
  expect(Buffer.from(rows[0]?.sealedBody ?? []).toString('latin1')).not.toContain('svc_test_sk_')
})

test('the account describes the creator of the key: id, e-mail address, name and organisations', async () => {
  const account = await world.call(org.liveKey, 'GET', '/account')
  expect(account.status).toBe(200)
  expect(Object.keys(account.body).sort()).toEqual(['email', 'id', 'invitations', 'name', 'organisations'])
  expect(account.body).toMatchObject({
    id: expect.stringMatching(/^acc_/),
    email: expect.stringContaining('@'),
    name: null,
  })
  expect(account.body.organisations).toContainEqual(expect.objectContaining({ id: org.id, role: 'owner' }))
})
