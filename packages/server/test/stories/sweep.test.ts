import { type DevChain, type FaultProxy, fundToken, startChain, startFaultProxy, tokenBalance } from '@purser/devnet'
import { type Network, requireNetwork } from '@purser/protocol'
import { createPublicClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { autoSweep } from '../../src/features/wallets/sweep/auto.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { storeFrozenPlace } from '../frozen-place.ts'
import { aFamily, childrenOf, ethOf, sweep, sweepTransactions } from '../sweep-stage.ts'
import { oneNanoUsdPerGas } from '../test-config.ts'
import { aWorld, codeOf, type Org, request, unreachableMain, type World } from '../world.ts'

let chain: DevChain
let node: FaultProxy
let world: World
let org: Org
/** Whether a node has reported a gas price. */
let isPriceKnown = true

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  node = await startFaultProxy(chain.rpcUrl)
  const rpcUrls = { ...unreachableMain, 'base-sepolia': [node.url] }
  const lowestKnownCostOf = (_: Network, gas: bigint) => (isPriceKnown ? gas : undefined)
  const gasPrices = { ...oneNanoUsdPerGas, lowestKnownCostOf }
  world = await aWorld({ chains: [chain], rpcUrls, boot: { gasPrices } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await chain?.stop()
})

const usdc = (address: `0x${string}`) => tokenBalance(chain, 'USDC', address)
const patience = { timeout: 90_000 }

test('fifty children are swept to their master in one transaction, and none ever had gas', async () => {
  const family = await aFamily(world, org, chain, { count: 50 })
  const before = await sweepTransactions(world)
  const requested = await sweep(world, org, family)
  expect(requested.status).toBe(202)
  expect(requested.body).toMatchObject({
    id: expect.stringMatching(/^swp_[0-9a-z]{26}$/),
    masterWalletId: family.id,
    chain: 'base',
    token: 'USDC',
    trigger: 'request',
    status: 'sweeping',
    isPartial: false,
    childCount: 50,
    amount: '50',
  })
  await expect
    .poll(async () => (await childrenOf(world, org, family, requested.body.id)).status, patience)
    .toBe('completed')
  const { children } = await childrenOf(world, org, family, requested.body.id)
  expect(children.map(({ childAddressId }) => childAddressId)).toEqual(family.children.map(({ id }) => id))
  expect(new Set(children.map(({ status, amount }) => `${status} ${amount}`))).toEqual(new Set(['swept 1']))
  expect(new Set(children.map(({ txHash }) => txHash)).size).toBe(1)
  expect((await sweepTransactions(world)) - before).toBe(1n)
  expect(await usdc(family.address)).toBe(50_000_000n)
  for (const { address } of family.children.slice(0, 5)) {
    expect([await usdc(address), await ethOf(chain, address)]).toEqual([0n, 0n])
  }
  const { list } = await world.call(org.testKey, 'GET', `${family.path}/sweeps`)
  expect(list).toMatchObject([{ id: requested.body.id, status: 'completed', childCount: 50, sweptAmount: '50' }])
  const log = await world.call(org.testKey, 'GET', '/organisations/current/audit-log?limit=5')
  expect(log.list.map((record) => record.action)).toEqual(
    expect.arrayContaining(['wallets.sweeps.create', 'wallets.sweeps.swept']),
  )
}, 180_000)

test('a child whose money is worth less than the gas of its transfer is not swept, however low the smallest payment is', async () => {
  // The tests count a billionth of a dollar for a unit of gas: the gas of a child is worth 0.0001 dollars.
  const cheap = await world.another({ role: 'api', settleMicroUsdMin: 1n })
  const family = await aFamily(world, org, chain, { count: 2, rawAmount: 0n })
  const [poor, rich] = family.children
  if (poor === undefined || rich === undefined) throw new Error('no children')
  await fundToken(chain, 'USDC', poor.address, 99n)
  await fundToken(chain, 'USDC', rich.address, 100n)
  const path = `${family.path}/sweep`
  const swept = (childAddressIds?: readonly string[]) =>
    request(cheap.base, { key: org.testKey, method: 'POST', path, body: { token: 'USDC', childAddressIds } })
  const named = await swept([poor.id])
  expect([named.status, named.body.childCount]).toEqual([202, 0])
  const all = await swept()
  expect([all.status, all.body.childCount, all.body.amount]).toEqual([202, 1, '0.0001'])
})

test('before a node has reported a gas price nothing is swept, since it is unknown which children are worth their gas', async () => {
  const family = await aFamily(world, org, chain, { count: 1 })
  isPriceKnown = false
  const refused = await sweep(world, org, family)
  isPriceKnown = true
  expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-unavailable'])
  expect((await sweep(world, org, family)).body.childCount).toBe(1)
})

test('two requests in the same instant, at two processes, sweep each child once', async () => {
  const family = await aFamily(world, org, chain, { count: 10 })
  const second = await world.another()
  const ask = (base: string) =>
    request(base, { key: org.testKey, method: 'POST', path: `${family.path}/sweep`, body: { token: 'USDC' } })
  const requested = await Promise.all([ask(world.base), ask(second.base), ask(world.base), ask(second.base)])
  expect(requested.map(({ status }) => status)).toEqual([202, 202, 202, 202])
  for (const { body } of requested)
    await expect.poll(async () => (await childrenOf(world, org, family, body.id)).status, patience).toBe('completed')
  const reported = await Promise.all(requested.map(({ body }) => childrenOf(world, org, family, body.id)))
  const swept = reported.flatMap(({ children }) => children.filter(({ status }) => status === 'swept'))
  expect(new Set(swept.map(({ childAddressId }) => childAddressId)).size).toBe(10)
  expect(swept).toHaveLength(10)
  expect(await usdc(family.address)).toBe(10_000_000n)
}, 180_000)

test('an Idempotency-Key begins one sweep, and a repeat gets its current status', async () => {
  const family = await aFamily(world, org, chain, { count: 2 })
  const key = { 'idempotency-key': `sweep-${family.id}` }
  const first = await sweep(world, org, family, {}, key)
  await expect
    .poll(async () => (await childrenOf(world, org, family, first.body.id)).status, patience)
    .toBe('completed')
  const again = await sweep(world, org, family, {}, key)
  expect([again.status, again.body.id, again.body.status]).toEqual([202, first.body.id, 'completed'])
  expect((await world.call(org.testKey, 'GET', `${family.path}/sweeps`)).list).toHaveLength(1)
})

test('only the named children are swept; those with less than the minimum, and dust, are left', async () => {
  const family = await aFamily(world, org, chain, { count: 4, rawAmount: 0n })
  const [rich, poor, dusty, other] = family.children
  if (rich === undefined || poor === undefined || dusty === undefined || other === undefined)
    throw new Error('no child')
  await fundToken(chain, 'USDC', rich.address, 5_000_000n)
  await fundToken(chain, 'USDC', poor.address, 1_000_000n)
  await fundToken(chain, 'USDC', dusty.address, 999n)
  await fundToken(chain, 'USDC', other.address, 5_000_000n)
  const childAddressIds = [rich, poor, dusty].map(({ id }) => id)
  const least = await sweep(world, org, family, { childAddressIds, minAmount: '2' })
  expect(least.body.children).toMatchObject([{ childAddressId: rich.id, amount: '5', status: 'pending' }])
  await expect
    .poll(async () => (await childrenOf(world, org, family, least.body.id)).status, patience)
    .toBe('completed')
  const all = await sweep(world, org, family, { childAddressIds })
  expect(all.body.children).toMatchObject([{ childAddressId: poor.id, amount: '1' }])
  await expect.poll(async () => (await childrenOf(world, org, family, all.body.id)).status, patience).toBe('completed')
  const nothing = await sweep(world, org, family, { childAddressIds })
  expect([nothing.status, nothing.body.status, nothing.body.childCount]).toEqual([202, 'completed', 0])
  expect([await usdc(family.address), await usdc(dusty.address), await usdc(other.address)]).toEqual([
    6_000_000n,
    999n,
    5_000_000n,
  ])
}, 180_000)

test('frozen money stays in place', async () => {
  const family = await aFamily(world, org, chain, { count: 2 })
  const [frozen] = family.children
  const { hash } = await createPublicClient({ transport: http(chain.rpcUrl) }).getBlock({ blockNumber: 1n })
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, aml_status, aml_due_at, frozen_raw_amount, created_at)
    values ('wtx_frozen', ${org.id}, 'test', ${frozen?.id}, 'base-sepolia', 'base', '0xaa', 0, 'in', 'transfer', 'confirmed',
      ${chain.tokens.USDC}, 'USDC', 6, 400000, '0xbb', ${frozen?.address}, 1, ${hash}, now(), 'flagged', 'infinity', 400000, now())`)
  await storeFrozenPlace(world.database.db, frozen?.id)
  const requested = await sweep(world, org, family)
  expect(requested.body.children).toMatchObject([{ amount: '0.6' }, { amount: '1' }])
  await expect
    .poll(async () => (await childrenOf(world, org, family, requested.body.id)).status, patience)
    .toBe('completed')
  expect([await usdc(family.address), await usdc(frozen?.address ?? '0x')]).toEqual([1_600_000n, 400_000n])
})

test.each([
  ['a token without authorizations', 'ethereum', 'USDT', 'sweep-not-supported'],
  ['a token that the chain does not have', 'base', 'DOGE', 'token-not-supported'],
])('%s is refused with the reason', async (_, chainName, token, code) => {
  const key = chainName === 'ethereum' ? org.liveKey : org.testKey
  const body = { chain: chainName, supportedTokens: ['USDC'] }
  const master = await world.call(key, 'POST', '/wallet-infra/master-wallets', body)
  const path = `/wallet-infra/master-wallets/${master.body.id}`
  const refused = await world.call(key, 'POST', `${path}/sweep`, { token })
  expect([refused.status, codeOf(refused)]).toEqual([422, code])
  const auto = await world.call(key, 'PATCH', path, { autoSweep: { token, minAmount: '1' } })
  expect([auto.status, codeOf(auto)]).toEqual([422, code])
})

test('a child of another wallet is named, and an amount that the token cannot express', async () => {
  const [family, other] = [
    await aFamily(world, org, chain, { count: 1, rawAmount: 0n }),
    await aFamily(world, org, chain, { count: 1, rawAmount: 0n }),
  ]
  const ids = [...family.children, ...other.children].map(({ id }) => id)
  const foreign = await sweep(world, org, family, { childAddressIds: ids })
  expect([foreign.status, codeOf(foreign)]).toEqual([422, 'child-address-not-found'])
  expect(foreign.body.errors).toEqual([{ path: '/childAddressIds/1', message: expect.any(String) }])
  const fine = await sweep(world, org, family, { minAmount: '0.0000001' })
  expect([fine.status, fine.body.errors]).toEqual([422, [{ path: '/minAmount', message: expect.any(String) }]])
})

test('while the node fails no sweep is begun', async () => {
  const family = await aFamily(world, org, chain, { count: 1 })
  node.set('garbage', ['eth_call'])
  const refused = await sweep(world, org, family)
  node.set('pass')
  expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-unavailable'])
  expect((await world.call(org.testKey, 'GET', `${family.path}/sweeps`)).list).toEqual([])
})

test('the daily gas budget limits sweeps as it limits settlements', async () => {
  const small = await aWorld({ chains: [chain], config: { role: 'api', settleNanoUsdPerDayMax: 250_000n } })
  try {
    const poor = await small.organisation()
    const family = await aFamily(small, poor, chain, { count: 3 })
    const refused = await sweep(small, poor, family)
    expect([refused.status, codeOf(refused)]).toEqual([429, 'settlement-budget-exceeded'])
    const ids = family.children.map(({ id }) => id)
    expect((await sweep(small, poor, family, { childAddressIds: ids.slice(0, 2) })).status).toBe(202)
    expect((await sweep(small, poor, family)).status).toBe(429)
  } finally {
    await small.stop()
  }
})

const days = [
  ['whose gas fits into half of the day’s budget', { day: 450_000n, used: 0n, children: [2] }],
  ['that costs more than half of a day of which nothing was used', { day: 190_000n, used: 0n, children: [1] }],
  ['that costs more than half of the day, of which some was used: none', { day: 190_000n, used: 1n, children: [] }],
  ['that costs more than the day: none', { day: 90_000n, used: 0n, children: [] }],
] as const

test.each(days)('an automatic sweep takes children %s, and is tried again in an hour', async (_, gas) => {
  const small = await aWorld({ chains: [chain], config: { role: 'api', settleNanoUsdPerDayMax: gas.day } })
  try {
    const poor = await small.organisation()
    await small.database.db.run(sql`
      insert into gas_budgets (organisation_id, environment, network, day, nano_usd)
      values (${poor.id}, 'test', 'base-sepolia', (now() at time zone 'UTC')::date, ${gas.used})`)
    const family = await aFamily(small, poor, chain, { count: 5 })
    const wanted = { token: 'USDC', minAmount: '0.5', everyMinutes: 1 }
    expect((await small.call(poor.testKey, 'PATCH', family.path, { autoSweep: wanted })).status).toBe(200)
    const run = () => autoSweep.runOn(systemCtx(small.server.deps), requireNetwork('base-sepolia'))
    await run()
    await run()
    const { list } = await small.call(poor.testKey, 'GET', `${family.path}/sweeps`)
    const swept = gas.children.map((childCount) => ({ trigger: 'automatic', childCount, isPartial: true }))
    expect(list.map(({ trigger, childCount, isPartial }) => ({ trigger, childCount, isPartial }))).toEqual(swept)
    const isDue = sql`auto_sweep_due_at < now() + interval '59 minutes'`
    const due = sql`select count(*) as count from master_wallets where id = ${family.id} and ${isDue}`
    expect(await small.database.db.one(z.object({ count: z.bigint() }), due)).toEqual({ count: 0n })
  } finally {
    await small.stop()
  }
})

test('a wallet that sweeps by itself does so, again and again, until it is configured not to', async () => {
  const family = await aFamily(world, org, chain, { count: 3 })
  const set = await world.call(org.testKey, 'PATCH', family.path, {
    name: 'Sweeper',
    autoSweep: { token: 'USDC', minAmount: '0.5', everyMinutes: 60 },
  })
  expect([set.status, set.body]).toMatchObject([
    200,
    { name: 'Sweeper', autoSweep: { token: 'USDC', minAmount: '0.5', everyMinutes: 60 } },
  ])
  // A sweep that runs before a deposit is deep enough finds nothing, and the next one is due in an hour.
  const sweptBalance = async () => {
    await world.database.db.run(sql`update master_wallets set auto_sweep_due_at = now() where id = ${family.id}`)
    return usdc(family.address)
  }
  await expect.poll(sweptBalance, patience).toBe(3_000_000n)
  await fundToken(chain, 'USDC', family.children[1]?.address ?? '0x', 700_000n)
  await expect.poll(sweptBalance, patience).toBe(3_700_000n)
  const { list } = await world.call(org.testKey, 'GET', `${family.path}/sweeps`)
  expect(list.map(({ trigger }) => trigger)).toEqual(list.map(() => 'automatic'))
  expect(list.length).toBeGreaterThan(1)
  // A sweep takes those whose deposits are deep enough, so the first three may be in several.
  expect(list.reduce((sum, { childCount }) => sum + Number(childCount), 0)).toBe(4)
  const off = await world.call(org.testKey, 'PATCH', family.path, { autoSweep: null })
  expect(off.body).toMatchObject({ name: 'Sweeper', autoSweep: null })
}, 270_000)
