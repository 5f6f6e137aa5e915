import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let world: World
/** Two processes of one deployment. */
let bases: readonly [string, string]
let nowMs = Date.now()

beforeAll(async () => {
  world = await aWorld({ boot: { clock: { now: () => new Date(nowMs) } }, config: { role: 'api' } })
  bases = [world.base, (await world.another()).base]
})
afterAll(async () => {
  await world?.stop()
})

async function aShop(): Promise<(ip?: string, changes?: { base?: string; key?: string }) => Promise<Answer>> {
  const org: Org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  return (ip, { base = bases[0], key = org.testKey } = {}) => {
    const body = { walletId, resource: 'https://a.example.com/x', price: '0.01', ...(ip !== undefined && { ip }) }
    return request(base, { key, method: 'POST', path: '/payments/challenge', body })
  }
}

const times = (count: number): undefined[] => Array.from({ length: count }, () => undefined)

test('fifty requests of one caller at once, at two processes, get twenty challenges in all', async () => {
  const ask = await aShop()
  const answers = await Promise.all(times(50).map((_, index) => ask('203.0.113.7', { base: bases[index % 2] ?? '' })))
  expect(countByStatus(answers)).toEqual({ 200: 20, 429: 30 })
  expect([codeOf(await ask('203.0.113.7')), (await ask('203.0.113.8')).status]).toEqual(['rate-limit-exceeded', 200])
})

test('no minute has a twenty-first, and Retry-After says when the next is allowed', async () => {
  const ask = await aShop()
  for (const _ of times(10)) await ask('198.51.100.1')
  nowMs += 30_000
  for (const _ of times(10)) expect((await ask('198.51.100.1')).status).toBe(200)
  nowMs += 29_999
  const refused = await ask('198.51.100.1')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  nowMs += 1
  const again = []
  for (const _ of times(11)) again.push((await ask('198.51.100.1')).status)
  expect(again).toEqual([...times(10).map(() => 200), 429])
  expect((await ask('198.51.100.1')).headers.get('retry-after')).toBe('30')
})

test('one address written in two ways is one caller, and the same caller of two organisations is two', async () => {
  const [ask, other] = [await aShop(), await aShop()]
  for (const _ of times(20)) await ask('2001:db8::1')
  expect((await ask('2001:0db8:0:0:0:0:0:1')).status).toBe(429)
  expect((await other('2001:db8::1')).status).toBe(200)
})

test('a request without a caller is not limited, and a batch of challenges cannot name a caller', async () => {
  const ask = await aShop()
  const answers = []
  for (const _ of times(25)) answers.push(await ask())
  expect(countByStatus(answers)).toEqual({ 200: 25 })
  const org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  const body = { walletId, resource: 'https://a.example.com/x', price: '0.01', ip: '203.0.113.7', count: 2 }
  const both = await world.call(org.testKey, 'POST', '/payments/challenge', body)
  expect([both.status, codeOf(both), both.body.errors]).toEqual([
    422,
    'validation-error',
    [expect.objectContaining({ path: '/ip' })],
  ])
})

test('callers whose counts have expired are deleted by the worker, and the others are not', async () => {
  const ask = await aShop()
  await ask('192.0.2.1')
  nowMs += 60_000
  await ask('192.0.2.2')
  const { deleteExpiredCallers } = await import('../../src/features/payments/index.ts')
  await deleteExpiredCallers.run({ ...world.server.deps } as never)
  const left = await world.database.db.run(sql`select 1 from challenge_callers where ip = '192.0.2.1'::inet`)
  const kept = await world.database.db.run(sql`select 1 from challenge_callers where ip = '192.0.2.2'::inet`)
  expect([left, kept]).toEqual([0, 1])
})

test('each challenge of a batch has its own id in its x402 offers', async () => {
  const org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  const usual = { walletId, resource: 'https://a.example.com/x', price: '0.01', count: 3 }
  const challenge = (more: object) => world.call(org.testKey, 'POST', '/payments/challenge', { ...usual, ...more })
  const batch = (await challenge({ compact: true })).body
  const many = (await challenge({})).list
  const ids = many.map(
    ({ x402 }) => JSON.parse(Buffer.from(String(x402), 'base64').toString()).accepts[0].extra.challengeId,
  )
  expect(new Set([...ids, ...(Array.isArray(batch.challengeIds) ? batch.challengeIds : [])]).size).toBe(6)
  expect(ids.every((id) => String(id).length === 66)).toBe(true)
})
