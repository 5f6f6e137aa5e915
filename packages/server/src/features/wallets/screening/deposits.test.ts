import { randomBytes } from 'node:crypto'
import { networkByName, tokenBySymbol } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createFakeScreening, type FakeScreening } from '../../../../test/screening-double.ts'
import { ShiftedClock } from '../../../../test/webhooks/clock.ts'
import { aWorld, type Org, type World } from '../../../../test/world.ts'
import type { Screened } from '../../../partners/screening/port.ts'
import { sql, type Tx } from '../../../platform/db/db.ts'
import { newId } from '../../../platform/ids.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { withdraw } from '../deposits/store-scan.ts'
import { lockRowsAbove } from '../deposits/transaction-store.ts'
import { amountsOnHold } from './deposit-store.ts'
import { followList } from './follow.ts'
import { screeningRecurring } from './tasks.ts'

const dayMs = 86_400_000
const listed: Screened = { result: 'flagged', reason: 'listed', oracle: 'clean' }
const clean: Screened = { result: 'clear', reason: 'clean', oracle: 'clean' }
const nobodyKnows: Screened = { result: 'pending', reason: 'list-stale', oracle: 'clean' }
const network = networkByName('base-sepolia')
const usdc = network && tokenBySymbol(network, 'USDC')?.address
if (network === undefined || usdc === undefined) throw new Error('no USDC')

let world: World
let org: Org
let clock: ShiftedClock
let screening: FakeScreening

beforeEach(async () => {
  clock = new ShiftedClock()
  screening = createFakeScreening(() => clock.now())
  world = await aWorld({ config: { role: 'api' }, boot: { clock, screening } })
  org = await world.organisation()
})
afterEach(() => world.stop())

async function screenWhatIsDue(): Promise<void> {
  for (const work of screeningRecurring) await work.run(systemCtx(world.server.deps))
}

function anAddress(): `0x${string}` {
  return privateKeyToAddress(generatePrivateKey())
}

/** A deposit as the watcher stores it. */
async function aDeposit(walletId: string, from: string, rawAmount: bigint, direction = 'in'): Promise<string> {
  const { deps } = world.server
  const transactionId = newId('wtx', deps)
  const hash = `0x${randomBytes(32).toString('hex')}`
  const now = clock.now()
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at)
    values (${transactionId}, ${org.id}, 'test', ${walletId}, 'base-sepolia', 'base', ${hash}, 0, ${direction}, 'transfer', 'pending',
      ${usdc}, 'USDC', 6, ${rawAmount.toString()}, ${from}, ${anAddress()}, 1, ${hash}, ${now}, ${now})`)
  return transactionId
}

async function statusOf(transactionId: string): Promise<string> {
  const row = await world.database.db.one(
    z.object({ amlStatus: z.string(), frozen: z.string() }),
    sql`select aml_status, frozen_raw_amount::text as frozen from wallet_transactions where id = ${transactionId}`,
  )
  return `${row.amlStatus} ${row.frozen}`
}

const managed = () => newId('mwt', world.server.deps)

async function frozenIn(walletId: string): Promise<bigint> {
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const requested = { network: 'base-sepolia', token: usdc ?? '0x', upTo: 1_000_000_000n } as const
  const [held] = await amountsOnHold(world.database.db, [{ tenant, walletId, ...requested }])
  return held?.frozen ?? -1n
}

test('a flagged sender freezes exactly that amount in a managed wallet, and nothing in a wallet of the customer', async () => {
  const [bad, good] = [anAddress(), anAddress()]
  screening.setResult(bad, listed)
  const [mwt, cad, byw] = [managed(), newId('cad', world.server.deps), (await world.wallet(org)).id]
  const ids = [
    await aDeposit(mwt, bad, 500n),
    await aDeposit(mwt, good, 7_000n),
    await aDeposit(cad, bad, 30n),
    await aDeposit(byw, bad, 40n),
    await aDeposit(mwt, bad, 60n, 'out'),
  ]
  await screenWhatIsDue()
  expect(await Promise.all(ids.map(statusOf))).toEqual([
    'flagged 500',
    'clear 0',
    'flagged 30',
    'flagged 0',
    'pending 0',
  ])
  expect(await Promise.all([mwt, cad, byw].map(frozenIn))).toEqual([500n, 30n, 0n])
})

test('frozen money is released by a fresh clear result, and by nothing less', async () => {
  const bad = anAddress()
  screening.setResult(bad, listed)
  const wallet = managed()
  const deposit = await aDeposit(wallet, bad, 500n)
  await screenWhatIsDue()
  screening.setResult(bad, nobodyKnows)
  clock.forward(dayMs)
  await screenWhatIsDue()
  expect(await statusOf(deposit)).toBe('flagged 500')
  screening.setResult(bad, clean)
  clock.forward(dayMs)
  await screenWhatIsDue()
  expect([await statusOf(deposit), await frozenIn(wallet)]).toEqual(['clear 0', 0n])
  const { list } = await world.call(org.liveKey, 'GET', '/organisations/current/audit-log')
  expect(list.filter(({ action }) => action === 'wallets.transactions.screen')).toHaveLength(2)
})

test('a deposit whose sender no source can screen stays pending, and is screened again until one can', async () => {
  const from = anAddress()
  screening.setResult(from, nobodyKnows)
  const deposit = await aDeposit(managed(), from, 500n)
  await screenWhatIsDue()
  expect(await statusOf(deposit)).toBe('pending 0')
  screening.setResult(from, clean)
  clock.forward(61_000)
  await screenWhatIsDue()
  expect(await statusOf(deposit)).toBe('clear 0')
})

test('a sender who is listed later freezes deposits of the last thirty days, and no older ones', async () => {
  const from = anAddress()
  const old = await aDeposit(managed(), from, 1n)
  await screenWhatIsDue()
  clock.forward(31 * dayMs)
  const recent = await aDeposit(managed(), from, 2n)
  await screenWhatIsDue()
  screening.setResult(from, listed)
  screening.swapList([from.toLowerCase()])
  await screenWhatIsDue()
  expect([await statusOf(old), await statusOf(recent)]).toEqual(['clear 0', 'flagged 2'])
})

test('a deposit in a block that was reorganized away freezes nothing', async () => {
  const bad = anAddress()
  screening.setResult(bad, listed)
  const wallet = managed()
  await aDeposit(wallet, bad, 500n)
  await screenWhatIsDue()
  const { deps } = world.server
  await deps.db.tx(async (tx) => withdraw(deps, tx, await lockRowsAbove(tx, 'base-sepolia', 0n)))
  expect(await frozenIn(wallet)).toBe(0n)
})

test('a new list and the booking of blocks lock deposits in one order', async () => {
  const from = anAddress()
  const wallet = managed()
  const [first, second] = [await aDeposit(wallet, from, 1n), await aDeposit(wallet, from, 1n)].sort()
  // Its row is behind the other one now, in the table and in the index by sender.
  await world.database.db.run(
    sql`update wallet_transactions set from_address = lower(from_address) where id = ${first}`,
  )
  await followList(systemCtx(world.server.deps))
  screening.swapList([from.toLowerCase()])
  const locked = Promise.withResolvers<void>()
  const follow = Promise.withResolvers<void>()
  const lock = (tx: Tx, depositId: string | undefined) =>
    tx.run(sql`select from wallet_transactions where id = ${depositId} for update`)
  const booking = world.database.db.tx(async (tx) => {
    await lock(tx, first)
    locked.resolve()
    await follow.promise
    await lock(tx, second)
  })
  await locked.promise
  const following = followList(systemCtx(world.server.deps))
  const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await expect
    .poll(() => world.database.db.run(waiting))
    .toBe(1)
    .finally(follow.resolve)
  await Promise.all([booking, following])
})

test('a deposit whose screening the database refuses stays due alone: the others of its batch are stored', async () => {
  const wallet = managed()
  const refused = await aDeposit(wallet, anAddress(), 10n)
  const others = [await aDeposit(wallet, anAddress(), 20n), await aDeposit(wallet, anAddress(), 30n)]
  const { db } = world.database
  await db.run({
    values: [],
    text: `alter table wallet_transactions add constraint refused check (id <> '${refused}' or aml_status <> 'clear')`,
  })
  await screenWhatIsDue()
  expect(await Promise.all([refused, ...others].map(statusOf))).toEqual(['pending 0', 'clear 0', 'clear 0'])
  await db.run({ values: [], text: 'alter table wallet_transactions drop constraint refused' })
  clock.forward(61_000)
  await screenWhatIsDue()
  expect(await statusOf(refused)).toBe('clear 0')
})

test('deposits whose flags the database refuses are due again later, and hide none behind them', async () => {
  const [bad, wallet] = [anAddress(), managed()]
  screening.setResult(bad, listed)
  for (let count = 0; count < 100; count += 1) await aDeposit(wallet, bad, 1n)
  const { db } = world.database
  await db.run({
    values: [],
    text: `alter table wallet_transactions add constraint refused check (aml_status <> 'flagged' or raw_amount > 1)`,
  })
  clock.forward(1_000)
  const behind = await aDeposit(wallet, bad, 20n)
  await screenWhatIsDue()
  expect(await statusOf(behind)).toBe('flagged 20')
  await db.run({ values: [], text: 'alter table wallet_transactions drop constraint refused' })
  clock.forward(61_000)
  await screenWhatIsDue()
  expect(await frozenIn(wallet)).toBe(120n)
})

test('live deposits do not wait for a backlog of test deposits', async () => {
  for (let count = 0; count < 250; count += 1) await aDeposit(managed(), anAddress(), 1n)
  clock.forward(1_000)
  const live = anAddress()
  const deposit = await aDeposit(managed(), live, 1n)
  await world.database.db.run(sql`update wallet_transactions set environment = 'live' where id = ${deposit}`)
  await screenWhatIsDue()
  expect(screening.requested.indexOf(live)).toBe(0)
})
