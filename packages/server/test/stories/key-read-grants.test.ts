import { afterAll, beforeAll, expect, test } from 'vitest'
import { instantOf } from '../../src/platform/clock.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type Scope, scopes } from '../../src/platform/roles.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

let world: World
let org: Org
let vaultId: string

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  vaultId = String((await world.call(org.testKey, 'POST', '/vaults', {})).body.id)
})
afterAll(() => world?.stop())

async function aKey(limits: object): Promise<string> {
  const path = '/organisations/current/api-keys'
  const made = await world.call(org.testKey, 'POST', path, { name: 'limited', environment: 'test', ...limits })
  expect(made.status).toBe(201)
  return String(made.body.key)
}

/** Every pair of scopes, and every scope by itself. */
const limitedTo: readonly (readonly Scope[])[] = scopes.flatMap((one, index) => [
  [one],
  ...scopes.slice(index + 1).map((other) => [one, other]),
])

/** The credentials that a key can create for other readers, with the scope that this requires in addition to `read`. */
const gifts: readonly {
  readonly name: string
  readonly scope: Scope
  make(key: string): Promise<Answer>
}[] = [
  { name: 'a vault token', scope: 'vaults', make: (key) => world.call(key, 'POST', `/vaults/${vaultId}/tokens`, {}) },
  {
    name: 'a ticket',
    scope: 'vaults',
    make: (key) => world.call(key, 'POST', `/vaults/${vaultId}/tokens`, { kind: 'ticket' }),
  },
  {
    name: 'a webhook',
    scope: 'webhooks',
    make: async (key) => {
      const made = await world.call(key, 'POST', '/webhooks', { url: 'https://receiver.example/', events: ['*'] })
      if (made.status === 201) await world.call(org.testKey, 'DELETE', `/webhooks/${made.body.id}`)
      return made
    },
  },
]

test('a key makes nothing that lets somebody else read what the key may not read', async () => {
  for (const allowed of limitedTo) {
    const key = await aKey({ scopes: allowed })
    const vault = await world.call(key, 'GET', `/vaults/${vaultId}`)
    expect([allowed, vault.status]).toEqual([allowed, allowed.includes('read') ? 200 : 403])
    for (const { name, scope, make } of gifts) {
      const made = await make(key)
      const missing = [scope, 'read' as const].filter((needed) => !allowed.includes(needed))
      expect([allowed, name, made.status]).toEqual([allowed, name, missing.length === 0 ? 201 : 403])
      if (missing[0] !== undefined) expect(made.body).toMatchObject({ requiredScope: missing[0] })
    }
    const ownId = await world.database.db.run(
      sql`update api_keys set revoked_at = now() where scopes is not null and revoked_at is null`,
    )
    expect(ownId).toBe(1)
  }
})

test('a key leads the events of a webhook to another address only if it may read them', async () => {
  const path = `/webhooks/${(await world.call(org.testKey, 'POST', '/webhooks', { url: 'https://receiver.example/', events: ['*'] })).body.id}`
  const [narrow, reader] = await Promise.all([aKey({ scopes: ['webhooks'] }), aKey({ scopes: ['webhooks', 'read'] })])
  const change = { url: 'https://elsewhere.example/' }
  const refused = await world.call(narrow, 'PATCH', path, change)
  expect([refused.status, codeOf(refused), refused.body.requiredScope]).toEqual([403, 'scope-not-allowed', 'read'])
  expect((await world.call(reader, 'PATCH', path, change)).status).toBe(200)
})

test('a key that ends makes nobody a member, who would stay', async () => {
  const key = await aKey({ expiresAt: instantOf(Date.now() + 3_600_000).toISOString() })
  for (const role of ['viewer', 'member']) {
    const invited = await world.call(key, 'POST', '/organisations/current/members', {
      email: `${role}@x.example`,
      role,
    })
    expect([invited.status, codeOf(invited)]).toEqual([403, 'role-not-allowed'])
  }
  const email = 'stays@x.example'
  const invited = await world.call(org.testKey, 'POST', '/organisations/current/members', { email, role: 'viewer' })
  const raised = await world.call(key, 'PATCH', `/organisations/current/members/${invited.body.accountId}`, {
    role: 'member',
  })
  expect([raised.status, codeOf(raised)]).toEqual([403, 'role-not-allowed'])
})
