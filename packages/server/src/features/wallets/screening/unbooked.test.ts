import { readFileSync } from 'node:fs'
import { tokenBySymbol } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aHoldStage, aSender, clean, type HoldStage, listed, type Wallet } from '../../../../test/hold-stage.ts'
import type { Chain, Chains } from '../../../chain/port.ts'
import { sql } from '../../../platform/db/db.ts'
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
    offeredFees: async () => ({ maxFee: 2n, priorityFee: 1n, baseFee: 1n, l1Fee: 0n }),
    stateAt: async (questions) => {
      const block = { number, hash: `0x${'1'.repeat(64)}` as const, timestampSeconds: 1n }
      return { block, newest: number, values: questions.map(() => rawBalance) }
    },
  }
  const chains = { on: () => chain } as unknown as Chains
  const deposits = { amountsOnHold, bookedTo: async () => number, isBookedInTime: async () => true }
  const place = { tenant: { organisationId: org.id, environment: 'test' }, network, walletId: wallet.id } as const
  const funds = await createReadFunds({ db, chains, deposits })(network, [{ ...place, owner: wallet.address, coin }])
  const [{ available = -1n, frozen = -1n, unscreened = -1n } = {}] = funds.spendable
  return { available, kept: frozen + unscreened }
}

async function aListedDeposit(raw: bigint): Promise<Wallet> {
  const [wallet, bad] = [await stage.master(), aSender()]
  stage.screening.say(bad, listed)
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

test('where every movement is booked, listed money that left keeps back no honest money', async () => {
  const [wallet, bad] = [await stage.master(), aSender()]
  await stage.booked(bad, wallet, 10n)
  await stage.book({ from: wallet.address, to: aSender(), raw: 10n })
  await stage.nowIs(listed, bad)
  await stage.booked(aSender(), wallet, 7n)
  expect(await spendable(wallet, 7n)).toEqual({ available: 7n, kept: 0n })
})

const migration = readFileSync(
  new URL('../../../platform/db/migrations/0201_tainted_money_that_left.sql', import.meta.url),
  'utf8',
)

/** The amounts that left, as stored at places and at their checkpoints. */
async function storedAmounts(): Promise<readonly string[]> {
  const rows = await stage.db.many(
    z.object({ row: z.string() }),
    sql`select concat_ws(' ', wallet_id, raw_left) as row from tainted_places
      union all select concat_ws(' ', wallet_id, block_number, raw_left) from taint_checkpoints order by 1`,
  )
  return rows.map(({ row }) => row)
}

test('the migration stores what tracing had stored', async () => {
  const [master, bad, honest] = [await stage.master(), aSender(), aSender()]
  stage.screening.say(bad, listed)
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
  const traced = await storedAmounts()
  expect(traced.filter((row) => row.startsWith(master.id)).length).toBeGreaterThan(2)
  for (const table of ['tainted_places', 'taint_checkpoints'])
    await stage.db.run({ text: `update ${table} set raw_left = 0`, values: [] })
  for (const text of migration.split(/;\n/).filter((part) => part.includes('update ')))
    await stage.db.run({ text, values: [] })
  expect(await storedAmounts()).toEqual(traced)
})
