import { afterAll, beforeAll, expect, test } from 'vitest'
import { newTypeId } from '../../../protocol/src/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(async () => {
  await world?.stop()
})

interface Past {
  readonly at: string
  readonly status?: string
  readonly settledAfterMs?: number
  readonly reason?: string
}

let bought = 0

/** A payment of 0.01 as it would be, had it been made at that time: its id says so too. */
async function paidAt(org: Org, walletId: string, { at, status = 'settled', settledAfterMs, reason }: Past) {
  const body = {
    protocol: 'x402',
    credential: `stub_payment_${++bought}`,
    price: '0.01',
    walletId,
    resource: 'https://a.example/x',
  }
  const { body: made } = await world.call(org.testKey, 'POST', '/payments/verify', { ...body, method: 'GET' })
  const [id, logId] = ['pay', 'plog'].map((prefix) =>
    newTypeId(prefix, Date.parse(at), new Uint8Array(10).fill(bought)),
  )
  const txHash = settledAfterMs === undefined ? null : `0x${'ab'.repeat(32)}`
  await world.database.db.run(sql`
    update payments set id = ${id}, log_id = ${logId}, created_at = ${at}::timestamptz, status = ${status}, failure_reason = ${reason ?? null},
      tx_hash = ${txHash}, settled_at = ${at}::timestamptz + make_interval(secs => ${(settledAfterMs ?? 0) / 1_000})
    where id = ${String(made.paymentId)}`)
}

const statistics = (org: Org, query: string): Promise<Answer> =>
  world.call(org.testKey, 'GET', `/payments/statistics?${query}`)
const day = 'from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z&interval=hour'

test('payments are counted in the interval that they were made in, by status, and to the last unit', async () => {
  const org = await world.organisation()
  const { id } = await world.wallet(org)
  await paidAt(org, id, { at: '2026-11-20T00:00:00.000Z' })
  await paidAt(org, id, { at: '2026-11-20T00:59:59.999Z' })
  await paidAt(org, id, { at: '2026-11-20T05:30:00.000Z', status: 'settlement_failed', reason: 'insufficient_funds' })
  await paidAt(org, id, { at: '2026-11-19T23:59:59.999Z' })
  await paidAt(org, id, { at: '2026-11-21T00:00:00.000Z' })
  const { status, body } = await statistics(org, day)
  expect(status).toBe(200)
  expect(body).toMatchObject({ countedFrom: '2026-11-20T00:00:00.000Z', interval: 'hour' })
  const of = { protocol: 'x402', token: 'USDC' }
  expect(body.intervals).toEqual([
    { ...of, at: '2026-11-20T00:00:00.000Z', status: 'settled', payments: 2, amount: '0.02' },
    { ...of, at: '2026-11-20T05:00:00.000Z', status: 'settlement_failed', payments: 1, amount: '0.01' },
  ])
  expect(body.failures).toEqual([{ reason: 'insufficient_funds', payments: 1 }])
})

test('the time to settle is measured on chains alone, for each interval and for all', async () => {
  const org = await world.organisation()
  const { id } = await world.wallet(org)
  for (const settledAfterMs of [1_000, 2_000, 9_000])
    await paidAt(org, id, { at: '2026-11-20T01:00:00Z', settledAfterMs })
  await paidAt(org, id, { at: '2026-11-20T02:00:00Z', settledAfterMs: 500 })
  await paidAt(org, id, { at: '2026-11-20T02:00:01Z' })
  const { body } = await statistics(org, day)
  expect(body.settlement).toEqual({
    payments: 4,
    p50Ms: 1_000,
    p95Ms: 9_000,
    intervals: [
      { at: '2026-11-20T01:00:00.000Z', payments: 3, p50Ms: 2_000, p95Ms: 9_000 },
      { at: '2026-11-20T02:00:00.000Z', payments: 1, p50Ms: 500, p95Ms: 500 },
    ],
  })
})

test('a range without payments, and the payments of others, count nothing', async () => {
  const [org, other] = [await world.organisation(), await world.organisation()]
  const { id } = await world.wallet(other)
  await paidAt(other, id, { at: '2026-11-20T01:00:00Z', settledAfterMs: 10 })
  const { body } = await statistics(org, day)
  expect(body).toMatchObject({ intervals: [], failures: [], settlement: { payments: 0, p50Ms: null, p95Ms: null } })
})

test('challenges and refused credentials are counted by the minute, of the organisation alone, and a route narrows the intervals', async () => {
  const [org, other] = [await world.organisation(), await world.organisation()]
  const { id: walletId } = await world.wallet(org)
  await paidAt(org, walletId, { at: '2026-11-20T01:00:00Z' })
  const request = { walletId, price: '0.01', resource: 'https://a.example/x' }
  await world.call(org.testKey, 'POST', '/payments/challenge', request)
  await world.call(org.testKey, 'POST', '/payments/challenge', { ...request, count: 5, compact: true })
  const bad = { ...request, protocol: 'x402', credential: 'bm90IGEgcGF5bWVudA==', method: 'GET' }
  expect((await world.call(org.testKey, 'POST', '/payments/verify', bad)).status).toBe(402)
  const now = world.server.deps.clock.now().getTime()
  const around = `from=${new Date(now - 600_000).toISOString()}&to=${new Date(now + 600_000).toISOString()}&interval=minute`
  await expect.poll(async () => (await statistics(org, around)).body).toMatchObject({ challenges: 6, refused: 1 })
  expect((await statistics(other, around)).body).toMatchObject({ challenges: 0, refused: 0 })
  expect((await statistics(org, day)).body).toMatchObject({ challenges: 0, refused: 0 })
  const of = async (route: string) => (await statistics(org, `${day}&route=${route}`)).body.intervals
  expect(await of('https://a.example/x')).toHaveLength(1)
  expect(await of('https://a.example/y')).toEqual([])
})

test('gas is what the budgets of the days took, by network, and nobody else’s', async () => {
  const [org, other] = [await world.organisation(), await world.organisation()]
  for (const [owner, network, on, nano] of [
    [org, 'base-sepolia', '2026-11-19', 5],
    [org, 'base-sepolia', '2026-11-20', 1_500_000],
    [org, 'eth-sepolia', '2026-11-20', 2_000_000_000],
    [org, 'base-sepolia', '2026-11-21', 7],
    [other, 'base-sepolia', '2026-11-20', 9],
  ] as const)
    await world.database.db.run(sql`
      insert into gas_budgets (organisation_id, environment, network, day, nano_usd) values (${owner.id}, 'test', ${network}, ${on}, ${nano})`)
  const { body } = await statistics(org, day)
  expect(body.gas).toEqual([
    { day: '2026-11-20', network: 'base-sepolia', usd: '0.0015' },
    { day: '2026-11-20', network: 'eth-sepolia', usd: '2' },
  ])
  expect(Number(body.gasUsdPerDayMax)).toBeGreaterThan(0)
})

test('a range that is empty, reversed or too fine is refused', async () => {
  const org = await world.organisation()
  const refused = [
    'from=2026-11-20T00:00:00Z&to=2026-11-20T00:00:00Z&interval=hour',
    'from=2026-11-21T00:00:00Z&to=2026-11-20T00:00:00Z&interval=hour',
    'from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z&interval=minute',
    'from=1969-11-20T00:00:00Z&to=1969-11-21T00:00:00Z&interval=hour',
    'from=2026-11-20T00:00:00Z&interval=hour',
  ]
  for (const query of refused) expect([query, (await statistics(org, query)).status]).toEqual([query, 422])
})
