import { afterEach, beforeEach, expect, test } from 'vitest'
import { fail } from '../../src/chain/errors.ts'
import type { Rpc } from '../../src/chain/rpc/rpc.ts'
import { aFakeChain, aTx, type FakeChain, type Lies } from './fake-chain.ts'
import { aFollowStage, anAddress, begin, type FollowStage, transfer } from './follow-stage.ts'

let stage: FollowStage
let chain: FakeChain

beforeEach(async () => {
  stage = await aFollowStage()
  chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(40)
})
afterEach(() => stage.stop())

/** Runs a pass, whether or not the node lets it succeed. */
async function tryTo(follow: () => Promise<void>): Promise<'done' | 'failed'> {
  return follow().then(
    () => 'done',
    () => 'failed',
  )
}

const single: readonly (readonly [string, (wallet: string) => Lies])[] = [
  ['omits the logs of a block', () => ({ logs: () => [] })],
  ['omits one log out of several', () => ({ logs: (logs) => logs.slice(1) })],
  ['reports every log twice', () => ({ logs: (logs) => [...logs, ...logs] })],
  ['answers null instead of a list', () => ({ logs: () => ({ not: 'a list' }) })],
  ['answers with another block', () => ({ block: (block) => block && { ...block, number: '0x1' } })],
  ['has no blocks', () => ({ block: () => null })],
  ['is 10 blocks behind', () => ({ behind: 10 })],
  [
    'moves logs into another block',
    () => ({ logs: (logs) => logs.map((log) => ({ ...log, blockHash: `0x${'7'.repeat(64)}` })) }),
  ],
  ['marks its logs as removed', () => ({ logs: (logs) => logs.map((log) => ({ ...log, removed: true })) })],
  ['answers null for receipts', () => ({ receipt: () => null })],
  ['gives receipts without logs', () => ({ receipt: (receipt) => receipt && { ...receipt, logs: 7 } })],
]

test.each(single)('a node that %s for a while causes no lost deposit and no repeated event', async (_lie, lies) => {
  const wallet = await stage.wallet()
  const own: Lies = {}
  const follow = await stage.follower([chain.node(own)])
  await follow()
  chain.mine([aTx(transfer(stage.usdc, anAddress()), transfer(stage.usdc, wallet.address))])
  chain.mine([aTx(transfer(stage.usdc, wallet.address, 3n))])
  Object.assign(own, lies(wallet.address))
  for (let n = 0; n < 3; n++) {
    await tryTo(follow)
    chain.mine()
  }
  for (const name of ['logs', 'block', 'receipt', 'behind'] as const) delete own[name]
  // The second reading comes some blocks behind the head.
  chain.mineMany(12)
  await follow()
  await follow()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['confirmed', 'confirmed'])
  expect((await stage.deposits()).map(({ rawAmount }) => rawAmount).sort()).toEqual(['1000000', '3'])
})

test('a deposit that one node invents is never published', async () => {
  const wallet = await stage.wallet()
  const own: Lies = {
    logs: (logs) => logs.flatMap((log) => [log, { ...log, logIndex: '0x63', data: `0x${'0'.repeat(60)}ffff` }]),
  }
  const follow = await stage.follower([chain.node(own)])
  await follow()
  const tx = aTx(transfer(stage.usdc, wallet.address))
  chain.mine([tx])
  chain.mineMany(3)
  await follow()
  expect((await stage.rows()).map(({ status }) => status).sort()).toEqual(['confirmed', 'withdrawn'])
  expect((await stage.deposits()).map(({ logIndex }) => logIndex)).toEqual([0])
})

test('while two nodes disagree about a block none of its deposits is published, and when they agree they are', async () => {
  const wallet = await stage.wallet()
  await begin(stage, chain.node())
  const other = chain.branch()
  const tx = aTx(transfer(stage.usdc, wallet.address))
  chain.mine([tx])
  other.mine([tx])
  chain.mineMany(4)
  other.mineMany(4)
  const follow = await stage.follower([chain.node(), other.node()])
  await follow()
  await follow()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['pending'])
  expect(await stage.deposits()).toEqual([])
  const agreed = await stage.follower([chain.node(), chain.node()])
  await agreed()
  expect(await stage.deposits()).toHaveLength(1)
})

test('switching to a node on another branch, and back, publishes each deposit once', async () => {
  const wallet = await stage.wallet()
  const other = chain.branch()
  const tx = aTx(transfer(stage.usdc, wallet.address))
  chain.mine([tx])
  chain.mineMany(1)
  other.mineMany(3)
  const [here, there] = [chain.node(), other.node()]
  for (const node of [here, there, here, there, here]) {
    const follow = await stage.follower([node])
    await follow()
    chain.mine()
    other.mine()
  }
  expect(await stage.deposits()).toHaveLength(1)
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['confirmed'])
})

const weak: readonly (readonly [string, (wallet: string) => Rpc])[] = [
  ['cannot be reached', () => ({ ...chain.node(), batch: async () => Promise.reject(fail('chain-unavailable')) })],
  ['has no receipts', () => chain.node({ receipt: () => null })],
  ['has receipts without logs', () => chain.node({ receipt: (receipt) => receipt && { ...receipt, logs: [] } })],
  ['is 10 blocks behind', () => chain.node({ behind: 10 })],
  ['is on another branch', () => branchOf(5)],
]

/** A node of a chain that diverged this many blocks ago. */
function branchOf(blocks: number): Rpc {
  const other = chain.branch()
  other.dropBlocks(blocks)
  other.mineMany(blocks)
  return other.node()
}

test.each(weak)(
  'a deposit waits while one of two nodes %s, and one of three does not delay it',
  async (_fault, node) => {
    const wallet = await stage.wallet()
    await begin(stage, chain.node())
    chain.mine([aTx(transfer(stage.usdc, wallet.address))])
    chain.mineMany(3)
    const pair = await stage.follower([chain.node(), node(wallet.address)])
    await pair()
    await pair()
    // Not shown at all while one of two nodes is far behind: no majority has its block.
    expect((await stage.rows()).filter(({ status }) => status !== 'pending')).toEqual([])
    const three = await stage.follower([chain.node(), node(wallet.address), chain.node()])
    await three()
    expect(await stage.deposits()).toHaveLength(1)
  },
)

test('a deposit invented by the node that is read is confirmed by no second node, and withdrawn by three', async () => {
  const wallet = await stage.wallet()
  const invented = (logs: readonly object[]) =>
    logs.flatMap((log) => [log, { ...log, logIndex: '0x63', data: `0x${'0'.repeat(60)}ffff` }])
  const liar = () =>
    chain.node({
      logs: (logs) => invented(logs),
      receipt: (receipt) => receipt && { ...receipt, logs: invented(receipt.logs as object[]) },
    })
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  chain.mineMany(3)
  const pair = await stage.follower([liar(), chain.node()])
  await pair()
  expect((await stage.rows()).map(({ status }) => status).sort()).toEqual(['confirmed', 'pending'])
  const three = await stage.follower([liar(), chain.node(), chain.node()])
  await three()
  expect((await stage.rows()).map(({ status }) => status).sort()).toEqual(['confirmed', 'withdrawn'])
  expect((await stage.deposits()).map(({ logIndex }) => logIndex)).toEqual([0])
})

const inventedHash = `0x${'5'.repeat(64)}`

/**
 * A node that shows each deposit a second time, in a transaction that was never sent; if thorough, with matching block
 * and receipt.
 */
function inventor(isThorough: boolean): Lies {
  let invented: (Record<string, unknown> & { readonly blockHash?: unknown }) | undefined
  const logs: Lies['logs'] = (real) =>
    real.flatMap((log) => {
      invented = { ...log, logIndex: '0x63', transactionHash: inventedHash }
      return [log, invented]
    })
  if (!isThorough) return { logs }
  return {
    logs,
    block: (block) =>
      block !== null && invented !== undefined && block.hash === invented.blockHash
        ? { ...block, transactions: [...(block.transactions as string[]), inventedHash] }
        : block,
    receipt: (receipt) =>
      receipt ?? { ...invented, transactionHash: inventedHash, status: '0x1', gasUsed: '0x5208', logs: [invented] },
  }
}

test.each([
  [false, 'withdrawn'],
  [true, 'pending'],
])(
  'a deposit in a transaction that one node invents in a real block ends once a majority reports it absent (thorough: %s)',
  async (isThorough, inPair) => {
    const wallet = await stage.wallet()
    await begin(stage, chain.node())
    chain.mine([aTx(transfer(stage.usdc, wallet.address))])
    chain.mineMany(3)
    const pair = await stage.follower([chain.node(inventor(isThorough)), chain.node()])
    await pair()
    expect((await stage.rows()).map(({ status }) => status).sort()).toEqual(['confirmed', inPair])
    const three = await stage.follower([chain.node(inventor(isThorough)), chain.node(), chain.node()])
    await three()
    expect((await stage.rows()).map(({ status }) => status).sort()).toEqual(['confirmed', 'withdrawn'])
    // The second reading shows it again, and it ends again.
    chain.mineMany(30)
    await three()
    await three()
    expect((await stage.rows()).map(({ status }) => status).sort()).toEqual(['confirmed', 'withdrawn'])
    expect(await stage.deposits()).toHaveLength(1)
  },
)

test('a deposit in a block that only the node that is read has ends once a majority has another block there', async () => {
  const wallet = await stage.wallet()
  await begin(stage, chain.node())
  const other = chain.branch()
  other.mine([aTx(transfer(stage.usdc, wallet.address))])
  other.mineMany(5)
  chain.mineMany(6)
  await (await stage.follower([other.node(), chain.node()]))()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['pending'])
  await (await stage.follower([other.node(), chain.node(), chain.node()]))()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['withdrawn'])
  expect(await stage.deposits()).toEqual([])
})

test('a final deposit is withdrawn by a majority, and never by one node, however often it repeats its answer', async () => {
  const wallet = await stage.wallet()
  const before = chain.branch()
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  chain.mineMany(5)
  await begin(stage, chain.node())
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['confirmed'])
  before.mineMany(9)
  for (const honest of [1, 2]) {
    const nodes = [before.node(), ...Array.from({ length: honest }, () => chain.node())]
    const follow = await stage.follower(nodes)
    for (let look = 0; look < 3; look++) {
      // Two honest ones are a majority, whose blocks are read.
      expect(await tryTo(follow), `${honest} honest`).toBe(honest === 1 ? 'failed' : 'done')
      before.mine()
      chain.mine()
    }
    expect((await stage.rows()).map(({ status }) => status)).toEqual(['confirmed'])
  }
  const follow = await stage.follower([before.node(), before.node(), chain.node()])
  await tryTo(follow)
  await tryTo(follow)
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['withdrawn'])
})

test.each<readonly [string, (log: Record<string, unknown>) => object]>([
  ['another amount', (log) => ({ ...log, data: `0x${'0'.repeat(60)}beef` })],
  [
    'another sender',
    (log) => ({
      ...log,
      topics: [(log.topics as string[])[0], `0x${'0'.repeat(24)}${'ab'.repeat(20)}`, (log.topics as string[])[2]],
    }),
  ],
])('at the second reading a node that reports %s for a confirmed deposit changes nothing', async (_what, lie) => {
  const wallet = await stage.wallet()
  const own: Lies = {}
  const follow = await stage.follower([chain.node(own), chain.node(), chain.node()])
  await follow()
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  chain.mineMany(4)
  await follow()
  const rows = await stage.rows()
  expect(rows.map(({ status }) => status)).toEqual(['confirmed'])
  own.logs = (logs) => logs.map(lie)
  chain.mineMany(30)
  await tryTo(follow)
  await tryTo(follow)
  expect(await stage.rows()).toEqual(rows)
  delete own.logs
  await follow()
  expect(await stage.rows()).toEqual(rows)
  expect(await stage.deposits()).toHaveLength(1)
})

test('a head that one node invents confirms no deposit before its depth', async () => {
  const wallet = await stage.wallet()
  const high = chain.node({
    block: (block, requested) => (requested === 'latest' && block ? { ...block, number: '0x8000' } : block),
  })
  chain.mine([aTx(transfer(stage.usdc, wallet.address))])
  chain.mineMany(1)
  for (const nodes of [
    [chain.node(), high],
    [chain.node(), high, chain.node()],
  ])
    await (await stage.follower(nodes))()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['pending'])
  chain.mine()
  await (await stage.follower([chain.node(), high]))()
  expect((await stage.rows()).map(({ status }) => status)).toEqual(['confirmed'])
})

test.each([1, 7, 30])(
  'a node that allows %i blocks per query is read completely after thousands of blocks',
  async (allowed) => {
    const wallet = await stage.wallet()
    const node = chain.node()
    let refused = 0
    let longest = 0
    const limited: typeof node = {
      ...node,
      onOneNode: (work) => work(limited),
      batch: (calls: Parameters<typeof node.batch>[0]) => {
        const filter = calls[0]?.method === 'eth_getLogs' ? Object(calls[0].params[0]) : {}
        const requested = Number(filter.toBlock) - Number(filter.fromBlock) + 1
        if (requested > allowed) refused += 1
        if (requested > allowed) return Promise.reject(new Error('query returned more than 10000 results'))
        if (requested > 0) longest = Math.max(longest, requested)
        return node.batch(calls)
      },
    }
    const follow = await stage.follower([limited])
    while ((await tryTo(follow)) === 'failed');
    refused = 0
    for (let n = 0; n < 3; n++) {
      chain.mine([aTx(transfer(stage.usdc, wallet.address))])
      chain.mineMany(allowed * 40)
    }
    while ((await tryTo(follow)) === 'failed');
    expect(await stage.deposits()).toHaveLength(3)
    expect(longest).toBe(allowed)
    // It remembers the limit instead of exceeding it again and again.
    expect(refused).toBeLessThan(30)
  },
)
