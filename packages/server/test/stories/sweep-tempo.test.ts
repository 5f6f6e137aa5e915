import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { type Address, createPublicClient, createTestClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { tempoSweepHandler } from '../../src/features/wallets/index.ts'
import { sweepOnTempo } from '../../src/features/wallets/sweep/tempo.ts'
import { sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { storeFrozenPlace } from '../frozen-place.ts'
import { runOnce } from '../run-once.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { aFamily, childrenOf, type Swept, sweep } from '../sweep-stage.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { aWorld, codeOf, type Org, request, type World } from '../world.ts'

const of = { chain: 'tempo', token: 'AlphaUSD' } as const
const body = { token: 'AlphaUSD' } as const
const patience = { timeout: 90_000 }

let tempo: DevChain
/** Has background work. */
let world: World
let org: Org
/** Sends only when a test says so. */
let still: World
let own: Org
let clock: ShiftedClock
let screening: FakeScreening

beforeAll(async () => {
  tempo = await startChain({ network: 'tempo-moderato' })
  clock = new ShiftedClock()
  screening = createFakeScreening(() => clock.now())
  world = await aWorld({ chains: [tempo], config: { transferWaitMs: 20_000 } })
  still = await aWorld({ chains: [tempo], config: { role: 'api' }, boot: { clock, screening } })
  still.server.deps.lanes.start([tempoSweepHandler(still.server.deps)])
  for (const { server } of [world, still]) await fundToken(tempo, 'pathUSD', settlerOf(server), 50_000_000n)
  org = await world.organisation()
})
afterAll(async () => {
  await still?.server.deps.lanes.stop()
  await still?.stop()
  await world?.stop()
  await tempo?.stop()
})
beforeEach(async () => {
  own = await still.organisation()
  screening.isStale = false
})

const settlerOf = ({ settlerAddress }: World['server']) => settlerAddress as Address
const alpha = (address: Address) => tokenBalance(tempo, 'AlphaUSD', address)
const turn = () => runOnce(still.server.deps, sweepOnTempo)
const stranger = () => privateKeyToAddress(generatePrivateKey())

async function completed(at: World, by: Org, family: Swept, sweepId: unknown) {
  await expect.poll(async () => (await childrenOf(at, by, family, sweepId)).status, patience).toBe('completed')
  return (await childrenOf(at, by, family, sweepId)).children
}

/** The number of transactions that a child of the family sent, from the chain. */
function countOf(address: Address, chain = tempo): Promise<number> {
  return createPublicClient({ transport: http(chain.rpcUrl) }).getTransactionCount({ address })
}

test('children on Tempo are swept to the last unit, each by a separate transaction that the operator pays for', async () => {
  const family = await aFamily(world, org, tempo, { count: 5, of })
  const before = await tokenBalance(tempo, 'pathUSD', settlerOf(world.server))
  const requested = await sweep(world, org, family, body)
  expect([requested.status, requested.body.chain, requested.body.token, requested.body.amount]).toEqual([
    202,
    'tempo',
    'AlphaUSD',
    '5',
  ])
  const children = await completed(world, org, family, requested.body.id)
  expect(children.map(({ status, amount, reason }) => [status, amount, reason])).toEqual(
    family.children.map(() => ['swept', '1', null]),
  )
  expect(new Set(children.map(({ txHash }) => txHash)).size).toBe(5)
  expect(await alpha(family.address)).toBe(5_000_000n)
  expect(await Promise.all(family.children.map(({ address }) => alpha(address)))).toEqual([0n, 0n, 0n, 0n, 0n])
  const spent = before - (await tokenBalance(tempo, 'pathUSD', settlerOf(world.server)))
  expect(spent).toBeGreaterThan(0n)
  expect(spent).toBeLessThan(500_000n)
  const again = await sweep(world, org, family, body)
  expect(again.body.childCount).toBe(0)
}, 180_000)

test('two requests in the same instant, at two processes that both work, sweep each child once', async () => {
  const family = await aFamily(world, org, tempo, { count: 6, of })
  const second = await world.another()
  const ask = (base: string) => request(base, { key: org.testKey, method: 'POST', path: `${family.path}/sweep`, body })
  const requested = await Promise.all([ask(world.base), ask(second.base), ask(world.base), ask(second.base)])
  expect(requested.map(({ status }) => status)).toEqual([202, 202, 202, 202])
  const reported = await Promise.all(requested.map(({ body: made }) => completed(world, org, family, made.id)))
  expect(reported.flat().map(({ status }) => status)).toEqual(family.children.map(() => 'swept'))
  expect(await Promise.all(family.children.map(({ address }) => countOf(address)))).toEqual([1, 1, 1, 1, 1, 1])
  expect(await alpha(family.address)).toBe(6_000_000n)
}, 180_000)

test('the working process dies after every step, and another continues; each child is swept once', async () => {
  const chain = await startChain({ network: 'tempo-moderato' })
  const orphaned = await aWorld({ chains: [chain], config: { role: 'api' } })
  const node = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  try {
    await fundToken(chain, 'pathUSD', settlerOf(orphaned.server), 50_000_000n)
    const by = await orphaned.organisation()
    const family = await aFamily(orphaned, by, chain, { count: 4, of })
    const requested = await sweep(orphaned, by, family, body)
    const progressOf = async () => {
      const row = z.object({ seen: z.string() })
      const statement = sql`select concat((select string_agg(status, ',' order by from_address) from sweep_transfers), '/',
        (select string_agg(status, ',' order by sender) from chain_transactions), '/', (select status from sweeps)) as seen`
      return (await orphaned.database.db.one(row, statement)).seen
    }
    const stages = new Set<string>()
    // The node mines at once and at intervals; both end here, and from now on it mines on request.
    await node.setIntervalMining({ interval: 0 })
    // The first process finds no block for what it sends, and so cannot finish a step before it is seen.
    const nextProgress = async () => {
      if (stages.size > 1) await node.mine({ blocks: 1 })
      return progressOf()
    }
    for (let seen = await progressOf(); !seen.endsWith('completed'); seen = await progressOf()) {
      stages.add(seen)
      const worker = await orphaned.another({ role: 'work' })
      await expect.poll(nextProgress, { timeout: 60_000, interval: 5 }).not.toBe(seen)
      await worker.server.stop()
    }
    expect(stages.size, 'ends at as many stages').toBeGreaterThanOrEqual(2)
    const { children } = await childrenOf(orphaned, by, family, requested.body.id)
    expect(children.map(({ status }) => status)).toEqual(['swept', 'swept', 'swept', 'swept'])
    expect(await Promise.all(family.children.map(({ address }) => countOf(address, chain)))).toEqual([1, 1, 1, 1])
    expect(await tokenBalance(chain, 'AlphaUSD', family.address)).toBe(4_000_000n)
  } finally {
    await orphaned.stop()
    await chain.stop()
  }
}, 180_000)

test('a wallet on Tempo sweeps by itself once it is configured to', async () => {
  const family = await aFamily(world, org, tempo, { count: 2, of })
  const autoSweep = { token: 'AlphaUSD', minAmount: '0.5', everyMinutes: 1 }
  expect((await world.call(org.testKey, 'PATCH', family.path, { autoSweep })).status).toBe(200)
  // A sweep that runs before a deposit is deep enough finds nothing, and the next one is due in a minute.
  const sweptBalance = async () => {
    await world.database.db.run(sql`update master_wallets set auto_sweep_due_at = now() where id = ${family.id}`)
    return alpha(family.address)
  }
  await expect.poll(sweptBalance, { ...patience, interval: 1_000 }).toBe(2_000_000n)
})

/** A deposit of the family's token that the watcher has seen, with its screening result so far. */
async function aDeposit(childId: string | undefined, rawAmount: number, frozen: number, aml: string): Promise<void> {
  const now = clock.now()
  const hash = generatePrivateKey()
  await still.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, aml_status, frozen_raw_amount,
      created_at)
    values (${newId('wtx', still.server.deps)}, ${own.id}, 'test', ${childId}, 'tempo-moderato', 'tempo', ${hash}, 0, 'in', 'transfer',
      'confirmed', ${tempo.tokens.AlphaUSD}, 'AlphaUSD', 6, ${rawAmount}, '0xbb', '0xcc', 1, ${hash}, ${now}, ${aml}, ${frozen}, ${now})`)
  await storeFrozenPlace(still.database.db, childId)
}

test('a frozen deposit is not swept, and one frozen after the request ends the transfer with the money left in place', async () => {
  const family = await aFamily(still, own, tempo, { count: 2, of })
  const [first, second] = family.children
  await aDeposit(first?.id, 400_000, 400_000, 'flagged')
  const requested = await sweep(still, own, family, body)
  expect(requested.body.children).toMatchObject([{ amount: '0.6' }, { amount: '1' }])
  await aDeposit(second?.id, 300_000, 300_000, 'flagged')
  await turn()
  const children = await completed(still, own, family, requested.body.id)
  expect(children.map(({ status, reason }) => [status, reason])).toEqual([
    ['swept', null],
    ['failed', 'amount-frozen'],
  ])
  expect([await alpha(family.address), await alpha(second?.address ?? '0x')]).toEqual([600_000n, 1_000_000n])
})

test('money whose sender is not screened yet stops its transfer, and is swept once its sender is clear', async () => {
  const family = await aFamily(still, own, tempo, { count: 1, of })
  const requested = await sweep(still, own, family, body)
  await aDeposit(family.children[0]?.id, 1_000_000, 0, 'pending')
  await turn()
  expect((await childrenOf(still, own, family, requested.body.id)).children).toMatchObject([{ status: 'pending' }])
  clock.forward(301_000)
  await turn()
  expect((await childrenOf(still, own, family, requested.body.id)).children).toMatchObject([{ status: 'pending' }])
  await still.database.db.run(
    sql`update wallet_transactions set aml_status = 'clear' where wallet_id = ${family.children[0]?.id}`,
  )
  await turn()
  expect(await completed(still, own, family, requested.body.id)).toMatchObject([{ status: 'swept' }])
})

test('a child whose money was moved meanwhile costs the operator nothing and is reported as failed', async () => {
  const family = await aFamily(still, own, tempo, { count: 1, of })
  const [child] = family.children
  const requested = await sweep(still, own, family, body)
  await still.database.db.run(
    sql`update sweep_transfers set raw_amount = 1000001 where from_address = ${child?.address}`,
  )
  await turn()
  expect(await completed(still, own, family, requested.body.id)).toMatchObject([
    { status: 'failed', reason: 'insufficient-balance' },
  ])
  expect(await countOf(child?.address ?? '0x')).toBe(0)
})

test('a transfer that could not be sent for a day is given up unsent', async () => {
  const family = await aFamily(still, own, tempo, { count: 1, of })
  const requested = await sweep(still, own, family, body)
  clock.forward(86_400_001)
  await turn()
  expect(await completed(still, own, family, requested.body.id)).toMatchObject([
    { status: 'failed', reason: 'authorization-expired' },
  ])
  expect(await alpha(family.children[0]?.address ?? '0x')).toBe(1_000_000n)
})

test('while the operator’s account cannot pay no nonce is assigned, and work continues once it can', async () => {
  const poor = await aWorld({ chains: [tempo] })
  try {
    const by = await poor.organisation()
    const family = await aFamily(poor, by, tempo, { count: 2, of })
    const requested = await sweep(poor, by, family, body)
    const { deps, settlerAddress } = poor.server
    await runOnce(deps, sweepOnTempo)
    const planned = sql`select count(*) as count from chain_transactions`
    expect((await poor.database.db.one(z.object({ count: z.bigint() }), planned)).count).toBe(0n)
    await fundToken(tempo, 'pathUSD', settlerAddress as Address, 50_000_000n)
    expect(await completed(poor, by, family, requested.body.id)).toMatchObject([
      { status: 'swept' },
      { status: 'swept' },
    ])
  } finally {
    await poor.stop()
  }
}, 180_000)

test('the daily gas budget also limits sweeps on Tempo', async () => {
  const small = await aWorld({ chains: [tempo], config: { role: 'api', settleNanoUsdPerDayMax: 1_400_000n } })
  try {
    const by = await small.organisation()
    const family = await aFamily(small, by, tempo, { count: 3, of })
    const refused = await sweep(small, by, family, body)
    expect([refused.status, codeOf(refused)]).toEqual([429, 'settlement-budget-exceeded'])
    const ids = family.children.map(({ id }) => id)
    expect((await sweep(small, by, family, { ...body, childAddressIds: ids.slice(0, 2) })).status).toBe(202)
  } finally {
    await small.stop()
  }
})

test('a transfer out of a child does not use what a sweep is taking, which would leave it without its fee', async () => {
  const family = await aFamily(still, own, tempo, { count: 1, of })
  const [child] = family.children
  await sweep(still, own, family, body)
  const to = { toAddress: stranger(), toChain: 'tempo', toToken: 'AlphaUSD' }
  const transfer = { fromWalletId: child?.id, fromToken: 'AlphaUSD', amount: '0.5', ...to }
  const refused = await still.call(own.testKey, 'POST', '/wallet-infra/transfer', transfer)
  expect([refused.status, codeOf(refused), refused.body.balances]).toEqual([
    422,
    'insufficient-balance',
    [{ token: 'AlphaUSD', required: '0.5', available: '0' }],
  ])
})

test('concurrent transfers and sweeps of the same children leave no child with a transaction that it cannot pay for', async () => {
  const family = await aFamily(world, org, tempo, { count: 8, of })
  const to = { toAddress: stranger(), toChain: 'tempo', toToken: 'AlphaUSD' }
  const transferOf = ({ id }: { readonly id: string }) =>
    world.call(org.testKey, 'POST', '/wallet-infra/transfer', {
      fromWalletId: id,
      fromToken: 'AlphaUSD',
      amount: '0.5',
      ...to,
    })
  const [requested, ...sent] = await Promise.all([sweep(world, org, family, body), ...family.children.map(transferOf)])
  await completed(world, org, family, requested.body.id)
  for (const response of sent) expect([201, 422]).toContain(response.status)
  const open = sql`select count(*) as count from chain_transactions where status <> 'final'`
  const counted = async () => (await world.database.db.one(z.object({ count: z.bigint() }), open)).count
  await expect.poll(counted, patience).toBe(0n)
  const paid = sent.filter(({ status }) => status === 201).length
  expect(await alpha(to.toAddress)).toBe(BigInt(paid) * 500_000n)
}, 180_000)
