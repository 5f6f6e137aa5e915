import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { lifeOf, mortalDb } from '../mortal.ts'
import { aFakeChain, aTx, type FakeChain } from './fake-chain.ts'
import { aFollowStage, anAddress, begin, type FollowStage, transfer } from './follow-stage.ts'

let stage: FollowStage
let chain: FakeChain

beforeEach(async () => {
  stage = await aFollowStage()
  chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(40)
  await begin(stage, chain.node())
})
afterEach(() => stage.stop())

const transfers = 700
const organisations = 3

/** One block with more transfers, to an address that several organisations watch, than one transaction stores. */
async function aLargeBlock(): Promise<void> {
  const address = anAddress()
  for (let n = 0; n < organisations; n++) await stage.wallet({ address, tenant: await stage.anotherTenant() })
  chain.mine([aTx(...Array.from({ length: transfers }, (_, n) => transfer(stage.usdc, address, BigInt(n + 1))))])
}

/** The numbers of rows that each transaction stored. */
async function stored(): Promise<number[]> {
  const rows = await stage.database.db.many(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from wallet_transactions group by xmin::text order by 1`,
  )
  return rows.map(({ count }) => Number(count))
}

async function scannedTo(): Promise<number> {
  const row = await stage.database.db.one(z.object({ scanned: z.bigint() }), sql`select scanned from deposit_cursors`)
  return Number(row.scanned)
}

test('a block with more bookings than one transaction stores is stored in several, in the order of its logs for each wallet', async () => {
  await aLargeBlock()
  const follow = await stage.follower([chain.node()])
  await follow()
  expect(await stored()).toEqual([100, 1_000, 1_000])
  expect(await scannedTo()).toBe(chain.height)
  const rows = await stage.rows()
  for (const [, own] of Map.groupBy(rows, ({ walletId }) => walletId))
    expect(own.map(({ logIndex }) => logIndex)).toEqual(Array.from({ length: transfers }, (_, n) => n))
})

test('killed between the pieces of a block, the next process loses nothing and doubles nothing', async () => {
  await aLargeBlock()
  const before = await scannedTo()
  const parts: number[] = []
  for (let lifetime = 1; ; lifetime++) {
    const life = lifeOf(lifetime)
    const follow = await stage.follower([chain.node()], { db: mortalDb(stage.deps.db, life) })
    await follow().catch((error: unknown) => {
      if (!life.isDead()) throw error
    })
    if ((await scannedTo()) > before) break
    parts.push((await stage.rows()).length)
  }
  expect([...new Set(parts)]).toEqual([0, 1_000, 2_000])
  const rows = await stage.rows()
  expect(rows).toHaveLength(transfers * organisations)
  expect(new Set(rows.map(({ walletId, logIndex }) => `${walletId} ${logIndex}`)).size).toBe(transfers * organisations)
  chain.mineMany(12)
  // A pass ends by the clock, and here it confirms all.
  const follow = await stage.follower([chain.node()], { nowMs: () => 0 })
  await follow()
  expect(await stage.rows()).toHaveLength(transfers * organisations)
  expect(await stage.deposits()).toHaveLength(transfers * organisations)
}, 60_000)
