import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import { createKeptBytes, deleteExpiredUse, type KeptBytes } from '../src/platform/http/kept-bytes.ts'
import { createLog } from '../src/platform/log.ts'
import { createMetrics } from '../src/platform/metrics.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { aStillClock } from './lane-stage.ts'
import { aWorld, codeOf, type Org, type World } from './world.ts'

const bytesMax = 1_000_000

let world: World
beforeAll(async () => {
  world = await aWorld({ config: { role: 'api', idempotencyBytesMax: bytesMax } })
})
afterAll(() => world?.stop())

const walletOf = async (org: Org): Promise<string> => (await world.wallet(org)).id

const ask = (org: Org, walletId: string, key: string) =>
  world.call(
    org.testKey,
    'POST',
    '/payments/challenge',
    { walletId, resource: 'https://api.example.com/weather', price: '0.01', count: 8 },
    { 'idempotency-key': key },
  )

const Bytes = z.object({ bytes: z.bigint() })

test('an organisation stores half of what the others leave under its Idempotency-Keys, is refused beyond it, and nobody else notices', async () => {
  const [greedy, other] = [await world.organisation(), await world.organisation()]
  const [wallet, otherWallet] = [await walletOf(greedy), await walletOf(other)]
  const first = await ask(greedy, wallet, 'greedy 0')
  expect(first.status).toBe(200)
  let refused = first
  for (let index = 1; refused.status === 200 && index < 2_000; index++)
    refused = await ask(greedy, wallet, `greedy ${index}`)
  expect([refused.status, codeOf(refused), typeof refused.body.current]).toEqual([
    429,
    'idempotency-storage-exceeded',
    'number',
  ])
  const stored = await world.database.db.one(
    Bytes,
    sql`select sum(octet_length(sealed_body))::bigint as bytes from idempotency_keys where organisation_id = ${greedy.id}`,
  )
  expect(Number(stored.bytes)).toBeGreaterThan(bytesMax / 8)
  expect(Number(stored.bytes)).toBeLessThan(bytesMax / 2)

  const repeat = await ask(greedy, wallet, 'greedy 0')
  expect([repeat.status, repeat.headers.get('idempotency-replayed'), repeat.body]).toEqual([200, 'true', first.body])
  // A settlement needs no stored response: its repeat joins it.
  const settlement = { paymentId: `pay_${'0'.repeat(26)}`, settlementToken: 'none' }
  const settled = await world.call(greedy.testKey, 'POST', '/payments/settle', settlement, { 'idempotency-key': 'new' })
  expect([settled.status, codeOf(settled)]).toEqual([422, 'payment-not-found'])
  const terms = { walletId: wallet, resource: 'https://api.example.com/weather', price: '0.01' }
  expect((await world.call(greedy.testKey, 'POST', '/payments/challenge', terms)).status).toBe(200)
  for (let index = 0; index < 10; index++) expect((await ask(other, otherWallet, `other ${index}`)).status).toBe(200)
})

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const log = createLog({ level: 'silent' })

test('what processes store for an organisation counts together within seconds, for a day, and is then deleted', async () => {
  const { db } = database
  const clock = aStillClock()
  const metrics = createMetrics()
  const one = createKeptBytes({ db, clock, log, metrics }, bytesMax)
  const another = createKeptBytes({ db, clock, log, metrics: createMetrics() }, bytesMax)
  expect([await one.beyondShare('org_a'), await another.beyondShare('org_a')]).toEqual([undefined, undefined])
  one.add('org_a', 450_000)
  expect(await one.beyondShare('org_a')).toBe(450_000)
  expect(await another.beyondShare('org_a', 0.1)).toBeUndefined()
  another.add('org_c', 60_000)
  expect(await another.beyondShare('org_c')).toBeUndefined()
  expect(await another.beyondShare('org_c', 0.1)).toBe(60_000)
  another.add('org_c', -60_000)
  expect(await metrics.registry.metrics()).toMatch(/^purser_idempotency_largest_share 0\.9$/m)
  expect(await another.beyondShare('org_a')).toBeUndefined()
  // Each request after five seconds exchanges the counts, in the background.
  const shown = (process: KeptBytes) => () => {
    clock.forward(6_000)
    return process.beyondShare('org_a')
  }
  const inUse = async () => database.db.run(sql`select from idempotency_use`)
  await shown(one)()
  await expect.poll(inUse).toBe(2)
  await expect.poll(shown(another)).toBe(450_000)
  expect(await another.beyondShare('org_b')).toBeUndefined()
  clock.forward(26 * 3_600_000)
  await expect.poll(shown(one)).toBeUndefined()
  await expect.poll(shown(another)).toBeUndefined()
  clock.forward(3_600_000)
  expect(await deleteExpiredUse({ db }, clock.now())).toBe(2)
})

test('bytes of an owner that cannot be read do not stay in the total', async () => {
  let isAway = true
  const many: typeof database.db.many = (row, statement) =>
    isAway ? Promise.reject(new Error('the database is away')) : database.db.many(row, statement)
  const db = { ...database.db, many }
  const kept = createKeptBytes({ db, clock: aStillClock(), log, metrics: createMetrics() }, bytesMax)
  kept.add('org_c', bytesMax)
  await expect(kept.beyondShare('org_c')).rejects.toThrow('the database is away')
  isAway = false
  expect(await kept.beyondShare('org_d')).toBeUndefined()
})
