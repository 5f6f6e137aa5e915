import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newTypeId } from '../../../protocol/src/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(async () => {
  await world?.stop()
})

interface Bought {
  readonly walletId: string
  readonly price?: string
  readonly resource?: string
  readonly protocol?: 'x402' | 'mpp'
}

let bought = 0

/** A separate payment of a stub that pays once. */
async function buy(
  org: Org,
  { price = '0.01', resource = 'https://a.example.com/x', ...rest }: Bought,
): Promise<string> {
  const body = { protocol: 'x402', credential: `stub_payment_${++bought}`, price, resource, method: 'GET', ...rest }
  const response = await world.call(org.testKey, 'POST', '/payments/verify', body)
  if (response.status !== 200) throw new Error(JSON.stringify(response.body))
  return String(response.body.paymentId)
}

/** Moves a payment to that time, as its ids say. Returns its new id. */
async function paidAt(paymentId: string, at: string): Promise<string> {
  const [id = '', logId = ''] = ['pay', 'plog'].map((prefix) =>
    newTypeId(prefix, Date.parse(at), new Uint8Array(10).fill(bought)),
  )
  await world.database.db.run(
    sql`update payments set created_at = ${at}::timestamptz, id = ${id}, log_id = ${logId} where id = ${paymentId}`,
  )
  return id
}

/** Both addresses of the logs, with the same content. */
describe.each(['/account/payment-logs', '/payments/logs'])('%s', (path) => {
  const logs = (key: string, query = ''): Promise<Answer> => world.call(key, 'GET', `${path}${query}`)
  const summary = (key: string, query = ''): Promise<Answer> => world.call(key, 'GET', `${path}/summary${query}`)
  const idsOf = (response: Answer): unknown[] => response.list.map(({ paymentId }) => paymentId)

  test('an organisation without sales has no logs and no totals', async () => {
    const org = await world.organisation()
    expect([(await logs(org.testKey)).list, (await summary(org.testKey)).list]).toEqual([[], []])
  })

  test('each filter applies to the list and to the totals, and several apply together', async () => {
    const org = await world.organisation()
    const [one, other] = [await world.wallet(org), await world.wallet(org)]
    const keys = await world.call(org.testKey, 'POST', '/organisations/current/api-keys', {
      name: 'b',
      environment: 'test',
    })
    const second = { ...org, testKey: String(keys.body.key) }
    const a = await buy(org, { walletId: one.id })
    const b = await buy(second, { walletId: one.id, resource: 'https://b.example.com/y' })
    const c = await buy(org, { walletId: other.id, protocol: 'mpp' })
    const all = (await logs(org.testKey)).list
    expect(all.map(({ paymentId }) => paymentId)).toEqual([c, b, a])
    const routeOfB = encodeURIComponent(String(all[1]?.route))
    const cases: readonly [query: string, ids: readonly string[]][] = [
      [`?walletId=${one.id}`, [b, a]],
      [`?apiKeyId=${keys.body.id}`, [b]],
      ['?protocol=mpp', [c]],
      [`?route=${routeOfB}`, [b]],
      [`?walletId=${one.id}&protocol=x402&route=${routeOfB}`, [b]],
      [`?walletId=${other.id}&protocol=x402`, []],
    ]
    for (const [query, ids] of cases) {
      expect(idsOf(await logs(org.testKey, query)), query).toEqual(ids)
      const counted = (await summary(org.testKey, query)).list.map(({ totalPayments }) => Number(totalPayments))
      expect(
        counted.reduce((sum, count) => sum + count, 0),
        query,
      ).toBe(ids.length)
    }
  })

  test('a period includes its first instant and excludes its last', async () => {
    const org = await world.organisation()
    const { id: walletId } = await world.wallet(org)
    const times = [
      '2026-01-31T23:59:59.999Z',
      '2026-02-01T00:00:00.000Z',
      '2026-02-28T23:59:59.999Z',
      '2026-03-01T00:00:00.000Z',
    ]
    const ids = []
    for (const at of times) {
      const paymentId = await buy(org, { walletId })
      ids.push(await paidAt(paymentId, at))
    }
    const february = '?from=2026-02-01T00:00:00.000Z&to=2026-03-01T00:00:00.000Z'
    expect(idsOf(await logs(org.testKey, february))).toEqual([ids[2], ids[1]])
    expect((await summary(org.testKey, february)).list).toMatchObject([{ totalPayments: 2, totalRevenue: '0.02' }])
    const elsewhere = '?from=2026-02-01T01:00:00.000%2B01:00&to=2026-03-01T00:00:00.000Z'
    expect(idsOf(await logs(org.testKey, elsewhere))).toEqual([ids[2], ids[1]])
    expect((await summary(org.testKey, '?from=2027-01-01T00:00:00Z')).list).toEqual([])
  })

  test('pages have no gap or repeat, and keep the first page’s filter', async () => {
    const org = await world.organisation()
    const [one, other] = [await world.wallet(org), await world.wallet(org)]
    const ids: string[] = []
    for (let count = 0; count < 5; count++) {
      ids.unshift(await buy(org, { walletId: one.id }))
      await buy(org, { walletId: other.id })
    }
    const seen: unknown[] = []
    let next: string | undefined = `?walletId=${one.id}&limit=2`
    while (next !== undefined) {
      const response = await logs(org.testKey, next)
      expect(response.list.length).toBeLessThanOrEqual(2)
      seen.push(...idsOf(response))
      next = /<[^?]*(\?[^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
    }
    expect(seen).toEqual(ids)
  })

  test('another organisation’s payments and the other environment’s are in no list, no total and under no id', async () => {
    const [org, other] = [await world.organisation(), await world.organisation()]
    const { id: walletId } = await world.wallet(org)
    await buy(org, { walletId })
    const logId = String((await logs(org.testKey)).list[0]?.id)
    expect((await logs(org.testKey)).list).toHaveLength(1)
    expect((await world.call(org.testKey, 'GET', `${path}/${logId}`)).body).toMatchObject({ id: logId, walletId })
    for (const key of [other.testKey, org.liveKey, other.liveKey]) {
      expect((await logs(key, `?walletId=${walletId}`)).list).toEqual([])
      expect((await summary(key)).list).toEqual([])
      const found = await world.call(key, 'GET', `${path}/${logId}`)
      expect([found.status, codeOf(found)]).toEqual([404, 'payment-log-not-found'])
    }
  })
})

const totals = (org: Org, query = ''): Promise<Answer> =>
  world.call(org.testKey, 'GET', `/account/payment-logs/summary${query}`)

test('totals are exact to the last digit, for each route and token separately', async () => {
  const org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  const { id: onTempo } = await world.wallet(org, { chain: 'tempo' }).catch(() => ({ id: walletId }))
  for (const price of ['0.1', '0.2', '0.000001', '90071992547.409931']) await buy(org, { walletId, price })
  await buy(org, { walletId: onTempo, price: '0.3', resource: 'https://b.example.com/y' })
  const { list } = await totals(org)
  expect(list).toMatchObject([
    { totalPayments: 4, totalRevenue: '90071992547.709932', token: 'USDC' },
    { totalPayments: 1, totalRevenue: '0.3' },
  ])
})

test('a payment that failed or expired earned nothing, and a pending one counts', async () => {
  const org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  for (const status of ['settlement_failed', 'voided', 'verified', 'settling', 'settled']) {
    const paymentId = await buy(org, { walletId, price: '1' })
    await world.database.db.run(sql`update payments set status = ${status} where id = ${paymentId}`)
  }
  expect((await totals(org)).list).toMatchObject([{ totalPayments: 3, totalRevenue: '3' }])
  expect((await world.call(org.testKey, 'GET', '/account/payment-logs')).list).toHaveLength(5)
})

test('the 500 most paid routes have an entry each, the payments of all others share one, and the totals are exact', async () => {
  const org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  const paymentId = await buy(org, { walletId, price: '0.25' })
  const routes = 2_500
  // No generated id has a u in it, so none of these equals a real one.
  await world.database.db.run(sql`
    insert into payments
    select (jsonb_populate_record(one, jsonb_build_object(
      'id', left(one.id, -5) || 'u' || lpad(n::text, 4, '0'), 'log_id', left(one.log_id, -5) || 'u' || lpad(n::text, 4, '0'),
      'claim_key', null, 'challenge_id', null, 'route', case when n > 10 then 'route/' || n end))).*
    from payments one, generate_series(1, ${routes}) n where one.id = ${paymentId}`)
  await buy(org, { walletId, price: '0.5' })
  const { list } = await totals(org)
  const rest = list.filter(({ route }) => route === null)
  expect(rest).toMatchObject([{ totalPayments: routes - 499, totalRevenue: String((routes - 499) / 4) }])
  const named = list.filter(({ route }) => route !== null)
  expect(named).toHaveLength(500)
  expect(named[0]).toMatchObject({ route: 'https://a.example.com/x', totalPayments: 2, totalRevenue: '0.75' })
  expect(new Set(named.slice(1).map(({ totalRevenue }) => totalRevenue))).toEqual(new Set(['0.25']))
})
