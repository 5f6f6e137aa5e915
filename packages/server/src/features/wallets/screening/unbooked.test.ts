import { tokenBySymbol } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { anEmptyDatabase } from '../../../../test/database.ts'
import { aHoldStage, aSender, clean, type HoldStage, listed, type Wallet } from '../../../../test/hold-stage.ts'
import type { Chain, Chains } from '../../../chain/port.ts'
import { sql } from '../../../platform/db/db.ts'
import { listMigrations, migrate } from '../../../platform/db/migrate.ts'
import { newId } from '../../../platform/ids.ts'
import { createReadFunds } from '../../funds/index.ts'
import { amountsOnHold } from './deposit-store.ts'

let stage: HoldStage

beforeAll(async () => {
  stage = await aHoldStage()
})
afterAll(() => stage?.stop())

/** Returns the amount that a wallet can send, and the amount that is kept back, if this is its balance in the newest booked block. */
async function spendable(wallet: Wallet, rawBalance: bigint) {
  const { network, org, db } = stage
  const coin = tokenBySymbol(network, 'USDC')
  if (coin === undefined) throw new Error('no USDC')
  const number = stage.newestBlock()
  const chain: Pick<Chain, 'offeredFees' | 'stateAt'> = {
    offeredFees: async () => ({ maxFee: 2n, priorityFee: 1n, baseFee: 1n, l1Fee: 0n, dataGas: 0n }),
    stateAt: async (questions) => {
      const block = { number, hash: `0x${'1'.repeat(64)}` as const, timestampSeconds: 1n }
      return { block, newest: number, values: questions.map(() => rawBalance) }
    },
  }
  const chains = { on: () => chain } as unknown as Chains
  const deposits = { amountsOnHold, bookedTo: async () => number, isBookedInTime: async () => true }
  const asset = { tenant: { organisationId: org.id, environment: 'test' }, network, walletId: wallet.id } as const
  const funds = await createReadFunds({ db, chains, deposits })(network, [{ ...asset, owner: wallet.address, coin }])
  const [{ available = -1n, frozen = -1n, unscreened = -1n } = {}] = funds.spendable
  return { available, kept: frozen + unscreened }
}

async function aListedDeposit(raw: bigint): Promise<Wallet> {
  const [wallet, bad] = [await stage.master(), aSender()]
  stage.screening.setResult(bad, listed)
  await stage.booked(bad, wallet, raw)
  return wallet
}

test('an honest deposit that a node leaves out and that is spent does not make listed money spendable', async () => {
  const wallet = await aListedDeposit(10n)
  const hidden = { from: aSender(), to: wallet.address, raw: 20n, block: stage.newestBlock() }
  expect(await spendable(wallet, 30n)).toEqual({ available: 20n, kept: 10n })
  await stage.book({ from: wallet.address, to: aSender(), raw: 20n })
  expect(await spendable(wallet, 10n)).toEqual({ available: 0n, kept: 10n })
  await stage.booked(aSender(), wallet, 5n)
  expect(await spendable(wallet, 15n)).toEqual({ available: 5n, kept: 10n })
  // The second reading finds it.
  await stage.book({ ...hidden, logIndex: 1 })
  expect(await spendable(wallet, 15n)).toEqual({ available: 5n, kept: 10n })
})

test('of a wallet with money from before its booking began, listed money stays while the other money leaves bit by bit', async () => {
  const wallet = await aListedDeposit(10n)
  let balance = 100n + 10n
  for (const raw of [4n, 30n, 60n, 6n]) {
    expect((await spendable(wallet, balance)).available).toBe(balance - 10n)
    await stage.book({ from: wallet.address, to: aSender(), raw })
    balance -= raw
  }
  expect(await spendable(wallet, balance)).toEqual({ available: 0n, kept: 10n })
})

test('a sender who is listed after unbooked money was spent keeps back no more than came from that sender', async () => {
  const [wallet, bad] = [await stage.master(), aSender()]
  await stage.booked(bad, wallet, 10n)
  await stage.book({ from: wallet.address, to: aSender(), raw: 60n })
  await stage.nowIs(listed, bad)
  expect(await spendable(wallet, 50n)).toEqual({ available: 40n, kept: 10n })
  await stage.nowIs(clean, bad)
  expect(await spendable(wallet, 50n)).toEqual({ available: 50n, kept: 0n })
})

test('where every movement is booked, listed money that left keeps back no clean money', async () => {
  const [wallet, bad] = [await stage.master(), aSender()]
  await stage.booked(bad, wallet, 10n)
  await stage.book({ from: wallet.address, to: aSender(), raw: 10n })
  await stage.nowIs(listed, bad)
  await stage.booked(aSender(), wallet, 7n)
  expect(await spendable(wallet, 7n)).toEqual({ available: 7n, kept: 0n })
})

/**
 * A payment that a release from before `raw_left` books in the block of a listed deposit, all of which seems to leave with it. The statements are
 * that release's.
 */
async function paidByOldRelease({ id, address }: Wallet, raw: bigint): Promise<void> {
  await stage.db.tx(async (tx) => {
    await tx.run(sql`
      insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status, token,
        token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at)
      select ${newId('wtx', stage.world.server.deps)}, organisation_id, environment, wallet_id, network, chain, ${`0x${id}`}, 1, 'out', kind, 'pending', token,
        token_symbol, decimals, ${String(raw)}::numeric, ${address}, ${aSender()}, block_number, block_hash, block_time, created_at
      from wallet_transactions where wallet_id = ${id}`)
    await tx.run(sql`
      delete from taint_checkpoints where wallet_id = ${id} and block_number >= (select min(block_number) from wallet_transactions where wallet_id = ${id})`)
    await tx.run(sql`
      insert into taint_checkpoints (organisation_id, environment, wallet_id, network, token, block_number, raw_balance, raw_tainted)
      select distinct organisation_id, environment, wallet_id, network, token, block_number, 0, 0 from wallet_transactions where wallet_id = ${id}`)
    await tx.run(sql`update wallet_transactions set frozen_raw_amount = 0 where wallet_id = ${id}`)
    await tx.run(sql`
      insert into tainted_places (organisation_id, environment, wallet_id, network, token, raw_frozen)
      select distinct organisation_id, environment, wallet_id, network, token, 0 from wallet_transactions where wallet_id = ${id}
      on conflict (wallet_id, network, token) do update set raw_frozen = excluded.raw_frozen`)
  })
}

test('unbooked money that is spent while a release from before this amount runs makes no listed money spendable', async () => {
  const wallet = await aListedDeposit(10n)
  await paidByOldRelease(wallet, 20n)
  expect(await spendable(wallet, 10n)).toEqual({ available: 0n, kept: 10n })
})

test('what a release from before this amount traced is traced again: what left is what came in less what is frozen', async () => {
  const wallet = await aListedDeposit(10n)
  const before = stage.newestBlock() - 1n
  await paidByOldRelease(wallet, 20n)
  await stage.booked(aSender(), wallet, 5n)
  expect(new Set(await storedAmounts(wallet))).toEqual(new Set([`${wallet.id} 10`, `${wallet.id} ${before} 0`]))
  expect(await spendable(wallet, 15n)).toEqual({ available: 5n, kept: 10n })
})

/** The amounts that left, as stored at assets of these wallets and at their checkpoints. */
async function storedAmounts(...wallets: readonly Wallet[]): Promise<readonly string[]> {
  const ids = wallets.map(({ id }) => id)
  const rows = await stage.db.many(
    z.object({ row: z.string() }),
    sql`select concat_ws(' ', wallet_id, coalesce(raw_left::text, 'unknown')) as row from tainted_places where wallet_id = any(${ids}::text[])
      union all select concat_ws(' ', wallet_id, block_number, coalesce(raw_left::text, 'unknown')) from taint_checkpoints
        where wallet_id = any(${ids}::text[]) order by 1`,
  )
  return rows.map(({ row }) => row)
}

test('the migration stores what tracing had stored', async () => {
  const [master, bad, honest] = [await stage.master(), aSender(), aSender()]
  stage.screening.setResult(bad, listed)
  const child = await stage.child(master)
  await stage.booked(bad, child, 500n)
  await stage.booked(child.address, master, 450n)
  const first = stage.newestBlock() + 1n
  const payments = Array.from({ length: 240 }, (_, n) => ({
    from: master.address,
    to: honest,
    raw: 1n,
    block: first + BigInt(n),
  }))
  await stage.book(...payments)
  const traced = await storedAmounts(master, child)
  expect(traced.filter((row) => row.startsWith(master.id)).length).toBeGreaterThan(2)
  for (const table of ['tainted_places', 'taint_checkpoints'])
    await stage.db.run({ text: `update ${table} set raw_left = null`, values: [] })
  await stage.db.run(sql`delete from schema_migrations where name like '0202_tainted_%'`)
  await migrate({ url: stage.world.database.url })
  expect(await storedAmounts(master, child)).toEqual(traced)
})

test('while the migration fills in what left, amounts on hold are read, and unbooked money stays on hold', async () => {
  const { db, url, drop } = await anEmptyDatabase()
  const all = await listMigrations()
  // Amounts on hold are read with the table of 0207 too.
  const before = all.filter(({ name }) => name < '0201' || name.startsWith('0207_'))
  await migrate({ url, migrations: before })
  const asset = { walletId: 'mwt_1', network: 'base-sepolia', token: '0xa' } as const
  await db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status, token,
      token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at, aml_status, frozen_raw_amount)
    values ('wtx_1', 'org_1', 'test', ${asset.walletId}, ${asset.network}, 'base', '0x1', 0, 'in', 'transfer', 'confirmed', ${asset.token}, 'USDC', 6, 10,
      '0x1', '0x2', 5, '0xblock', now(), now(), 'flagged', 10)`)
  await db.run(sql`
    insert into tainted_places (organisation_id, environment, wallet_id, network, token, raw_frozen)
    values ('org_1', 'test', ${asset.walletId}, ${asset.network}, ${asset.token}, 10)`)
  await db.run(sql`
    create function wait_for_test() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(1); return new; end'`)
  await db.run(sql`create trigger a_wait before update on tainted_places for each row execute function wait_for_test()`)
  const read = () =>
    db.tx(async (tx) => {
      await tx.run(sql`set local lock_timeout = 1000`)
      const tenant = { organisationId: 'org_1', environment: 'test' } as const
      const [amount] = await amountsOnHold(tx, [{ tenant, ...asset, upTo: 5n, rawBalance: 30n }])
      return { frozen: amount?.frozen, unscreened: amount?.unscreened }
    })
  let running: Promise<string[]> | undefined
  await db.tx(async (tx) => {
    await tx.run(sql`select pg_advisory_xact_lock(1)`)
    running = migrate({ url })
    const isFilling = sql`
      select count(*) > 0 as is from pg_locks join pg_database d on d.oid = database
      where locktype = 'advisory' and not granted and d.datname = current_database()`
    const seesIt = async () => (await db.one(z.object({ is: z.boolean() }), isFilling)).is
    await expect.poll(seesIt, { timeout: 20_000, interval: 5 }).toBe(true)
    expect(await read()).toEqual({ frozen: 10n, unscreened: 20n })
  })
  await running
  expect(await read()).toEqual({ frozen: 10n, unscreened: 0n })
  await drop()
}, 60_000)
