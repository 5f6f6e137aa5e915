import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { aToyServer, endToys } from '../../../test/toy-server.ts'
import { operations } from '../../operations.ts'
import type { Caller } from '../ctx.ts'
import { Problem } from '../errors.ts'
import { limitSettingChanges, settingCostOf } from './setting-changes.ts'

afterAll(endToys)

/** Changes of settings leave rows and audit records that nothing deletes. */

type Changing = Pick<Caller, 'actor' | 'shareOwner' | 'tenant'>

const tenantOf = (environment: 'test' | 'live') => ({ organisationId: 'org_1', environment }) as const
const key = (name: string, shareOwner = 'org_1', environment: 'test' | 'live' = 'live') =>
  ({ actor: { kind: 'api-key', apiKeyId: `key_${name}` }, shareOwner, tenant: tenantOf(environment) }) as Changing
const person = {
  actor: { kind: 'person', accountId: 'acc_1' },
  shareOwner: 'org_1',
  tenant: tenantOf('live'),
} as Changing

/** A limit whose clock the test moves. */
function aLimit() {
  let now = new Date(0)
  const settings = limitSettingChanges({ now: () => now })
  return {
    pass: (ms: number) => (now = new Date(now.getTime() + ms)),
    /** Makes changes, and returns how long the caller waits for one more; 0 if it need not. */
    change(caller: Changing, times = 1, cost = 1): unknown {
      try {
        for (let time = 0; time < times; time += 1) settings.take(caller, cost)
        return 0
      } catch (error) {
        return error instanceof Problem ? error.members.retryAfterSeconds : error
      }
    },
    settings,
  }
}

test('a key makes 2,000 changes at once and then one in two seconds, and others are not affected', () => {
  const { change, pass } = aLimit()
  expect(change(key('a'), 400, 5)).toBe(0)
  expect([change(key('a')), change(key('b')), change(key('c', 'org_2'))]).toEqual([2, 0, 0])
  pass(2_000)
  expect([change(key('a')), change(key('a'))]).toEqual([0, 2])
})

test('the keys of an owner make 5,000 changes at once and then one a second together, and no key stops a person', () => {
  const { change, pass } = aLimit()
  for (const name of ['a', 'b', 'c', 'd', 'e']) expect(change(key(name), 1_000)).toBe(0)
  expect([change(key('f')), change(key('f', 'org_2'))]).toEqual([1, 0])
  expect([change(person, 2_000), change(person)]).toEqual([0, 2])
  pass(1_000)
  expect([change(key('g')), change(key('g'))]).toEqual([0, 1])
})

test('test keys use up no changes of live keys of the same owner, and live keys none of test keys', () => {
  const { change } = aLimit()
  for (const name of ['a', 'b', 'c', 'd', 'e']) expect(change(key(name, 'org_1', 'test'), 1_000)).toBe(0)
  expect([change(key('f', 'org_1', 'test')), change(key('g'), 1_000)]).toEqual([1, 0])
  for (const name of ['h', 'i', 'j', 'k']) change(key(name), 1_000)
  expect([change(key('l')), change(key('m', 'org_2', 'test'))]).toEqual([1, 0])
})

test('a change that was not made, or that one of two limits refused, counts in neither', () => {
  const { change, settings } = aLimit()
  for (let time = 0; time < 3_000; time += 1) settings.take(key('a'), 20)()
  settings.take(key('a'), undefined)()
  expect(change(key('a'), 1_000)).toBe(0)
  for (const name of ['b', 'c', 'd', 'e']) change(key(name), 1_000)
  expect([change(key('f'), 2_000), change(key('f', 'org_2'), 1_000)]).toEqual([1, 0])
})

test('what ends access is never refused by the limit of changes: a leaked key could use it up', () => {
  const ending = ['organisations.members.remove', 'organisations.apiKeys.revoke', 'organisations.apiKeys.revokeIn']
  const found = operations.filter(({ id }) => ending.includes(id))
  expect(found.map(({ id, settingCost }) => [id, settingCost])).toEqual(ending.map((id) => [id, undefined]))
})

test('each operation that changes a record by PATCH or PUT has a cost, unless its record ends or has a limit of its own', () => {
  const changing = operations.filter(
    ({ method, settingCost }) => /^(PATCH|PUT)$/.test(method) && settingCost === undefined,
  )
  expect(changing.map(({ id }) => id)).toEqual([])
  const made = operations.find(({ id }) => id === 'withdrawals.bankAccounts.create')
  expect(made?.settingCost).toBe(2)
})

test.each([
  ['wallets.children.update', 10_000],
  ['wallets.byo.create', 1_000],
  ['withdrawals.bankAccounts.create', 1_000],
  ['webhooks.test', 2_000],
])('one key makes %s at once %d times', (id, times) => {
  const cost = operations.find((one) => one.id === id)?.settingCost
  expect(cost).toBeGreaterThan(0)
  expect(aLimit().change(key('a'), times, cost)).toBe(0)
})

test.each([
  'vaults.extend',
  'vaults.delete',
  'vaults.tokens.create',
  'webhooks.replay',
  'events.resend',
  'events.trigger',
  'test.clock.advance',
])('one key makes %s some 20,000 times at once, and then five times a second', (id) => {
  const cost = operations.find((one) => one.id === id)?.settingCost
  const { change, pass } = aLimit()
  expect(change(key('a'), 19_990, cost)).toBe(0)
  expect(change(key('a'), 20, cost)).toBe(1)
  pass(10_000)
  expect(change(key('a'), 49, cost)).toBe(0)
})

test('a call whose body says that it leaves nothing counts nothing, and every other body counts', async () => {
  const { base } = await aToyServer()
  const keep = async (body: string) => {
    const headers = { authorization: 'Bearer org1 key1', 'content-type': 'application/json' }
    return (await fetch(`${base}/toys/keep`, { method: 'POST', headers, body })).status
  }
  const looking = JSON.stringify({ name: 'a', isKept: false })
  expect([await keep(looking), await keep(looking)]).toEqual([200, 200])
  expect([await keep('{"name":'), await keep('{"isKept":false}')]).toEqual([400, 422])
  expect(await keep(JSON.stringify({ name: 'a' }))).toBe(200)
  expect(await keep(JSON.stringify({ name: 'a' }))).toBe(429)
  for (const body of ['{"name":', '{"isKept":false}', JSON.stringify({ name: 'a'.repeat(1_024), isKept: false })])
    expect(await keep(body)).toBe(429)
  expect(await keep(looking)).toBe(200)
})

test('a ticket counts as no change, a token does', () => {
  const made = operations.find(({ id }) => id === 'vaults.tokens.create')
  const costs = ['{"kind":"ticket"}', '{"kind":"token"}', '{}', '', '{"kind":"ticket","kind":"token"}']
  expect(costs.map((body) => settingCostOf(made ?? {}, Buffer.from(body)))).toEqual([undefined, 0.1, 0.1, 0.1, 0.1])
})

/** Operations that leave an audit record and count as no change, by the reason. */
const uncounted: Readonly<Record<string, readonly string[]>> = {
  'it ends access': [
    'organisations.apiKeys.revoke',
    'organisations.delete',
    'organisations.members.remove',
    'vaults.tokens.revoke',
    'wallets.byo.delete',
    'webhooks.delete',
    'withdrawals.bankAccounts.delete',
  ],
  'it moves money': [
    'payments.refund',
    'transfers.create',
    'wallets.legacy.withdraw',
    'wallets.pay',
    'withdrawals.create',
  ],
  'an invitation, which counts, comes before it': ['account.invitations.accept', 'account.invitations.decline'],
  'a person ends what a request began, and 20 wait at most': ['approvals.approve', 'approvals.refuse'],
  'a plan or a cost of its own limits it': [
    'events.listener',
    'organisations.create',
    'wallets.children.create',
    'wallets.legacy.create',
  ],
}

test('each operation that the source records in the audit log has a cost, except the listed ones', () => {
  const source = path.resolve(import.meta.dirname, '../..')
  const texts = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => readFileSync(path.join(source, name), 'utf8'))
  const recorded = new Set(texts.flatMap((text) => [...text.matchAll(/(?<!\bid: )'([\w.]+)'/g)].map(([, id]) => id)))
  const found = operations.filter(({ id, settingCost }) => recorded.has(id) && settingCost === undefined)
  expect(operations.filter(({ id }) => recorded.has(id)).length).toBeGreaterThan(40)
  expect(found.map(({ id }) => id).sort()).toEqual(Object.values(uncounted).flat().sort())
})
