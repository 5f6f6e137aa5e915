import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../src/operations.ts'
import { formOf, upload } from './files/uploads.ts'
import { aWorld, codeOf, type Org, unreachableMain, type World } from './world.ts'

// What operations take from the rate limits of their caller, about one for each millisecond of CPU.

const costOf = (id: string, body: unknown, query?: unknown): number | undefined =>
  operations.find((one) => one.id === id)?.cost?.(body as never, query as never)

const direct = { fromToken: 'USDC', toToken: 'USDC', toChain: 'base' }

test.each<readonly [id: string, body: unknown, cost: number]>([
  ['payments.challenge', {}, 1],
  ['payments.challenge', { count: 100 }, 13],
  ['wallets.children.create', {}, 1],
  ['wallets.children.create', { count: 1_000 }, 125],
  ['wallets.children.create', { count: 1_000, metadata: { a: 'x'.repeat(16_000) } }, 369],
  ['wallets.pay', { challenge: {} }, 3],
  ['wallets.pay', { url: 'https://api.example.com' }, 10],
  ['wallets.deposits.rescan', {}, 20],
  ['wallets.master.sweep', { token: 'USDC' }, 20],
  ['wallets.master.sweep', { token: 'USDC', childAddressIds: Array(1_000).fill('cad_1') }, 30],
  ['transfers.create', direct, 2],
  ['transfers.quote', direct, 2],
  ['transfers.quote', { ...direct, fromChain: 'ethereum' }, 20],
  ['transfers.quote', { ...direct, toToken: 'EURC' }, 20],
  ['transfers.create', { ...direct, toToken: 'EURC' }, 20],
  ['billing.rebuildCache', {}, 50],
  ['facilitator.resources', undefined, 5],
  ['webhooks.replay', { since: new Date(0), dryRun: false }, 1],
  ['webhooks.replay', { since: new Date(0), dryRun: true }, 10],
  ['vaults.files.add', undefined, 5],
])('%s with %j costs %i requests', (id, body, cost) => {
  expect(costOf(id, body)).toBe(cost)
})

const daysAgo = (days: number): Date => new Date(Date.UTC(2026, 10, 1) - days * 86_400_000)

test.each<readonly [id: string, query: unknown, cost: number | undefined]>([
  ['payments.statistics', { interval: 'hour', from: daysAgo(1.9), to: daysAgo(0) }, 5],
  ['payments.statistics', { interval: 'day', from: daysAgo(30), to: daysAgo(0) }, 20],
  ['payments.statistics', { interval: 'day', from: daysAgo(200), to: daysAgo(0) }, 105],
  ['payments.logs.summary', {}, 20],
  ['account.paymentLogs.summary', {}, 20],
  ['payments.statistics', { interval: 'minute' }, 20],
  ['registry.routes.list', {}, undefined],
  ['registry.routes.list', { host: 'api.example.com' }, 10],
  ['registry.routes.list', { q: 'GET' }, 10],
  ['registry.routes.list', { maxAmount: '0.01' }, 10],
])('%s with the query %j costs %s requests', (id, query, cost) => {
  expect(costOf(id, undefined, query)).toBe(cost)
})

let world: World
let org: Org
beforeAll(async () => {
  const organisationLimit = { perSecond: 1, burst: 160 }
  // It refills too slowly to be seen.
  const keyLimit = { perSecond: 1e-6, burst: 1_000 }
  world = await aWorld({
    rpcUrls: unreachableMain,
    config: { role: 'api', organisationLimit, keyLimit, addressLimit: keyLimit },
  })
  org = await world.organisation()
})
afterAll(() => world?.stop())

const left = (headers: Headers): number => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])

/** How many requests fewer the caller may make after a request than before it, by the limit of its key. */
async function spentBy(path: string, accept = 'application/json'): Promise<number> {
  const before = left((await world.call(org.testKey, 'GET', '/organisations/current')).headers)
  const response = await fetch(`${world.base}${path}`, { headers: { authorization: `Bearer ${org.testKey}`, accept } })
  await response.arrayBuffer()
  expect([response.status, response.headers.get('content-type')?.split(';')[0]]).toEqual([200, accept])
  return before - left(response.headers)
}

test('a page of any list costs as many requests as pages of 50 items, in JSON and in CSV', async () => {
  expect(await spentBy('/payments/logs')).toBe(1)
  expect(await spentBy('/payments/logs?limit=50')).toBe(1)
  expect(await spentBy('/payments/logs?limit=51')).toBe(2)
  expect(await spentBy('/payments/logs?limit=500')).toBe(10)
  expect(await spentBy('/payments/logs?limit=500', 'text/csv')).toBe(10)
  expect(await spentBy('/wallet-infra/transfers?limit=500', 'text/csv')).toBe(10)
  expect(await spentBy('/events?limit=500')).toBe(10)
})

test('the upload of a file costs five requests', async () => {
  const vault = await world.call(org.testKey, 'POST', '/vaults', {})
  const before = left(vault.headers)
  const form = formOf({ filename: 'a.txt', content: 'a' })
  const sent = await upload(world.base, { key: org.testKey, vaultId: String(vault.body.id), body: form })
  expect([sent.status, before - left(sent.headers)]).toEqual([201, 5])
})

test('a thousand child addresses leave an organisation the rest of its limit, and a second thousand waits', async () => {
  const other = await world.organisation()
  const made = await world.call(other.testKey, 'POST', '/wallet-infra/master-wallets', {
    chain: 'base',
    supportedTokens: ['USDC'],
  })
  expect([made.status, codeOf(made)]).toEqual([201, ''])
  const path = `/wallet-infra/master-wallets/${String(made.body.id)}/child-addresses`
  const startedMs = Date.now()
  expect((await world.call(other.testKey, 'POST', path, { count: 1_000 })).status).toBe(201)
  const refused = await world.call(other.testKey, 'POST', path, { count: 1_000 })
  expect([refused.status, codeOf(refused)]).toEqual([429, 'rate-limit-exceeded'])
  // The second thousand needs half of the burst. A part of the wait has passed while the first thousand were made.
  const passedSeconds = (Date.now() - startedMs) / 1_000
  expect(Number(refused.headers.get('retry-after')) + passedSeconds).toBeGreaterThan(40)
  expect((await world.call(other.testKey, 'GET', path)).status).toBe(200)
})

test('a search of the guides costs its address four requests, and a guide one', async () => {
  const leftAfter = async (path: string): Promise<number> => {
    const response = await fetch(`${world.base}${path}`)
    await response.arrayBuffer()
    expect(response.status).toBe(200)
    return left(response.headers)
  }
  const before = await leftAfter('/docs/webhooks')
  const searched = await leftAfter('/docs/search?q=webhooks')
  const after = await leftAfter('/docs/webhooks')
  expect([before - searched, searched - after]).toEqual([4, 1])
})

test('a document of many members costs as many requests, and one of a few a single request', async () => {
  const other = await world.organisation()
  const vault = await world.call(other.testKey, 'POST', '/vaults', {})
  const path = `/vaults/${String(vault.body.id)}/documents`
  const costOfAdding = async (data: Record<string, number>): Promise<number> => {
    const before = left((await world.call(other.testKey, 'GET', '/organisations/current')).headers)
    const added = await world.call(other.testKey, 'POST', path, { name: 'a', data })
    expect([added.status, codeOf(added)]).toEqual([201, ''])
    return before - left(added.headers)
  }
  expect(await costOfAdding({ a: 1 })).toBe(1)
  const many = Object.fromEntries(Array.from({ length: 60_000 }, (_, place) => [`k${place}`, 1]))
  expect(await costOfAdding(many)).toBeGreaterThan(100)
  const refused = await world.call(other.testKey, 'POST', path, { name: 'b', data: many })
  expect([refused.status, codeOf(refused)]).toEqual([429, 'rate-limit-exceeded'])
})

test('a spend policy of 5,000 recipients costs a hundred requests, and its audit record is small', async () => {
  const other = await world.organisation()
  const wallet = { chain: 'base', supportedTokens: ['USDC'] }
  const made = await world.call(other.testKey, 'POST', '/wallet-infra/master-wallets', wallet)
  const recipients = Array.from({ length: 1_000 }, (_, place) => `0x${(place + 1).toString(16).padStart(40, '0')}`)
  const names = ['transfer', 'pay', 'withdraw', 'legacyWithdraw', 'sweep']
  const operations = Object.fromEntries(names.map((name) => [name, { recipients }]))
  const path = `/wallet-infra/master-wallets/${String(made.body.id)}/policy`
  const set = await world.call(other.testKey, 'PUT', path, { operations, tokens: { USDC: {} } })
  expect([set.status, codeOf(set)]).toEqual([200, ''])
  expect(left(made.headers) - left(set.headers)).toBeGreaterThan(100)
  const log = await world.call(other.testKey, 'GET', '/organisations/current/audit-log?action=wallets.policy.set')
  expect(log.list.map(({ details }) => details)).toMatchObject([{ from: null, to: { sha256: expect.any(String) } }])
  expect(JSON.stringify(log.list).length).toBeLessThan(10_000)
})
