import { randomBytes } from 'node:crypto'
import { type DevChain, fundNative, startChain } from '@purser/devnet'
import { type Network, networkByName } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createLanes } from '../../src/chain/lanes/lanes.ts'
import { lockGasTaken } from '../../src/features/plans/store.ts'
import { passRelays } from '../../src/features/relayer/index.ts'
import { screeningRecurring } from '../../src/features/wallets/screening/tasks.ts'
import { signSweeps } from '../../src/features/wallets/sweep/relay.ts'
import type { Deps } from '../../src/modules.ts'
import { sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { aSigner } from '../lane-stage.ts'
import { relayPartsOf } from '../relay-stage.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { aFamily, childrenOf, sweep } from '../sweep-stage.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

/** No background work: a test runs screening and sending. */
let chain: DevChain
let world: World
let org: Org
let network: Network
let deps: Deps
let clock: ShiftedClock
let screening: FakeScreening

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  clock = new ShiftedClock()
  screening = createFakeScreening(() => clock.now())
  world = await aWorld({ chains: [chain], config: { role: 'api' }, boot: { clock, screening } })
  const known = networkByName('base-sepolia')
  if (known === undefined) throw new Error('no such network')
  network = known
  const signer = await aSigner()
  await fundNative(chain, signer.address, 10n ** 20n)
  const own = world.server.deps
  const lanes = createLanes({ deps: own, chains: own.chains, signerOf: async () => signer, openMax: 1_000 })
  deps = { ...own, lanes, settlerAddress: signer.address }
})
beforeEach(async () => {
  org = await world.organisation()
  screening.isStale = false
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const minuteMs = 60_000

/** A deposit that the watcher has just seen. */
async function aDeposit(childId: string | undefined, from: string, rawAmount: number): Promise<void> {
  const hash = `0x${randomBytes(32).toString('hex')}`
  const now = clock.now()
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at)
    values (${newId('wtx', world.server.deps)}, ${org.id}, 'test', ${childId}, 'base-sepolia', 'base', ${hash}, 0, 'in', 'transfer', 'pending',
      ${chain.tokens.USDC}, 'USDC', 6, ${rawAmount}, ${from}, ${from}, 1, ${hash}, ${now}, ${now})`)
}

async function screenWhatIsDue(): Promise<void> {
  for (const work of screeningRecurring) await work.run(systemCtx(world.server.deps))
}

async function pass(): Promise<void> {
  await signSweeps.run(systemCtx(deps))
  await passRelays(relayPartsOf(deps), network)
}

function amountsOf(body: Record<string, unknown>) {
  return z.array(z.object({ amount: z.string() })).parse(body.children)
}

const sender = (): `0x${string}` => `0x${randomBytes(20).toString('hex')}`

test('a deposit is excluded from a sweep until its sender is screened, and is then swept', async () => {
  const family = await aFamily(world, org, chain, { count: 2 })
  await aDeposit(family.children[0]?.id, sender(), 400_000)
  expect(amountsOf((await sweep(world, org, family)).body)).toEqual([{ amount: '0.6' }, { amount: '1' }])
  const other = await aFamily(world, org, chain, { count: 1 })
  await aDeposit(other.children[0]?.id, sender(), 400_000)
  await screenWhatIsDue()
  expect(amountsOf((await sweep(world, org, other)).body)).toEqual([{ amount: '1' }])
})

test('unscreened money is not swept, however long it waits and also while the list is stale', async () => {
  const [late, stale] = [await aFamily(world, org, chain, { count: 1 }), await aFamily(world, org, chain, { count: 1 })]
  await aDeposit(late.children[0]?.id, sender(), 400_000)
  clock.forward(24 * 60 * minuteMs)
  expect(amountsOf((await sweep(world, org, late)).body)).toEqual([{ amount: '0.6' }])
  await aDeposit(stale.children[0]?.id, sender(), 400_000)
  screening.isStale = true
  expect(amountsOf((await sweep(world, org, stale)).body)).toEqual([{ amount: '0.6' }])
})

test('money of a flagged sender that was seen after the sweep was requested is not sent, and money of a clear one is', async () => {
  const family = await aFamily(world, org, chain, { count: 2 })
  const requested = await sweep(world, org, family)
  const [bad, good] = [sender(), sender()]
  screening.setResult(bad, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  await aDeposit(family.children[0]?.id, bad, 1_000_000)
  await aDeposit(family.children[1]?.id, good, 1_000_000)
  const states = async () =>
    (await childrenOf(world, org, family, requested.body.id)).children.map(({ status, reason }) => [status, reason])
  await pass()
  expect(await states()).toEqual([
    ['pending', null],
    ['pending', null],
  ])
  await screenWhatIsDue()
  await expect.poll(async () => pass().then(states)).toContainEqual(['failed', 'amount-frozen'])
  expect((await states())[0]).toEqual(['failed', 'amount-frozen'])
  const sent = sql`select count(*) as count from relays where subject_id like ${`${requested.body.id} %`} and state = 'included'`
  expect((await world.database.db.one(z.object({ count: z.bigint() }), sent)).count).toBe(1n)
})

test('a planned sweep waits while a trace of flagged money in its token is unfinished', async () => {
  const family = await aFamily(world, org, chain, { count: 1 })
  const requested = await sweep(world, org, family)
  const { db } = world.database
  await db.run(sql`
    insert into taint_traces (organisation_id, environment, wallet_id, network, token, block_number, first_block)
    values (${org.id}, 'test', 'cad_other', 'base-sepolia', ${chain.tokens.USDC}, 2, 1)`)
  const sent = sql`select count(*) as count from relays where subject_id like ${`${requested.body.id} %`} and state = 'included'`
  const sentCount = async () => Number((await db.one(z.object({ count: z.bigint() }), sent)).count)
  await pass()
  await pass()
  expect(await sentCount()).toBe(0)
  await db.run(sql`delete from taint_traces where organisation_id = ${org.id}`)
  await expect.poll(async () => pass().then(sentCount)).toBe(1)
})

test('a sweep that waits for the gas budget of its organisation does not delay those of others', async () => {
  const family = await aFamily(world, org, chain, { count: 1 })
  const turnOf = (id: string) =>
    world.database.db.one(z.object({ turn: z.number() }), sql`select hashtext(${id}) & 3 as turn`)
  const { turn } = await turnOf(org.id)
  let other = await world.organisation()
  while ((await turnOf(other.id)).turn === turn) other = await world.organisation()
  const otherFamily = await aFamily(world, other, chain, { count: 1 })
  const tenant = { organisationId: org.id, environment: 'test' } as const
  let waiting: Promise<Answer> | undefined
  await world.database.db.tx(async (tx) => {
    await lockGasTaken(tx, { tenant, networks: [network.name], day: '2026-11-29' })
    waiting = sweep(world, org, family)
    waiting.catch(() => undefined)
    await expect.poll(isBlocked, { timeout: 90_000 }).toBe(true)
    expect((await sweep(world, other, otherFamily)).status).toBe(202)
  })
  expect((await waiting)?.status).toBe(202)
})

test('organisations of one account that wait for its gas budget delay one group of others, not all', async () => {
  const { db } = world.database
  const turnOf = async (id: string) =>
    (await db.one(z.object({ turn: z.number() }), sql`select hashtext(${id}) & 3 as turn`)).turn
  const account = `acc_${'0'.repeat(26)}`
  const turn = await turnOf(account)
  let [own, other] = [org, await world.organisation()]
  while ((await turnOf(own.id)) === turn) own = await world.organisation()
  while (other.id === own.id || (await turnOf(other.id)) !== (await turnOf(own.id))) other = await world.organisation()
  const [family, otherFamily] = [
    await aFamily(world, own, chain, { count: 1 }),
    await aFamily(world, other, chain, { count: 1 }),
  ]
  await db.run(sql`insert into accounts (id, email, created_at) values (${account}, 'shared@example.com', now())`)
  await db.run(sql`update organisations set plan = 'hobby', quota_account_id = ${account} where id = ${own.id}`)
  const tenant = { organisationId: own.id, environment: 'test' } as const
  let waiting: Promise<Answer> | undefined
  await db.tx(async (tx) => {
    await lockGasTaken(tx, { tenant, networks: [network.name], day: '2026-11-29' })
    waiting = sweep(world, own, family)
    waiting.catch(() => undefined)
    await expect.poll(isBlocked, { timeout: 90_000 }).toBe(true)
    expect((await sweep(world, other, otherFamily)).status).toBe(202)
  })
  expect((await waiting)?.status).toBe(202)
})

async function isBlocked(): Promise<boolean> {
  const { is } = await world.database.db.one(
    z.object({ is: z.boolean() }),
    sql`select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock') as is`,
  )
  return is
}

test('ending a sweep while another finds its money frozen causes no deadlock', async () => {
  const family = await aFamily(world, org, chain, { count: 2 })
  const requested = await sweep(world, org, family)
  const bad = sender()
  screening.setResult(bad, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  await aDeposit(family.children[0]?.id, bad, 1_000_000)
  await screenWhatIsDue()
  const { db } = world.database
  const sweepId = String(requested.body.id)
  let passing: Promise<void> | undefined
  await db.tx(async (tx) => {
    await tx.run(sql`select from sweeps where id = ${sweepId} for update`)
    passing = pass()
    passing.catch(() => undefined)
    await expect.poll(isBlocked, { timeout: 90_000 }).toBe(true)
    await tx.run(
      sql`update sweep_transfers set attempt = attempt where sweep_id = ${sweepId} and status in ('planned', 'signed', 'sent')`,
    )
  })
  await passing
  const { children } = await childrenOf(world, org, family, sweepId)
  expect(children[0]).toMatchObject({ status: 'failed', reason: 'amount-frozen' })
})
