import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aHoldStage, aSender, type HoldStage, listed, type Movement, type Wallet } from '../../../../test/hold-stage.ts'
import { sql, type Tx } from '../../../platform/db/db.ts'
import { lockNetwork } from '../deposits/cursor-store.ts'
import { continueTraces } from './taint.ts'

let stage: HoldStage
beforeAll(async () => {
  stage = await aHoldStage()
})
afterAll(() => stage?.stop())

const count = 2_400
const rowsMax = 1_000
const Count = z.object({ count: z.bigint().transform(Number) })

/** The deposits whose frozen amounts differ from those before the transaction. */
interface Frozen {
  readonly before: ReadonlyMap<string, bigint>
  readonly after: ReadonlyMap<string, bigint>
}

const Row = z.object({ id: z.string(), raw: z.string().transform(BigInt) })

async function frozenOf(tx: Tx, { id }: Wallet): Promise<Map<string, bigint>> {
  const rows = await tx.many(
    Row,
    sql`select id, frozen_raw_amount::text as raw from wallet_transactions where wallet_id = ${id} and direction = 'in'`,
  )
  return new Map(rows.map((row) => [row.id, row.raw]))
}

const changed = ({ before, after }: Frozen): number =>
  [...after].filter(([id, raw]) => (before.get(id) ?? 0n) !== raw).length

/** Runs this in a transaction, and expects it to change at most `rowsMax` frozen amounts. */
async function bounded<T>(wallet: Wallet, run: (tx: Tx) => Promise<T>): Promise<T> {
  return stage.db.tx(async (tx) => {
    await lockNetwork(tx, stage.network.name)
    const before = await frozenOf(tx, wallet)
    const result = await run(tx)
    expect(changed({ before, after: await frozenOf(tx, wallet) })).toBeLessThanOrEqual(rowsMax)
    return result
  })
}

const isAnyLeft = async (): Promise<boolean> =>
  (await stage.db.one(Count, sql`select count(*) as count from taint_traces`)).count > 0

const all = 10n ** 50n

/** Ends the steps, each first without its commit; returns how many there were. A clean deposit is booked after each. */
async function finish(wallet: Wallet): Promise<number> {
  let steps = 0
  for (; await isAnyLeft(); steps++) {
    expect((await stage.onHold(wallet)).unscreened).toBeGreaterThan(all)
    const step = (tx: Tx): Promise<boolean> => continueTraces(tx, stage.network.name)
    const crashed = stage.db.tx(async (tx) => {
      await step(tx)
      throw new Error('the process died')
    })
    await expect(crashed).rejects.toThrow('the process died')
    await bounded(wallet, step)
    // A deposit of the flagged sender between two steps is frozen too, and delays none of them.
    if (steps === 0) await bounded(wallet, (tx) => stage.bookIn(tx, ...deposits(wallet, 1)))
  }
  expect((await stage.onHold(wallet)).unscreened).toBeLessThan(all)
  return steps
}

let bad = aSender()
const deposits = (wallet: Wallet, most: number): Movement[] => {
  const first = stage.newestBlock() + 1n
  return Array.from({ length: most }, (_, at) => ({
    from: bad,
    to: wallet.address,
    raw: 2n,
    block: first + BigInt(at),
  }))
}

/** The frozen amounts of the wallet's deposits, oldest first, and of the wallet. */
async function shares(wallet: Wallet): Promise<{ readonly own: readonly bigint[]; readonly sum: bigint | undefined }> {
  const own = (await stage.deposits(wallet)).map(({ frozen }) => BigInt(frozen))
  const [sum] = await stage.frozen(wallet)
  return { own, sum }
}

test('each transaction freezes or thaws at most 1,000 deposits of a wallet: the whole balance is on hold until the last step, and a crash loses nothing', async () => {
  bad = aSender()
  stage.screening.setResult(bad, listed)
  const wallet = await stage.master()
  const early = stage.newestBlock() + 1n
  await stage.book({ from: aSender(), to: wallet.address, raw: 2n, block: early })

  await bounded(wallet, (tx) => stage.bookIn(tx, ...deposits(wallet, count)))
  expect(await finish(wallet)).toBeGreaterThan(1)
  let frozen = count + 1
  expect(await shares(wallet)).toEqual({ own: [0n, ...Array(frozen).fill(2n)], sum: BigInt(frozen) * 2n })

  // The clean deposit leaves first, and then the oldest deposits of the flagged sender.
  const standing = stage.newestBlock()
  const left = 2_001
  const out = { from: wallet.address, to: aSender(), raw: BigInt(left) * 2n + 1n }
  await bounded(wallet, (tx) => stage.bookIn(tx, out))
  expect(await finish(wallet)).toBeGreaterThan(1)
  frozen += 1
  expect(await shares(wallet)).toEqual({
    own: [...Array(left).fill(0n), 1n, ...Array(frozen - left).fill(2n)],
    sum: BigInt(frozen - left) * 2n + 1n,
  })

  await stage.reorganize(standing)
  expect(await finish(wallet)).toBeGreaterThan(1)
  expect(await shares(wallet)).toEqual({ own: [0n, ...Array(frozen).fill(2n)], sum: BigInt(frozen) * 2n })

  // A deposit before all others, which the watcher missed: each later one is read again.
  await bounded(wallet, (tx) => stage.bookIn(tx, { from: bad, to: wallet.address, raw: 2n, block: early, logIndex: 1 }))
  expect(await finish(wallet)).toBeGreaterThan(1)
  frozen += 2
  expect(await shares(wallet)).toEqual({ own: [0n, ...Array(frozen).fill(2n)], sum: BigInt(frozen) * 2n })
}, 300_000)
