import { afterEach, beforeEach, expect, test } from 'vitest'
import { fail } from '../../src/chain/errors.ts'
import type { Rpc } from '../../src/chain/rpc/rpc.ts'
import { aFakeChain, aTx, type FakeChain, type FakeTx, type Lies } from './fake-chain.ts'
import { aFollowStage, anAddress, begin, type FollowStage, transfer } from './follow-stage.ts'

let stage: FollowStage
let chain: FakeChain
/** The transaction that a liar hides or changes. */
let deposit: FakeTx

beforeEach(async () => {
  stage = await aFollowStage()
  chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(40)
})
afterEach(() => stage.stop())

const down: Rpc = {
  batch: async () => Promise.reject(fail('chain-unavailable')),
  call: async () => Promise.reject(fail('chain-unavailable')),
  result: async () => Promise.reject(fail('chain-unavailable')),
  onOneNode: (work) => work(down),
}

const isOfDeposit = ({ transactionHash }: Record<string, unknown>) => transactionHash === deposit.hash
const withoutBloom: Lies['block'] = (block) => block && { ...block, logsBloom: undefined }

/** Says of one block that it is another, to every question. */
function otherHash(): Lies {
  const real = chain.blocks.findLast(({ txs }) => txs.includes(deposit))?.hash
  const hash = `0x${'7'.repeat(64)}`
  return {
    logs: (logs) => logs.filter((log) => !isOfDeposit(log)),
    block: (block) => (block?.hash === real ? { ...block, hash, logsBloom: undefined } : block),
  }
}

const hiding: readonly (readonly [string, () => Lies])[] = [
  ['leaves out one log of a block', () => ({ logs: (logs) => logs.filter((log) => !isOfDeposit(log)) })],
  ['answers every range with no log', () => ({ logs: () => [], block: withoutBloom })],
  [
    'reports another amount',
    () => ({ logs: (logs) => logs.map((log) => ({ ...log, data: `0x${'0'.repeat(62)}07` })) }),
  ],
  ['reports another recipient', () => ({ logs: (logs) => logs.map(paidElsewhere) })],
  [
    'reports a time before the wallet was watched',
    () => ({ block: (block) => block && { ...block, timestamp: '0x1' } }),
  ],
  ['reports another hash of the block', otherHash],
  ['knows no logs and no receipts', () => ({ logs: () => [], block: withoutBloom, receipt: () => null })],
]

function paidElsewhere(log: Record<string, unknown>): object {
  const [event, from] = log.topics as string[]
  return { ...log, topics: [event, from, `0x${'0'.repeat(24)}${'ab'.repeat(20)}`] }
}

/** Pays a wallet in a block with another transfer, and lets the chain go on. */
async function pay(): Promise<void> {
  const wallet = await stage.wallet()
  deposit = aTx(transfer(stage.usdc, wallet.address))
  chain.mine([aTx(transfer(stage.usdc, anAddress())), deposit])
}

/** Runs passes while the chain goes on, whether or not nodes let them succeed. */
async function goOn(follow: () => Promise<void>, passes = 12): Promise<void> {
  for (let count = 0; count < passes; count += 1) {
    chain.mineMany(4)
    await follow().catch(() => undefined)
  }
}

const statuses = async () => (await stage.rows()).map(({ status }) => status).filter((one) => one !== 'withdrawn')

test.each(hiding.flatMap(([lie, lies]) => [0, 1, 2].map((place) => ({ lie, lies, place }))))(
  'node $place of three that forever $lie hides no deposit',
  async ({ lies, place }) => {
    const own: Lies = {}
    const nodes = [0, 1, 2].map((one) => (one === place ? chain.node(own) : chain.node()))
    const follow = await stage.follower(nodes)
    await follow()
    await pay()
    Object.assign(own, lies())
    await goOn(follow)
    expect(await statuses()).toEqual(['confirmed'])
    expect((await stage.deposits()).map(({ rawAmount }) => rawAmount)).toEqual(['1000000'])
  },
)

test.each(hiding)('one of two nodes that %s loses no deposit once it is repaired', async (_lie, lies) => {
  for (const place of [0, 1]) {
    const own: Lies = {}
    const follow = await stage.follower([0, 1].map((one) => (one === place ? chain.node(own) : chain.node())))
    await follow()
    await pay()
    Object.assign(own, lies())
    await goOn(follow)
    for (const name of ['logs', 'block', 'receipt'] as const) delete own[name]
    await goOn(follow, 40)
    expect(await statuses(), `liar at place ${place}`).toEqual(Array(place + 1).fill('confirmed'))
  }
})

test('a deposit whose address was registered again between the readings has one row', async () => {
  const follow = await stage.follower([chain.node()])
  await follow()
  const wallet = await stage.wallet()
  deposit = aTx(transfer(stage.usdc, wallet.address))
  chain.mine([deposit])
  await follow()
  const walletOf = async () => (await stage.rows()).map(({ walletId }) => walletId)
  expect(await walletOf()).toEqual([wallet.id])
  await wallet.unwatch(undefined)
  await stage.wallet({ address: wallet.address })
  await goOn(follow)
  expect(await walletOf()).toEqual([wallet.id])
  expect(await stage.deposits()).toHaveLength(1)
})

test('one of two nodes that leaves out a log alone does not delay the deposit until it is repaired', async () => {
  const own: Lies = { logs: (logs) => logs.filter((log) => !isOfDeposit(log)) }
  const follow = await stage.follower([chain.node(own), chain.node()])
  await pay()
  await goOn(follow)
  expect(await statuses()).toEqual(['confirmed'])
})

test('a deposit that the second node hid while the first was down is found when the first answers', async () => {
  const first: { node: Rpc } = { node: down }
  const changing: Rpc = {
    batch: (calls) => first.node.batch(calls),
    call: (method, params) => first.node.call(method, params),
    result: (method, params) => first.node.result(method, params),
    onOneNode: (work) => work(changing),
  }
  const liar = chain.node({ logs: (logs) => logs.filter((log) => !isOfDeposit(log)) })
  await begin(stage, chain.node())
  const follow = await stage.follower([changing, liar])
  await follow()
  await pay()
  await goOn(follow)
  expect(await statuses()).toEqual([])
  first.node = chain.node()
  await goOn(follow, 40)
  expect(await statuses()).toEqual(['confirmed'])
})

test('while the other of two nodes is down new blocks are read at each pass, and the second reading waits', async () => {
  const nodes = [chain.node(), down]
  await begin(stage, chain.node())
  const follow = await stage.follower(nodes)
  for (let count = 0; count < 8; count += 1) {
    await pay()
    await follow()
    expect(await statuses()).toHaveLength(count + 1)
    chain.mineMany(9)
  }
  expect(await stage.deposits()).toEqual([])
})

test('a node that is behind delays the second reading of a pair, and hides nothing', async () => {
  const own: Lies = { behind: 30 }
  const liar: Lies = { logs: (logs) => logs.filter((log) => !isOfDeposit(log)) }
  const follow = await stage.follower([chain.node(liar), chain.node(own)])
  await pay()
  await goOn(follow, 4)
  expect(await statuses()).toEqual([])
  delete own.behind
  await goOn(follow, 40)
  expect(await statuses()).toEqual(['confirmed'])
})

test('a single node is read a second time itself', async () => {
  const own: Lies = { logs: (logs) => logs.filter((log) => !isOfDeposit(log)) }
  const follow = await stage.follower([chain.node(own)])
  await pay()
  await follow()
  expect(await statuses()).toEqual([])
  delete own.logs
  await goOn(follow, 4)
  expect(await statuses()).toEqual(['confirmed'])
})

test.each([1, 2, 3, 5])('%i honest nodes are queried for logs three times a block at most', async (count) => {
  let queries = 0
  const counted = Array.from({ length: count }, () => {
    const node = chain.node()
    const rpc: Rpc = {
      ...node,
      batch: (calls) => {
        queries += calls.filter(({ method }) => method === 'eth_getLogs').length
        return node.batch(calls)
      },
      onOneNode: (work) => work(rpc),
    }
    return rpc
  })
  const follow = await stage.follower(counted)
  chain.mineMany(20)
  await follow()
  queries = 0
  for (let block = 0; block < 10; block += 1) {
    chain.mine()
    await follow()
  }
  expect(queries).toBe(count === 1 ? 20 : 30)
})
