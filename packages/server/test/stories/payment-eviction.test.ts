import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { listEvictable, lockVerified } from '../../src/features/payments/eviction-store.ts'
import { type Sql, sql } from '../../src/platform/db/db.ts'
import { StoppedClock } from '../webhooks/clock.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type Payer, request, type World } from '../world.ts'

let chain: DevChain
let world: World
const clock = new StoppedClock()

const resource = 'https://api.example.com/weather'
/** Ten ordinary payments. */
const budget = 1_000_000n

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({
    chains: [chain],
    config: { settleNanoUsdPerDayMax: budget },
    boot: { releasedPerDayMin: 1_000, clock },
  })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

interface Shop {
  readonly org: Org
  readonly walletId: string
}

async function aShop(plan: 'hobby' | 'enterprise' = 'enterprise'): Promise<Shop> {
  const org = await world.organisation(plan)
  return { org, walletId: (await world.wallet(org)).id }
}

async function credentialFor({ org, walletId }: Shop, payer: Payer, price: string) {
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', { walletId, resource, price })
  return payer.credential(challenge)
}

async function verify(shop: Shop, credential: string, price: string, base = world.base): Promise<Answer> {
  const body = { protocol: 'x402', credential, price, walletId: shop.walletId, resource }
  return request(base, { key: shop.org.testKey, method: 'POST', path: '/payments/verify', body })
}

async function pay(shop: Shop, payer: Payer, price = '0.01', base = world.base): Promise<Answer> {
  return verify(shop, await credentialFor(shop, payer, price), price, base)
}

async function used({ org }: Shop): Promise<unknown> {
  return (await world.call(org.testKey, 'GET', '/billing/usage')).body.payments
}

async function reserved({ org }: Shop): Promise<bigint> {
  const row = await world.database.db.one(
    z.object({ nanoUsd: z.string() }),
    sql`select coalesce(sum(nano_usd), 0)::text as nano_usd from gas_budgets where organisation_id = ${org.id}`,
  )
  return BigInt(row.nanoUsd)
}

/** The number of payments of a shop that are verified. */
async function openOf({ org }: Shop): Promise<number> {
  const row = await world.database.db.one(
    z.object({ open: z.bigint() }),
    sql`select count(*) as open from payments where organisation_id = ${org.id} and status = 'verified'`,
  )
  return Number(row.open)
}

/** Sets the age of the payments of a shop that are open. */
async function age({ org }: Shop, seconds: number): Promise<void> {
  await world.database.db.run(sql`
    update payments set created_at = created_at - ${seconds}::int * interval '1 second' where organisation_id = ${org.id} and status = 'verified'`)
}

test('open payments that filled the month and were verified two minutes ago are evicted for one that is verified now', async () => {
  const [shop, honest] = [await aShop('hobby'), await aPayer(chain)]
  const seed = await pay(shop, await aPayer(chain))
  await world.database.db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, door, scheme, chain, network, token, asset,
      decimals, raw_amount, payer, pay_to, status, settlement, valid_before, check_at, created_at)
    select 'pay_' || lpad((n + 1000)::text, 26, '0'), 'plog_' || lpad((n + 1000)::text, 26, '0'), organisation_id, environment, api_key_id, protocol, door,
      scheme, chain, network, token, asset, decimals, 1, payer, pay_to, 'verified', settlement, valid_before, check_at, created_at
    from payments, generate_series(1, 99) as n where id = ${String(seed.body.paymentId)}`)
  await world.database.db.run(
    sql`update usage_counters set used = 100 where organisation_id = ${shop.org.id} and kind = 'payments'`,
  )
  const early = await pay(shop, honest)
  expect([early.status, codeOf(early)]).toEqual([429, 'payment-limit-reached'])
  await age(shop, 121)
  const take = (count: number) =>
    world.database.db.run(
      sql`update usage_counters set used = ${count}::int where organisation_id = ${shop.org.id} and kind = 'payments'`,
    )
  await take(201)
  expect(codeOf(await pay(shop, honest)), 'all open places do not suffice').toBe('payment-limit-reached')
  expect(await openOf(shop), 'none is voided').toBe(100)
  await take(130)
  clock.forward(6_000)
  const sold = await pay(shop, honest)
  expect(sold.status).toBe(200)
  const settle = { paymentId: sold.body.paymentId, settlementToken: sold.body.settlementToken }
  expect((await world.call(shop.org.testKey, 'POST', '/payments/settle', settle)).status).toBe(200)
  expect(await used(shop), 'as many are evicted as were counted above the limit, and one').toMatchObject({ used: 100 })
  expect(await openOf(shop)).toBe(69)
})

test('payments are evicted for as long as others fill the month with payments of two minutes, and count for no allowance of a payer or an owner', async () => {
  const [shop, stranger] = [await aShop('hobby'), await aPayer(chain)]
  const seed = await pay(shop, stranger)
  for (let turn = 1; turn <= 12; turn += 1) {
    await fillMonth(shop, seed, turn)
    expect((await pay(shop, await aPayer(chain))).status, `turn ${turn}`).toBe(200)
  }
  await world.database.db.run(sql`
    update payments set status = 'voided', check_at = null where organisation_id = ${shop.org.id} and status = 'verified'`)
  await world.database.db.run(sql`update usage_counters set used = 0 where organisation_id = ${shop.org.id}`)
  await world.database.db.run(sql`delete from gas_budgets where organisation_id = ${shop.org.id}`)
  expect((await pay(shop, stranger)).status, 'the payer whose payments were evicted').toBe(200)
}, 60_000)

/** Fills the month with open payments of two minutes, each like the given one and without gas. */
async function fillMonth({ org }: Shop, seed: Answer, turn: number, count = 100): Promise<void> {
  const { db } = world.database
  await db.run(sql`
    update payments set status = 'voided', check_at = null where organisation_id = ${org.id} and status = 'verified' and id <> ${String(seed.body.paymentId)}`)
  await db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, door, scheme, chain, network, token, asset,
      decimals, raw_amount, payer, pay_to, status, settlement, valid_before, check_at, created_at)
    select 'pay_0' || right(organisation_id, 8) || lpad((n + ${turn}::int * 1000)::text, 17, '0'), 'plog_0' || right(organisation_id, 8) || lpad((n + ${turn}::int * 1000)::text, 17, '0'), organisation_id, environment, api_key_id, protocol, door,
      scheme, chain, network, token, asset, decimals, 1, payer, pay_to, 'verified', settlement, valid_before, clock_timestamp() + interval '1 hour', ${clock.now()}::timestamptz - interval '121 seconds'
    from payments, generate_series(1, ${count}::int) as n where id = ${String(seed.body.paymentId)}`)
  await db.run(sql`
    update payments set gas_reserved_nano_usd = 0, status = 'voided', check_at = null where id = ${String(seed.body.paymentId)}`)
  await db.run(sql`delete from gas_budgets where organisation_id = ${org.id}`)
  await db.run(sql`
    update usage_counters set used = 199 where organisation_id = ${org.id} and kind = 'payments'`)
}

test('as many payments are evicted as are counted above the limit, also where they are hundreds', async () => {
  const shop = await aShop('hobby')
  const seed = await pay(shop, await aPayer(chain))
  await fillMonth(shop, seed, 1, 700)
  const take = (count: number) =>
    world.database.db.run(
      sql`update usage_counters set used = ${count}::int where organisation_id = ${shop.org.id} and kind = 'payments'`,
    )
  await take(800)
  expect(codeOf(await pay(shop, await aPayer(chain))), 'all open places do not suffice').toBe('payment-limit-reached')
  expect(await openOf(shop)).toBe(700)
  await take(700)
  expect(codeOf(await pay(shop, await aPayer(chain))), 'the next attempt waits').toBe('payment-limit-reached')
  clock.forward(6_000)
  expect((await pay(shop, await aPayer(chain))).status).toBe(200)
  expect(await openOf(shop)).toBe(100)
}, 60_000)

test('a payment that is evicted for another buyer at the same moment is left out', async () => {
  const shop = await aShop()
  for (let index = 0; index < 10; index += 1) expect((await pay(shop, await aPayer(chain))).status).toBe(200)
  await age(shop, 121)
  const { db } = world.database
  const tenant = { organisationId: shop.org.id, environment: 'test' } as const
  const wanted = { exhausted: 'gas-budget', until: clock.now(), most: 2 } as const
  const oldest = await listEvictable(db, tenant, { network: 'base-sepolia', createdAt: clock.now() }, wanted)
  const sold = await db.tx(async (tx) => {
    expect(await lockVerified(tx, oldest)).toHaveLength(2)
    return pay(shop, await aPayer(chain))
  })
  expect(sold.status).toBe(200)
  const statuses = oldest.map(
    async ({ id }) => (await world.call(shop.org.testKey, 'GET', `/payments/${id}`)).body.status,
  )
  expect(await Promise.all(statuses)).toEqual(['verified', 'verified'])
  expect(await openOf(shop)).toBe(10)
})

test('while another process is voiding the only payment old enough, attempts are not paused', async () => {
  const shop = await aShop('hobby')
  expect((await pay(shop, await aPayer(chain))).status).toBe(200)
  await age(shop, 121)
  const { db } = world.database
  const take = (count: number) =>
    db.run(
      sql`update usage_counters set used = ${count}::int where organisation_id = ${shop.org.id} and kind = 'payments'`,
    )
  await take(100)
  const refused = await db.tx(async (tx) => {
    await tx.run(sql`select 1 from payments where organisation_id = ${shop.org.id} for update`)
    return pay(shop, await aPayer(chain))
  })
  expect(codeOf(refused), 'the other process has the row').toBe('payment-limit-reached')
  expect((await pay(shop, await aPayer(chain))).status, 'in the same moment, after the row is free').toBe(200)
})

test('where few payers fill the month anew, a payment of the one with the most is evicted for a buyer after ten seconds, and a payer’s first payment stays', async () => {
  const shop = await aShop('hobby')
  const seed = await pay(shop, await aPayer(chain))
  await fillMonth(shop, seed, 1)
  const { db } = world.database
  const spread = (payers: number) =>
    db.run(sql`
      update payments p set payer = '0x' || lpad((case when n <= 15 then 1 else 1 + n % ${payers}::int end)::text, 40, '0'), created_at = ${clock.now()}::timestamptz - interval '11 seconds'
      from (select id, row_number() over (order by id) as n from payments where organisation_id = ${shop.org.id} and status = 'verified') as open where p.id = open.id`)
  const take = () =>
    db.run(sql`update usage_counters set used = 100 where organisation_id = ${shop.org.id} and kind = 'payments'`)
  await take()
  await spread(10)
  const buyer = await aPayer(chain)
  expect((await pay(shop, buyer)).status).toBe(200)
  const counts = await db.many(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from payments where organisation_id = ${shop.org.id} and status = 'verified' group by payer order by 1 desc`,
  )
  expect(
    counts.slice(0, 2).map(({ count }) => count),
    'the greatest was evicted',
  ).toEqual([23n, 9n])
  expect(counts.at(-1)?.count, 'the buyer').toBe(1n)
  await fillMonth(shop, seed, 2)
  await db.run(sql`
    update payments p set payer = '0x' || lpad(n::text, 40, '0'), created_at = ${clock.now()}::timestamptz - interval '11 seconds'
    from (select id, row_number() over (order by id) as n from payments where organisation_id = ${shop.org.id} and status = 'verified') as open where p.id = open.id`)
  await take()
  expect(codeOf(await pay(shop, await aPayer(chain))), 'a hundred payers with one each').toBe('payment-limit-reached')
})

/** Gives the open payments of a shop, in the order of their ids, to payers: the expression names the payer of row `n`. They are eleven seconds old then. */
async function giveTo({ org }: Shop, payerOfRow: Sql): Promise<void> {
  await world.database.db.run(sql`
    update payments p set payer = ${payerOfRow}, created_at = ${clock.now()}::timestamptz - interval '11 seconds'
    from (select id, row_number() over (order by id) as n from payments where organisation_id = ${org.id} and status = 'verified') as open where p.id = open.id`)
  await world.database.db.run(
    sql`update usage_counters set used = 100 where organisation_id = ${org.id} and kind = 'payments'`,
  )
}

test('a payer who finds no place because of its own open payments keeps no other buyer from one', async () => {
  const shop = await aShop('hobby')
  const busy = await aPayer(chain)
  await fillMonth(shop, await pay(shop, await aPayer(chain)), 1)
  await giveTo(shop, sql`case when n <= 9 then ${busy.account.address} else '0x' || lpad((n / 9)::text, 40, '0') end`)
  expect(codeOf(await pay(shop, busy))).toBe('payment-limit-reached')
  expect((await pay(shop, await aPayer(chain))).status, 'another buyer at the same moment').toBe(200)
})

test('a payer takes places only from payers that keep more than it has, also in its first ten seconds', async () => {
  const shop = await aShop('hobby')
  const taker = await aPayer(chain)
  await fillMonth(shop, await pay(shop, await aPayer(chain)), 1)
  await giveTo(shop, sql`'0x' || lpad((n / 2)::text, 40, '0')`)
  const taken = await pay(shop, taker)
  expect(taken.status).toBe(200)
  await world.database.db.run(
    sql`update payments set gas_reserved_nano_usd = 0 where id = ${String(taken.body.paymentId)}`,
  )
  expect(codeOf(await pay(shop, taker))).toBe('payment-limit-reached')
  expect((await pay(shop, await aPayer(chain))).status).toBe(200)
})

test('for buyers at the same moment no more payments are evicted than they need together', async () => {
  const shop = await aShop('hobby')
  await fillMonth(shop, await pay(shop, await aPayer(chain)), 1, 300)
  const buyers = await Promise.all(Array.from({ length: 3 }, () => aPayer(chain)))
  const credentials = await Promise.all(buyers.map((buyer) => credentialFor(shop, buyer, '0.01')))
  const sold = await Promise.all(credentials.map((credential) => verify(shop, credential, '0.01')))
  expect(sold.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(await used(shop)).toMatchObject({ used: 100 })
  expect(await openOf(shop), 'of 300, 99 above the limit and three were evicted').toBe(300 - 102 + 3)
})

test('open payments that reserved the day’s gas and were verified two minutes ago are evicted', async () => {
  const shop = await aShop()
  for (let index = 0; index < 10; index += 1) expect((await pay(shop, await aPayer(chain))).status).toBe(200)
  const honest = await aPayer(chain)
  expect(codeOf(await pay(shop, honest))).toBe('settlement-budget-exceeded')
  await age(shop, 121)
  const oldest = await world.database.db.one(
    z.object({ id: z.string() }),
    sql`
    update payments set created_at = created_at - interval '20 seconds', check_at = check_at + interval '1 minute'
    where id = (select id from payments where organisation_id = ${shop.org.id} order by id desc limit 1) returning id`,
  )
  expect((await pay(shop, honest)).status).toBe(200)
  expect(await reserved(shop), 'one was evicted').toBe(budget)
  expect((await world.call(shop.org.testKey, 'GET', `/payments/${oldest.id}`)).body.status, 'the oldest').toBe('voided')
})

test('open payments whose gas does not suffice for another payment keep their places', async () => {
  const shop = await aShop()
  for (let index = 0; index < 10; index += 1) expect((await pay(shop, await aPayer(chain))).status).toBe(200)
  await world.database.db.run(
    sql`update payments set gas_reserved_nano_usd = 1000 where organisation_id = ${shop.org.id}`,
  )
  await age(shop, 121)
  expect(codeOf(await pay(shop, await aPayer(chain)))).toBe('settlement-budget-exceeded')
  expect([await openOf(shop), await reserved(shop)]).toEqual([10, budget])
})

test('open payments of an account’s other free organisations are evicted for the day’s gas, and a payer has its tenth at all of them together', async () => {
  const [shop, other] = [await aShop(), await aShop()]
  await world.database.db.run(sql`
    update organisations set plan = 'hobby', quota_account_id = (select quota_account_id from organisations where id = ${shop.org.id})
    where id = any(${[shop.org.id, other.org.id]}::text[])`)
  const payer = await aPayer(chain)
  expect((await pay(other, payer)).status).toBe(200)
  expect(codeOf(await pay(shop, payer))).toBe('too-many-open-payments')
  for (let index = 0; index < 9; index += 1) expect((await pay(other, await aPayer(chain))).status).toBe(200)
  expect(codeOf(await pay(shop, await aPayer(chain)))).toBe('settlement-budget-exceeded')
  await age(other, 121)
  expect((await pay(shop, await aPayer(chain))).status).toBe(200)
  expect([await openOf(shop), await openOf(other)]).toEqual([1, 9])
})
