import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { makeResources, type Resources } from '../resources.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

let world: World
let org: Org
let ids: Resources

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation('hobby')
  ids = await makeResources(world, org)
})
afterAll(() => world.stop())

async function idsIn(path: string): Promise<unknown[]> {
  const response = await world.call(org.testKey, 'GET', path)
  expect(response.status, JSON.stringify(response.body)).toBe(200)
  return response.list.map(({ id }) => id)
}

const [past, future] = ['2020-01-01', '2999-01-01T00:00:00Z']

test.each([
  ['transfers', '/wallet-infra/transfers', 'wtx', 'pending', 'failed'],
  ['withdrawals', '/wallet-infra/withdrawals', 'wdr', 'pending_conversion', 'completed'],
  ['events', '/events', 'evt', undefined, undefined],
] as const)('%s are filtered by time and status', async (_name, all, kind, status, other) => {
  const own = ids[kind]
  expect(await idsIn(`${all}?from=${past}&to=${future}`)).toContain(own)
  expect(await idsIn(`${all}?to=${past}`)).toEqual([])
  expect(await idsIn(`${all}?from=${future}`)).toEqual([])
  const { createdAt } = (await world.call(org.testKey, 'GET', `${all}/${own}`)).body
  expect(await idsIn(`${all}?from=${createdAt}`)).toContain(own)
  expect(await idsIn(`${all}?to=${createdAt}`)).not.toContain(own)
  if (status === undefined) return
  expect(await idsIn(`${all}?status=${status}&from=${past}`)).toContain(own)
  expect(await idsIn(`${all}?status=${other}`)).not.toContain(own)
  expect((await world.call(org.testKey, 'GET', `${all}?status=no-such`)).status).toBe(422)
})

test('attempts and transactions of a wallet are filtered by time and status', async () => {
  const [attempts, transactions] = [`/webhooks/${ids.wh}/attempts`, `/wallet-infra/byo-wallets/${ids.byw}/transactions`]
  const own = { id: org.id, environment: 'test' }
  await world.database.db.run(sql`
    insert into webhook_attempts (id, organisation_id, environment, webhook_id, delivery_id, attempt, status, duration_ms, created_at)
    values ('att_01h455vb4pex5vsknk084sn02q', ${own.id}, 'test', ${ids.wh}, ${ids.del}, 1, 'failed', 5, '2023-06-30T12:00:00Z')`)
  for (const query of ['status=failed&to=2024-01-01', 'from=2023-06-30&to=2023-07-01'])
    expect(await idsIn(`${attempts}?${query}`)).toEqual(['att_01h455vb4pex5vsknk084sn02q'])
  for (const query of ['status=succeeded&to=2024-01-01', 'to=2023-06-30', 'from=2023-07-01&to=2024-01-01'])
    expect(await idsIn(`${attempts}?${query}`)).toEqual([])
  for (const query of ['status=confirmed', `to=${past}`, `from=${future}`])
    expect(await idsIn(`${transactions}?${query}`)).toEqual([])
  expect((await world.call(org.testKey, 'GET', `${transactions}?status=done`)).status).toBe(422)
})

test('payments are filtered by status, chain, payer and key, each alone and together', async () => {
  const seller = await world.organisation()
  const { id: walletId } = await world.wallet(seller)
  const made: string[] = []
  for (const payer of ['0x036CbD53842c5426634e7929541eC2318f3dCF7e', '0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0']) {
    const { body } = await world.call(seller.testKey, 'POST', '/payments/verify', {
      protocol: 'x402',
      credential: `stub_payment_filter_${made.length}`,
      price: '0.01',
      walletId,
      resource: 'https://filters.example/x',
      method: 'GET',
    })
    expect(body.paymentId).toMatch(/^pay_/)
    made.push(String(body.paymentId))
    await world.database.db.run(sql`update payments set payer = ${payer} where id = ${String(body.paymentId)}`)
  }
  const [first = '', second = ''] = made
  await world.database.db.run(sql`update payments set status = 'voided' where id = ${second}`)
  const found = async (query: string): Promise<unknown[]> => {
    const logs = (await world.call(seller.testKey, 'GET', `/payments/logs?route=https://filters.example/x&${query}`))
      .list
    return logs.map(({ paymentId }) => paymentId)
  }
  const { apiKeyId, chain } = (await world.call(seller.testKey, 'GET', `/payments/${first}`)).body
  expect(await found('status=voided')).toEqual([second])
  expect(await found('status=settlement_failed')).toEqual([])
  expect(await found(`chain=${chain}`)).toEqual([second, first])
  expect(await found('chain=ethereum')).toEqual([])
  expect(await found('payer=0x036cbd53842c5426634e7929541ec2318f3dcf7e')).toEqual([first])
  expect(await found(`apiKeyId=${apiKeyId}`)).toEqual([second, first])
  expect(
    await found(`apiKeyId=${apiKeyId}&status=voided&chain=${chain}&payer=0x036CbD53842c5426634e7929541eC2318f3dCF7e`),
  ).toEqual([])
  expect((await world.call(seller.testKey, 'GET', '/payments/logs?status=paid')).status).toBe(422)
})

test('the audit log is filtered by action, target, actor and time, and paged', async () => {
  const log = '/organisations/current/audit-log'
  const records = async (query: string): Promise<Answer['list']> =>
    (await world.call(org.testKey, 'GET', `${log}?${query}`)).list
  const created = await records('action=wallets.byo.create')
  expect(created.length).toBeGreaterThan(0)
  expect(new Set(created.map(({ action }) => action))).toEqual(new Set(['wallets.byo.create']))
  const ofWallet = await records(`target=${ids.byw}`)
  expect(new Set(ofWallet.map(({ target }) => target))).toEqual(new Set([ids.byw]))
  const { apiKeyId } = Object(created[0]?.actor)
  const all = await records('limit=500')
  const byKey = all.filter(({ actor }) => Object(actor).apiKeyId === apiKeyId).map(({ sequence }) => sequence)
  expect((await records(`actor=${apiKeyId}&limit=500`)).map(({ sequence }) => sequence)).toEqual(byKey)
  const first = await world.call(org.testKey, 'GET', `${log}?actor=${apiKeyId}&limit=2`)
  const next: string = String(/^<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1])
  const second = await world.call(org.testKey, 'GET', next)
  expect([...first.list, ...second.list].map(({ sequence }) => sequence)).toEqual(byKey.slice(0, 4))
  const middle = all[Math.floor(all.length / 2)]?.createdAt
  const [before, after] = [await records(`to=${middle}&limit=500`), await records(`from=${middle}&limit=500`)]
  expect([...after, ...before]).toEqual(all)
  expect(before.length * after.length).toBeGreaterThan(0)
  expect([await records(`to=${past}`), await records(`from=${future}`)]).toEqual([[], []])
})

test('usage says which part of each quota is used, and what has none', async () => {
  const { body } = await world.call(org.testKey, 'GET', '/billing/usage')
  const { used, limit } = Object(body.byoWallets)
  expect(body.byoWallets).toEqual({ used, limit, percent: Math.floor((used * 100) / limit), unlimited: false })
  const free = await world.organisation('enterprise')
  const { body: unlimited } = await world.call(free.testKey, 'GET', '/account/usage')
  expect(unlimited.payments).toEqual({ used: 0, limit: -1, percent: null, unlimited: true })
})
