import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../../src/operations.ts'
import { sql } from '../../src/platform/db/db.ts'
import type { Operation } from '../../src/platform/operation.ts'
import { type Scope, scopes } from '../../src/platform/roles.ts'
import { sendSample } from '../raw-requests.ts'
import { makeResources, type Resources } from '../resources.ts'
import { samplesOf } from '../samples.ts'
import { aWorld, type Org, type World } from '../world.ts'

let world: World
let org: Org
let ids: Resources
/** Keys by their scopes: each scope alone, and the combinations that create read access for others. */
const keys = new Map<string, string>()
const allowed: readonly (readonly Scope[])[] = [
  ...scopes.map((scope) => [scope]),
  ['vaults', 'read'],
  ['webhooks', 'read'],
]

beforeAll(async () => {
  world = await aWorld({ config: { testFaucetKey: `0x${'11'.repeat(32)}` } })
  org = await world.organisation()
  ids = await makeResources(world, org)
  for (const limits of allowed) {
    const request = { name: limits.join(), environment: 'test', scopes: limits }
    const made = await world.call(org.testKey, 'POST', '/organisations/current/api-keys', request)
    expect(new Set(made.body.scopes as Scope[])).toEqual(new Set(limits))
    keys.set(limits.join(), String(made.body.key))
  }
})
afterAll(() => world?.stop())

/** The scopes of docs/organisations-and-keys.md. Written out here, so that a change of an operation's `needs` alone fails. */
function scopeOf({ id, method, path }: Operation): Scope {
  if (method === 'GET') return 'read'
  if (
    /^\/payments\/\{id\}\/refund$|^\/approvals\b|^\/wallet(s|-infra)\/(transfer|withdraw|bank-accounts|pay)\b/.test(
      path,
    )
  )
    return 'money'
  if (/^\/(webhooks|events)\b/.test(path)) return 'webhooks'
  if (path.startsWith('/vaults')) return 'vaults'
  if (/^\/(wallets|wallet-infra|test\/deposits)\b/.test(path)) return 'wallets'
  if (/^\/(payments|facilitator|sessions|registry|test\/payments)\b/.test(path)) return 'payments'
  if (/^\/(organisations|account|billing|test\/clock)\b/.test(path)) return 'organisation'
  throw new Error(`no scope for ${id}`)
}

/** Those that take away what others need come last. */
const inOrder = [...operations].sort(
  (left, right) => Number(left.method === 'DELETE') - Number(right.method === 'DELETE'),
)

/** The ways to give others read access (decision 0191): a token, a ticket and a webhook URL. */
const givesRead = ['vaults.tokens.create', 'webhooks.create', 'webhooks.update']

function scopesOf(operation: Operation): readonly Scope[] {
  return givesRead.includes(operation.id) ? [scopeOf(operation), 'read'] : [scopeOf(operation)]
}

test('a key is refused every operation that needs a scope which it has not, and no other', async () => {
  let count = 0
  for (const operation of inOrder) {
    const needed = scopesOf(operation)
    const missingIn = (limits: readonly Scope[]) => needed.find((scope) => !limits.includes(scope))
    // A key that may call it comes last: its call may take away what the operation is about.
    for (const limits of [...allowed].sort((left) => (missingIn(left) === undefined ? 1 : -1))) {
      const sample = samplesOf(ids)[operation.id]?.() ?? {}
      const { status, text } = await sendSample(world.base, operation, keys.get(limits.join()) ?? '', sample)
      const isRefused = status === 403 && text.includes('/problems/scope-not-allowed')
      const missing = missingIn(limits)
      expect([operation.id, limits, isRefused]).toEqual([operation.id, limits, missing !== undefined])
      if (isRefused)
        expect(JSON.parse(text)).toMatchObject({
          requiredScope: missing,
          detail: expect.stringContaining(`scope "${missing}"`),
        })
      expect([operation.id, limits, status]).not.toEqual([operation.id, limits, 401])
      count++
    }
  }
  expect(count).toBe(operations.length * allowed.length)
})

test('each response to a key names its organisation, also a refusal for its scopes; a response to nobody names none', async () => {
  const named = async (key: string) => {
    const headers = key === '' ? {} : { authorization: `Bearer ${key}` }
    const response = await fetch(`${world.base}/organisations/current`, { headers })
    return [response.status, response.headers.get('x-service-organisation')]
  }
  expect(await named(keys.get('read') ?? '')).toEqual([200, org.id])
  expect(await named(keys.get('money') ?? '')).toEqual([403, org.id])
  const other = org.testKey.endsWith('x') ? 'y' : 'x'
  expect(await named(`${org.testKey.slice(0, -1)}${other}`)).toEqual([401, null])
  expect(await named('')).toEqual([401, null])
})

test('each response to a key names the share of its limits, which the free organisations of an account have in common', async () => {
  const others = [await world.organisation('hobby'), await world.organisation('hobby'), await world.organisation('pro')]
  const [first, second, paid] = others
  await world.database.db.run(sql`
    update organisations set quota_account_id = (select quota_account_id from organisations where id = ${first?.id ?? ''})
    where id = any(${[second?.id ?? '', paid?.id ?? '']})`)
  const shareOf = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` }
    return (await fetch(`${world.base}/organisations/current`, { headers })).headers.get('x-service-share')
  }
  const [one, two, other] = await Promise.all(others.map(({ testKey }) => shareOf(testKey)))
  expect(one).toMatch(/^[\w-]{22}$/)
  expect([two, other === one]).toEqual([one, false])
  expect(await shareOf(keys.get('money') ?? '')).toMatch(/^[\w-]{22}$/)
  expect(await shareOf('')).toBeNull()
})

test('a key with two scopes has both, and one without scopes has all', async () => {
  const path = '/organisations/current/api-keys'
  const two = await world.call(org.testKey, 'POST', path, {
    name: 'two',
    environment: 'test',
    scopes: ['vaults', 'read', 'vaults'],
  })
  expect(two.body.scopes).toEqual(['read', 'vaults'])
  const key = String(two.body.key)
  const statuses = async (by: string) => [
    (await world.call(by, 'GET', '/vaults')).status,
    (await world.call(by, 'POST', '/vaults', {})).status,
    (await world.call(by, 'POST', '/webhooks', {})).status,
  ]
  expect(await statuses(key)).toEqual([200, 201, 403])
  expect(await statuses(org.testKey)).toEqual([200, 201, 422])
  for (const wrong of [[], ['all'], ['read', 'admin'], 'read', [null]])
    expect(
      (await world.call(org.testKey, 'POST', path, { name: 'x', environment: 'test', scopes: wrong })).status,
    ).toBe(422)
})
