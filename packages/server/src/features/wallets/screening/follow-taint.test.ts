import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import {
  aHoldStage,
  aSender,
  clean,
  type HoldStage,
  listed,
  type Movement,
  type Wallet,
} from '../../../../test/hold-stage.ts'
import { sql, type Tx } from '../../../platform/db/db.ts'

let stage: HoldStage

beforeAll(async () => {
  stage = await aHoldStage()
})
afterAll(() => stage?.stop())

async function aFamily(): Promise<readonly [Wallet, Wallet, Wallet]> {
  const master = await stage.master()
  return [master, await stage.child(master), await stage.child(master)]
}

test('clearing a sender releases the money at the places to which it moved, over several wallets', async () => {
  const [[master, child, other], bad] = [await aFamily(), aSender()]
  stage.screening.setResult(bad, listed)
  await stage.booked(bad, child, 8n)
  await stage.booked(child.address, other, 8n)
  await stage.booked(other.address, master, 6n)
  expect(await stage.frozen(child, other, master)).toEqual([0n, 2n, 6n])
  await stage.screenWhatIsDue()
  await stage.nowIs(clean, bad)
  expect(await stage.frozen(child, other, master)).toEqual([0n, 0n, 0n])
  await stage.nowIs(listed, bad)
  expect(await stage.frozen(child, other, master)).toEqual([0n, 2n, 6n])
})

test('a flag that booking set and the first screening ends freezes nothing, also where the money moved, and raises no event', async () => {
  const [[master, child], bad] = [await aFamily(), aSender()]
  stage.screening.setResult(bad, listed)
  await stage.booked(bad, child, 8n)
  await stage.booked(child.address, master, 6n)
  expect(await stage.frozen(child, master)).toEqual([2n, 6n])
  const events = (await stage.events('wallet.flagged')).length
  await stage.nowIs(clean, bad)
  expect(await stage.frozen(child, master)).toEqual([0n, 0n])
  expect(await stage.events('wallet.flagged')).toHaveLength(events)
  await stage.nowIs(listed, bad)
  expect(await stage.frozen(child, master)).toEqual([2n, 6n])
  expect(await stage.events('wallet.flagged')).toHaveLength(events + 1)
})

test('clearing one of two senders leaves the money of the other frozen at its present place', async () => {
  const [[master, child], one, two] = [await aFamily(), aSender(), aSender()]
  for (const sender of [one, two]) stage.screening.setResult(sender, listed)
  await stage.booked(one, child, 3n)
  await stage.booked(two, child, 4n)
  await stage.booked(child.address, master, 5n)
  expect(await stage.frozen(child, master)).toEqual([2n, 5n])
  await stage.screenWhatIsDue()
  await stage.nowIs(clean, one)
  expect(await stage.frozen(child, master)).toEqual([2n, 2n])
  await stage.nowIs(clean, two)
  expect(await stage.frozen(child, master)).toEqual([0n, 0n])
})

test('a reorganization that removes the flagged deposit or the movement is followed', async () => {
  const [[master, child], bad] = [await aFamily(), aSender()]
  stage.screening.setResult(bad, listed)
  await stage.booked(bad, child, 8n)
  const before = stage.newestBlock()
  await stage.booked(child.address, master, 8n)
  await stage.reorganize(before)
  expect(await stage.frozen(child, master)).toEqual([8n, 0n])
  await stage.booked(child.address, master, 3n)
  expect(await stage.frozen(child, master)).toEqual([5n, 3n])
  await stage.reorganize(before - 1n)
  expect(await stage.frozen(child, master)).toEqual([0n, 0n])
})

/** Rows of the ledger and of the taint tables that the transaction has read. */
async function rowsReadBy(tx: Tx): Promise<number> {
  const { rows } = await tx.one(
    z.object({ rows: z.bigint() }),
    sql`
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint as rows from pg_stat_xact_user_tables
    where relname in ('wallet_transactions', 'tainted_places', 'taint_checkpoints')`,
  )
  return Number(rows)
}

/** Books with the plans for all values that the watcher uses. */
function rowsOfBooking(movement: Movement): Promise<number> {
  return stage.db.tx(
    async (tx) => {
      await stage.bookIn(tx, movement)
      return rowsReadBy(tx)
    },
    { readsByKeys: true },
  )
}

/** A wallet with flagged dust and this many honest movements in and out, before and after the dust. */
async function aDustyWallet(movements: number): Promise<Wallet> {
  const [wallet, bad, honest] = [await stage.master(), aSender(), aSender()]
  stage.screening.setResult(bad, listed)
  const traffic = (): Movement[] =>
    Array.from({ length: movements / 2 }, (_, n) => ({
      ...(n % 3 === 2 ? { from: wallet.address, to: honest } : { from: honest, to: wallet.address }),
      raw: 5n,
      block: stage.newestBlock() + 1n + BigInt(n),
    }))
  await stage.book(...traffic())
  await stage.booked(bad, wallet, 1n)
  await stage.book(...traffic())
  return wallet
}

test('flagged dust does not slow later movements: with 10,000 movements as few rows are read as with 10', async () => {
  const [few, many] = [await aDustyWallet(10), await aDustyWallet(10_000)]
  await stage.db.run(sql`analyze wallet_transactions`)
  const costsOf = async ({ address }: Wallet): Promise<number[]> => [
    await rowsOfBooking({ from: aSender(), to: address, raw: 1n }),
    await rowsOfBooking({ from: address, to: aSender(), raw: 1n }),
  ]
  const [small, large] = [await costsOf(few), await costsOf(many)]
  expect(await stage.frozen(few, many)).toEqual([1n, 1n])
  expect(Math.max(...large)).toBeLessThan(Math.max(...small) + 500)
})

async function aFlaggedWallet(deposits: number): Promise<Wallet> {
  const [wallet, bad] = [await stage.master(), aSender()]
  stage.screening.setResult(bad, listed)
  const block = stage.newestBlock() + 1n
  await stage.book(
    ...Array.from({ length: deposits }, (_, n) => ({
      from: bad,
      to: wallet.address,
      raw: 1n,
      block: block + BigInt(n),
    })),
  )
  await stage.endTraces()
  return wallet
}

/** Whether each frozen deposit of a wallet is newer than each that is not. */
async function isNewestFrozen({ id }: Wallet): Promise<boolean> {
  const { isNewest } = await stage.db.one(
    z.object({ isNewest: z.boolean() }),
    sql`
    select min(block_number) filter (where frozen_raw_amount > 0) > max(block_number) filter (where frozen_raw_amount = 0) as is_newest
    from wallet_transactions where wallet_id = ${id} and direction = 'in'`,
  )
  return isNewest
}

test('when flagged money leaves, only deposits are read whose frozen amount changes: of 2,000 as few as of 10', async () => {
  const [few, many] = [await aFlaggedWallet(10), await aFlaggedWallet(2_000)]
  await stage.db.run(sql`analyze wallet_transactions`)
  const costOf = ({ address }: Wallet): Promise<number> => rowsOfBooking({ from: address, to: aSender(), raw: 1n })
  const [small, large] = [await costOf(few), await costOf(many)]
  expect(await stage.frozen(few, many)).toEqual([9n, 1_999n])
  expect(large).toBeLessThan(small + 500)
  const before = stage.newestBlock()
  await stage.book({ from: many.address, to: aSender(), raw: 700n, block: stage.newestBlock() + 1n })
  expect([await stage.frozen(many), await isNewestFrozen(many)]).toEqual([[1_299n], true])
  await stage.reorganize(before)
  expect([await stage.frozen(many), await isNewestFrozen(many)]).toEqual([[1_999n], true])
})
