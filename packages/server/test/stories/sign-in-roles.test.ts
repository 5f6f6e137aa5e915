import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../../src/operations.ts'
import type { Needs } from '../../src/platform/access.ts'
import { sql } from '../../src/platform/db/db.ts'
import type { Operation } from '../../src/platform/operation.ts'
import { roles } from '../../src/platform/roles.ts'
import { aBrowser, type Browser, invite, ownerOf } from '../people.ts'
import { asSent, sendRaw } from '../raw-requests.ts'
import { makeResources, type Resources } from '../resources.ts'
import { samplesOf } from '../samples.ts'
import { aWorld, type Org, type World } from '../world.ts'

let world: World
let org: Org
let ids: Resources
const browsers = new Map<string, Browser>()

beforeAll(async () => {
  world = await aWorld({ config: { testFaucetKey: `0x${'11'.repeat(32)}` } })
  org = await world.organisation()
  ids = await makeResources(world, org)
  const owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  browsers.set('owner', owner)
  for (const role of ['admin', 'member', 'viewer'])
    browsers.set(role, await invite(world, { owner, organisationId: org.id, email: `${role}@example.com`, role }))
})
afterAll(() => world?.stop())

const callers = [...roles, 'api-key'] as const
type Caller = (typeof callers)[number]

/**
 * The roles of docs/organisations-and-keys.md: a member works with resources; an admin also with keys, members, webhooks and policies; an owner
 * with everything. Written out here, so that a change of `authorize` alone fails.
 */
const allowed: Readonly<Record<Needs['role'], readonly Caller[]>> = {
  person: ['owner', 'admin', 'member', 'viewer', 'api-key'],
  viewer: ['owner', 'admin', 'member', 'viewer', 'api-key'],
  member: ['owner', 'admin', 'member', 'api-key'],
  admin: ['owner', 'admin', 'api-key'],
  owner: ['owner', 'api-key'],
}

/** Those that take away what others need come last, and the deletion of the organisation after all. */
const inOrder = [...operations].sort((left, right) => rank(left) - rank(right))
function rank({ id, method }: Operation): number {
  return Number(method === 'DELETE') + Number(id === 'organisations.delete')
}

async function callAs(caller: Caller, operation: Operation): Promise<{ status: number; code: string }> {
  const sample = samplesOf(ids)[operation.id]?.() ?? {}
  const sent = asSent(operation, org.testKey, sample)
  const { authorization: _, ...headers } = sent.headers ?? {}
  const cookie = browsers.get(caller)?.cookie ?? ''
  const asPerson = {
    ...headers,
    cookie,
    origin: 'http://dashboard.test',
    'x-service-organisation': org.id,
    'x-service-environment': 'test',
  }
  const response = await sendRaw(world.base, operation, caller === 'api-key' ? sent : { ...sent, headers: asPerson })
  return { status: response.status, code: /\/problems\/([\w-]+)"/.exec(response.text)?.[1] ?? '' }
}

test('every operation says what it needs, and what only reads is open to viewers', () => {
  for (const { id, method, needs } of operations) {
    expect(needs, id).toBeDefined()
    if (method === 'GET')
      expect([id, ['viewer', 'person'].includes(needs.role), needs.scope]).toEqual([id, true, 'read'])
    else expect([id, needs.scope]).not.toEqual([id, 'read'])
  }
})

/** The operations that need an admin, by docs/organisations-and-keys.md. */
const ofAdmins = [
  'approvals.approve',
  'approvals.refuse',
  'organisations.apiKeys.create',
  'organisations.apiKeys.createIn',
  'organisations.apiKeys.revoke',
  'organisations.apiKeys.revokeIn',
  'organisations.members.add',
  'organisations.members.remove',
  'organisations.members.update',
  'organisations.update',
  'test.clock.advance',
  'wallets.master.policy.set',
  'webhooks.create',
  'webhooks.delete',
  'webhooks.rotateSecret',
  'webhooks.update',
]

const ofOwners = ['billing.rebuildCache', 'organisations.delete']

/** A person needs no organisation for these. */
const ofPersons = [
  'account.get',
  'account.invitations.accept',
  'account.invitations.decline',
  'account.sessions.end',
  'account.sessions.list',
  'organisations.create',
]

test('the owner alone deletes the organisation, admins alone change keys, members, webhooks and policies; members change all else, viewers nothing', () => {
  const roleOf = ({ id, method }: Operation): Needs['role'] => {
    if (ofPersons.includes(id)) return 'person'
    if (ofOwners.includes(id)) return 'owner'
    if (ofAdmins.includes(id)) return 'admin'
    return method === 'GET' ? 'viewer' : 'member'
  }
  expect(operations.map(({ id, needs }) => [id, needs.role])).toEqual(operations.map((one) => [one.id, roleOf(one)]))
})

test('every operation is refused to each role that is too low and to no other, and never to a key', async () => {
  let count = 0
  for (const operation of inOrder)
    for (const caller of [...callers].reverse()) {
      const { status, code } = await callAs(caller, operation)
      const isAllowed = allowed[operation.needs.role].includes(caller)
      // A key is refused for a role where it would change an owner or an admin, which is a rule of its own.
      if (caller !== 'api-key')
        expect([operation.id, caller, code === 'role-not-allowed']).toEqual([operation.id, caller, !isAllowed])
      expect([operation.id, caller, status >= 500 && status !== 503]).toEqual([operation.id, caller, false])
      expect([operation.id, caller, status]).not.toEqual([operation.id, caller, 401])
      count++
    }
  expect(count).toBe(operations.length * callers.length)
  console.log(`${operations.length} operations × ${callers.length} callers: ${count} calls`)
})

test('what moves money out, and deleting the organisation, needs a sign-in within ten minutes, of a person and not of a key', async () => {
  const fresh = operations.filter(({ needs }) => needs.fresh === true)
  expect(fresh.map(({ id }) => id).sort()).toEqual([
    'approvals.approve',
    'organisations.delete',
    'payments.refund',
    'transfers.create',
    'wallets.legacy.withdraw',
    'wallets.pay',
    'withdrawals.create',
  ])
  await world.database.db.run(sql`update auth."session" set "createdAt" = now() - interval '10 minutes'`)
  for (const operation of fresh) {
    expect(await callAs('owner', operation)).toEqual({ status: 403, code: 'fresh-authentication-required' })
    expect((await callAs('viewer', operation)).code).toBe('role-not-allowed')
    expect((await callAs('api-key', operation)).code).not.toBe('fresh-authentication-required')
  }
})
