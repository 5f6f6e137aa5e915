import { afterAll, beforeAll, expect, test } from 'vitest'
import { runAdmin } from '../../src/admin/run.ts'
import { operations } from '../../src/operations.ts'
import type { Operation } from '../../src/platform/operation.ts'
import { aBrowser, type Browser, ownerOf } from '../people.ts'
import { asSent, sendRaw, sendSample } from '../raw-requests.ts'
import { makeResources, type Resources } from '../resources.ts'
import { samplesOf } from '../samples.ts'
import { aWorld, type Org, type World } from '../world.ts'

let world: World
let org: Org
let ids: Resources
let owner: Browser

beforeAll(async () => {
  world = await aWorld({ config: { testFaucetKey: `0x${'11'.repeat(32)}` } })
  org = await world.organisation()
  ids = await makeResources(world, org)
  owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
})
afterAll(() => world?.stop())

const reason = 'The identity check of the owner failed.'

function admin(...args: string[]) {
  return runAdmin(['admin', ...args], { DATABASE_URL: world.database.url })
}
const suspend = (organisation = org.id, why = reason) =>
  admin('suspend-organisation', '--organisation', organisation, '--reason', why)
const resume = (organisation = org.id) => admin('resume-organisation', '--organisation', organisation)

/** Decision 0179: what ends a payment or a movement from before, and what takes access away. */
const goesOn = [
  'payments.settle',
  'payments.release',
  'payments.delivered',
  'payments.redeem',
  'payments.redeemed',
  'payments.undelivered',
  'sessions.create',
  'sessions.verify',
  'approvals.refuse',
  'approvals.cancel',
  'organisations.apiKeys.revoke',
  'organisations.apiKeys.revokeIn',
  'organisations.members.remove',
  'vaults.tokens.revoke',
  'vaults.tokens.revokeAll',
  'events.listener',
]

/** Those that take away what others need come last, and first of them what is refused. */
const inOrder = [...operations].sort((left, right) => rank(left) - rank(right))
function rank({ id, method }: Operation): number {
  return (goesOn.includes(id) ? 2 : 0) + (method === 'DELETE' ? 1 : 0)
}

const isRefused = ({ status, text }: { status: number; text: string }) =>
  status === 403 && text.includes('/problems/organisation-suspended')

async function sendAsOwner(operation: Operation) {
  const sent = asSent(operation, org.testKey, samplesOf(ids)[operation.id]?.() ?? {})
  const { authorization: _, ...headers } = sent.headers ?? {}
  const own = { cookie: owner.cookie, origin: 'http://dashboard.test', 'x-service-organisation': org.id }
  return sendRaw(world.base, operation, { ...sent, headers: { ...headers, ...own } })
}

test('a suspended organisation reads, ends what it began and changes nothing else, by key and by person', async () => {
  const output = await suspend()
  expect([output.exitCode, output.stdout.split('\n')[0]]).toEqual([0, `${org.id}  Acme is suspended: ${reason}`])
  for (const operation of inOrder) {
    const { id, method, needs } = operation
    const isAllowed = method === 'GET' || goesOn.includes(id)
    // What concerns the account alone is no matter of the organisation, and it makes no other organisation.
    const isOwn = needs.role === 'person' && id !== 'organisations.create'
    expect([id, 'owner', isRefused(await sendAsOwner(operation))]).toEqual([id, 'owner', !isAllowed && !isOwn])
    const byKey = await sendSample(world.base, operation, org.testKey, samplesOf(ids)[id]?.() ?? {})
    expect([id, 'key', isRefused(byKey)]).toEqual([id, 'key', !isAllowed])
    expect([id, byKey.status]).not.toEqual([id, 401])
  }
})

test('the organisation says since when and why it is suspended, and works again as soon as it is resumed', async () => {
  const other = await world.organisation()
  const process = await world.another()
  const makeVault = async () => {
    const response = await fetch(`${process.base}/vaults`, {
      method: 'POST',
      headers: { authorization: `Bearer ${other.liveKey}`, 'content-type': 'application/json' },
      body: '{}',
    })
    return response.status
  }
  const current = async () => (await world.call(other.liveKey, 'GET', '/organisations/current')).body
  expect([await makeVault(), await current()]).toMatchObject([201, { suspendedAt: null, suspensionReason: null }])
  await suspend(other.id)
  expect(await makeVault()).toBe(403)
  const since = (await current()).suspendedAt
  expect(await current()).toMatchObject({ suspendedAt: expect.stringMatching(/^20/), suspensionReason: reason })
  await suspend(other.id, 'Another reason.')
  expect(await current()).toMatchObject({ suspendedAt: since, suspensionReason: 'Another reason.' })
  const { stdout } = await admin('list-organisations', '--find', other.id)
  const { organisations } = (await world.call(other.liveKey, 'GET', '/account')).body
  expect(organisations).toMatchObject([{ id: other.id, suspendedAt: since, suspensionReason: 'Another reason.' }])
  expect(stdout).toMatch(/ {2}suspended 20\d\d-\d\d-\d\d: Another reason\.\n$/)
  expect((await resume(other.id)).stdout).toBe(`${other.id}  Acme is active\n`)
  expect((await resume(other.id)).exitCode).toBe(0)
  expect([await makeVault(), await current()]).toMatchObject([201, { suspendedAt: null, suspensionReason: null }])
  const { list } = await world.call(other.liveKey, 'GET', '/organisations/current/audit-log')
  expect(list.map(({ action, actor, details }) => [action, actor, details]).slice(0, 3)).toEqual([
    ['organisations.resume', { kind: 'operator' }, { suspendedAt: since }],
    ['organisations.suspend', { kind: 'operator' }, { reason: 'Another reason.' }],
    ['organisations.suspend', { kind: 'operator' }, { reason }],
  ])
})

test('the public registry and discovery leave out what a suspended organisation sells', async () => {
  const [seller, buyer] = [await world.organisation(), await world.organisation()]
  const route = { host: 'api.example.com', method: 'GET', routePattern: '/rates', amount: '0.01', protocol: 'x402' }
  await world.call(seller.testKey, 'POST', '/registry/snapshots', route)
  const [reported] = (await world.call(seller.testKey, 'GET', '/registry/routes')).list
  const path = `/registry/routes/${reported?.id}`
  expect((await world.call(seller.testKey, 'PATCH', path, { isPublic: true })).status).toBe(200)
  const found = async () => {
    const { body } = await world.call(buyer.testKey, 'GET', '/facilitator/discovery/resources')
    return JSON.stringify(body).includes('api.example.com')
  }
  expect(await found()).toBe(true)
  await suspend(seller.id)
  expect(await found()).toBe(false)
  expect((await world.call(seller.testKey, 'GET', path)).status).toBe(200)
  await resume(seller.id)
  expect(await found()).toBe(true)
})

test.each([
  [['suspend-organisation', '--organisation', 'org_01h455vb4pex5vsknk084sn02q', '--reason', 'x'], 1, 'No such'],
  [['resume-organisation', '--organisation', 'org_01h455vb4pex5vsknk084sn02q'], 1, 'No such organisation.'],
  [['suspend-organisation', '--organisation', 'org_01h455vb4pex5vsknk084sn02q'], 2, '--reason'],
])('%j is refused with a message', async (args, code, message) => {
  const { exitCode, stdout, stderr } = await admin(...args)
  expect([exitCode, stdout]).toEqual([code, ''])
  expect(stderr).toContain(message)
})
