import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createBlockReads } from '../../src/chain/blocks/reads.ts'
import { fail } from '../../src/chain/errors.ts'
import type { Rpc } from '../../src/chain/rpc/rpc.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aFakeChain, aTx, type FakeChain, type Lies, nodesOf } from './fake-chain.ts'
import { aFollowStage, anAddress, begin, type FollowStage, transfer } from './follow-stage.ts'

// The first of three nodes lies about the newest blocks, and votes truthfully, so that nobody suspends it.
let stage: FollowStage
let chain: FakeChain

beforeEach(async () => {
  stage = await aFollowStage()
  chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(40)
})
afterEach(() => stage.stop())

const inventedHash = `0x${'5'.repeat(64)}`

/** A node that lies about the newest block. */
function withNewest(lie: (block: Record<string, unknown>) => Record<string, unknown>): Rpc {
  return chain.node({ block: (block, requested) => (requested === 'latest' && block ? lie(block) : block) })
}

/** A node that shows invented blocks without logs below the true head, together with logs. */
function anInventor(): Rpc {
  const truth = chain.node()
  const inventedHash = (number: number) => `0x${number.toString(16).padStart(64, '7')}`
  let from = 0
  const showing = chain.node({
    logs: () => [],
    block: (block) => {
      if (block === null) return block
      const number = Number(block.number)
      const hash = number === chain.height ? block.hash : inventedHash(number)
      const parentHash = number === from ? block.parentHash : inventedHash(number - 1)
      return { ...block, hash, parentHash, logsBloom: undefined }
    },
  })
  const node: Rpc = {
    ...truth,
    onOneNode: (work) => work(node),
    batch: (calls) => {
      const filter = calls.find(({ method }) => method === 'eth_getLogs')?.params[0]
      if (filter === undefined) return truth.batch(calls)
      from = Number(Object(filter).fromBlock)
      return showing.batch(calls)
    },
  }
  return node
}

const oldBlock = () => chain.node().result('eth_getBlockByNumber', ['0x14', false])

test.each<readonly [string, () => Promise<Rpc>]>([
  [
    'shows an old block as the newest',
    async () => {
      const old = await oldBlock()
      return withNewest(() => Object(old))
    },
  ],
  [
    'shows an old block with another hash as the newest',
    async () => {
      const old = await oldBlock()
      return withNewest(() => ({ ...Object(old), hash: inventedHash }))
    },
  ],
  [
    'shows a newest block far above that of the others',
    async () => withNewest((block) => ({ ...block, number: '0x3b9aca00', hash: inventedHash })),
  ],
  ['invents the blocks below the newest one', async () => anInventor()],
])('a first node of three that %s, and votes truthfully, keeps no deposit from being confirmed', async (_lie, liar) => {
  const wallet = await stage.wallet()
  await begin(stage, chain.node())
  const follow = await stage.follower([await liar(), chain.node(), chain.node()])
  for (let pass = 0; pass < 12; pass += 1) {
    chain.mineMany(3)
    if (pass === 2) chain.mine([aTx(transfer(stage.usdc, wallet.address))])
    chain.mineMany(1)
    await follow().catch(() => undefined)
  }
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['confirmed'])
  expect(await stage.deposits()).toHaveLength(1)
})

test('a transaction is rescanned in the block that most of the nodes show, whatever the first node shows', async () => {
  const tx = aTx(transfer(stage.usdc, anAddress()))
  chain.mine([tx])
  const other = chain.branch()
  other.dropBlocks(1)
  other.mine([tx])
  const nodes = (liar: Rpc) => [liar, chain.node(), chain.node()]
  for (const liar of [chain.node({ receipt: () => null }), other.node()]) {
    const { transferReceipt } = createBlockReads(liar, nodesOf(nodes(liar)))
    const found = await transferReceipt(tx.hash)
    expect(found?.header.hash).toBe(chain.blocks.at(-1)?.hash)
    expect(found?.receipt.transfers).toHaveLength(1)
    expect(await transferReceipt(`0x${'8'.repeat(64)}`)).toBeUndefined()
  }
})

test('deposits are confirmed while every node refuses to deliver new blocks', async () => {
  const wallet = await stage.wallet()
  const own: Lies = {}
  const follow = await stage.follower([chain.node(own)])
  await follow()
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  await follow()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['pending'])
  own.refusal = () => 'rate limit exceeded'
  chain.mineMany(3)
  await expect(follow()).rejects.toThrow()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['confirmed'])
})

test('a network that was never read is read from the block of a majority on, and not before there is one', async () => {
  const wallet = await stage.wallet()
  const liar = withNewest((block) => ({ ...block, number: '0x3b9aca00', hash: inventedHash }))
  let isUp = false
  const truth = chain.node()
  const late: Rpc = {
    ...truth,
    batch: (calls) => (isUp ? truth.batch(calls) : Promise.reject(fail('chain-unavailable'))),
  }
  const follow = await stage.follower([liar, late, late])
  await expect(follow()).rejects.toThrow()
  isUp = true
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  await follow()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['pending'])
})

test('while no majority agrees on a block, a pass reads one range of one node, and the next majority is followed', async () => {
  const wallet = await stage.wallet()
  const before = chain.height
  await begin(stage, chain.node())
  chain.mineMany(300)
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  const fork = chain.branch()
  fork.dropBlocks(1)
  fork.mineMany(1)
  let isAgreed = false
  const other = fork.node()
  const second: Rpc = { ...other, batch: (calls) => (isAgreed ? chain.node() : other).batch(calls) }
  const down = (): Promise<never> => Promise.reject(fail('chain-unavailable'))
  const follow = await stage.follower([chain.node(), second, { ...other, batch: down }])
  await follow()
  const cursor = sql`select scanned from deposit_cursors`
  const { scanned } = await stage.database.db.one(z.object({ scanned: z.bigint() }), cursor)
  expect(scanned).toBeGreaterThan(before)
  expect(scanned).toBeLessThanOrEqual(before + 64)
  isAgreed = true
  await follow()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['pending'])
})
