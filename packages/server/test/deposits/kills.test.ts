import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { type Life, lifeOf, mortalDb } from '../mortal.ts'
import { aFakeChain, aTx, type FakeChain } from './fake-chain.ts'
import { aFollowStage, type FollowReads, type FollowStage, transfer } from './follow-stage.ts'

let stage: FollowStage

beforeAll(async () => {
  stage = await aFollowStage()
})
afterAll(() => stage.stop())

function mortalReads(reads: FollowReads, { before }: Life): FollowReads {
  return {
    head: () => before(() => reads.head()),
    transfers: (range, isWanted) => before(() => reads.transfers(range, isWanted)),
    transferReceipt: (hash) => before(() => reads.transferReceipt(hash)),
    newestBlock: () => before(() => reads.newestBlock()),
    finalBlock: () => before(() => reads.finalBlock()),
    confirmTransfers: (claims) => before(() => reads.confirmTransfers(claims)),
    areInvented: (claims) => before(() => reads.areInvented(claims)),
    areFinal: (blocks) => before(() => reads.areFinal(blocks)),
    areReplaced: (blocks) => before(() => reads.areReplaced(blocks)),
    eachNode: () =>
      reads.eachNode().map((node) => ({
        transfers: (range, isWanted) => before(() => node.transfers(range, isWanted)),
      })),
  }
}

/** A deposit, a reorganization that moves it, another deposit, and its confirmation: every kind of step. */
async function live(chain: FakeChain, look: () => Promise<void>, to: `0x${string}`): Promise<void> {
  const [first, second] = [aTx(transfer(stage.usdc, to, 1n)), aTx(transfer(stage.usdc, to, 2n))]
  await look()
  chain.mine([first])
  await look()
  chain.dropBlocks(3)
  chain.mine()
  chain.mine([second])
  chain.mine()
  chain.mine([first])
  await look()
  await look()
  chain.mineMany(3)
  await look()
  chain.mineMany(10)
  await look()
}

async function anew(): Promise<FakeChain> {
  for (const table of [sql`delete from scanned_blocks`, sql`delete from deposit_cursors`])
    await stage.database.db.run(table)
  for (const table of [sql`delete from wallet_transactions`, sql`delete from events`])
    await stage.database.db.run(table)
  const chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(12)
  return chain
}

/** One run in which the process dies before its n-th step, and another continues. Returns the number of steps that it began. */
async function dieAt(lifetime: number): Promise<number> {
  const chain = await anew()
  const wallet = await stage.wallet()
  const life = lifeOf(lifetime)
  const mortal = { db: mortalDb(stage.deps.db, life), wrap: (reads: FollowReads) => mortalReads(reads, life) }
  let follow = await stage.follower([chain.node()], mortal)
  const look = async (): Promise<void> => {
    try {
      await follow()
    } catch (error) {
      if (!life.isDead()) throw error
      follow = await stage.follower([chain.node()])
      await follow()
    }
  }
  await live(chain, look, wallet.address)
  const rows = (await stage.rows()).filter(({ status }) => status !== 'withdrawn')
  expect(rows.map(({ rawAmount, status }) => [rawAmount, status]).sort(), `killed at step ${lifetime}`).toEqual([
    ['1', 'confirmed'],
    ['2', 'confirmed'],
  ])
  expect((await stage.deposits()).map(({ rawAmount }) => rawAmount).sort(), `killed at step ${lifetime}`).toEqual([
    '1',
    '2',
  ])
  return life.steps()
}

test('killed before or after any one step, the next process loses nothing and doubles nothing', async () => {
  const steps = await dieAt(Number.POSITIVE_INFINITY)
  expect(steps).toBeGreaterThan(40)
  for (let lifetime = 1; lifetime <= steps; lifetime++) await dieAt(lifetime)
})

test('a leader that lost its lead unnoticed writes nothing', async () => {
  const chain = await anew()
  const wallet = await stage.wallet()
  const old = await stage.follower([chain.node()])
  await old()
  const fork = chain.branch()
  fork.mine([aTx(transfer(stage.usdc, wallet.address))])
  fork.mineMany(4)
  const slow = await stage.follower([fork.node()])
  const young = await stage.follower([chain.node()])
  chain.mineMany(2)
  await young()
  await expect(slow()).rejects.toMatchObject({ name: 'LeadLost' })
  await expect(old()).rejects.toMatchObject({ name: 'LeadLost' })
  expect(await stage.rows()).toEqual([])
})

test('where a fail-over of the database assigned an epoch again, the leader of before writes nothing', async () => {
  const chain = await anew()
  const wallet = await stage.wallet()
  const old = await stage.follower([chain.node()])
  await old()
  // The standby did not have the last lease.
  await stage.database.db.run(sql`update deposit_cursors set epoch = epoch - 1`)
  const young = await stage.follower([chain.node()])
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  await expect(old()).rejects.toMatchObject({ name: 'LeadLost' })
  expect(await stage.rows()).toEqual([])
  await young()
  expect(await stage.rows()).toHaveLength(1)
})

test('a leader that loses its lead between reading a block and storing it stores nothing', async () => {
  const chain = await anew()
  const wallet = await stage.wallet()
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  let young: (() => Promise<void>) | undefined
  const old = await stage.follower([chain.node()], {
    wrap: (reads) => ({
      ...reads,
      async transfers(range, isWanted) {
        const found = await reads.transfers(range, isWanted)
        young ??= await stage.follower([chain.node()])
        return found
      },
    }),
  })
  await expect(old()).rejects.toMatchObject({ name: 'LeadLost' })
  expect(await stage.rows()).toEqual([])
  await young?.()
  expect(await stage.rows()).toHaveLength(1)
})
