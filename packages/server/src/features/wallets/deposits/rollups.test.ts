import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aHoldStage, aSender, type HoldStage, listed, type Movement, type Wallet } from '../../../../test/hold-stage.ts'
import { rowsRead } from '../../../../test/rows-read.ts'
import { sql, type Tx } from '../../../platform/db/db.ts'
import { amountsOnHold } from '../screening/deposit-store.ts'
import { listFrozenAmounts } from '../sweep/transfer-store.ts'

let stage: HoldStage

beforeAll(async () => {
  stage = await aHoldStage()
})
afterAll(() => stage?.stop())

/** Rows of the ledger and of what is kept beside it that the work reads. */
function rowsOf(work: (tx: Tx) => Promise<unknown>): Promise<bigint> {
  return stage.db.tx(async (tx) => {
    const read = () =>
      rowsRead(tx, '^(wallet_transactions|wallet_rollups|tainted_places|taint_checkpoints|opening_amounts)')
    const before = await read()
    await work(tx)
    return (await read()) - before
  })
}

/** Blocks between two movements, so that a wallet's movements are in many spans of blocks. */
const gap = 50n

/** A wallet that received one unit from each sender, in blocks that are final. */
async function aWallet(senders: readonly `0x${string}`[]): Promise<Wallet> {
  const wallet = await stage.master()
  const first = stage.newestBlock()
  const movements = senders.map(
    (from, n): Movement => ({ from, to: wallet.address, raw: 1n, block: first + gap * BigInt(n + 1) }),
  )
  for (let at = 0; at < movements.length; at += 2_000) await stage.book(...movements.slice(at, at + 2_000))
  await stage.endTraces()
  await stage.db.run(sql`update wallet_transactions set status = 'confirmed' where wallet_id = ${wallet.id}`)
  await stage.db.run(sql`vacuum (analyze) wallet_transactions`)
  return wallet
}

const honest = (count: number): `0x${string}`[] => Array.from({ length: count }, () => aSender())

test('the first flagged deposit of a wallet reads as many rows after 10,000 movements as after 10', async () => {
  const rowsOfFlagged = async (wallet: Wallet): Promise<bigint> => {
    const bad = aSender()
    stage.screening.setResult(bad, listed)
    return rowsOf((tx) => stage.bookIn(tx, { from: bad, to: wallet.address, raw: 7n }))
  }
  const [few, many] = [await aWallet(honest(10)), await aWallet(honest(10_000))]
  const [small, large] = [await rowsOfFlagged(few), await rowsOfFlagged(many)]
  expect(await stage.frozen(few, many)).toEqual([7n, 7n])
  expect(large).toBeLessThan(small + 500n)
  const Balance = z.object({ raw: z.string() })
  const balance = sql`select raw_balance::text as raw from taint_checkpoints where wallet_id = ${many.id}`
  expect(await stage.db.one(Balance, balance)).toEqual({ raw: '10000' })
})

test('what is frozen, and what an opening holds, is read from as many rows after 5,000 movements as after 10', async () => {
  const bad = aSender()
  stage.screening.setResult(bad, listed)
  const tenant = { organisationId: stage.org.id, environment: 'test' } as const
  const place = { network: stage.network.name, token: stage.usdc }
  const figuresOf = async (count: number) => {
    const wallet = await aWallet(Array.from({ length: count }, () => bad))
    const block = stage.newestBlock()
    await stage.db.run(sql`
      insert into opening_amounts (wallet_id, network, token, organisation_id, environment, block_number, raw_amount)
      values (${wallet.id}, ${place.network}, ${place.token}, ${stage.org.id}, 'test', ${block}, ${String(count + 3)}::numeric)`)
    let amount: unknown
    let frozen: unknown
    const rows = await rowsOf(async (tx) => {
      ;[amount] = await amountsOnHold(tx, [{ tenant, walletId: wallet.id, ...place, upTo: block }])
      frozen = await listFrozenAmounts(tx, tenant, {
        network: place.network,
        asset: place.token,
        walletIds: [wallet.id],
      })
    })
    expect(amount).toMatchObject({ frozen: BigInt(count), unscreened: 3n })
    expect(frozen).toEqual(new Map([[wallet.id, BigInt(count)]]))
    const [before] = await amountsOnHold(stage.db, [{ tenant, walletId: wallet.id, ...place, upTo: block - gap * 2n }])
    expect(before?.frozen).toBe(BigInt(count - 2))
    return rows
  }
  const [small, large] = [await figuresOf(10), await figuresOf(5_000)]
  expect(large).toBeLessThan(small + 400n)
})
