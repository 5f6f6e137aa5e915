import { type Hex, networkByName } from '@purser/protocol'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createQuorum, type Decision } from './quorum.ts'
import type { NodeRpc, Rpc, RpcCall, RpcResponse } from './rpc.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function hashOf(number: bigint, fork = 'a'): Hex {
  return `0x${fork.repeat(32)}${number.toString(16).padStart(32, '0')}`
}

/** A node with a chain up to this height, and the number of requests that it got. It responds after `ready`. */
function aNode(head: bigint, fork = 'a', ready: Promise<unknown> = Promise.resolve()) {
  const requests: RpcCall[][] = []
  const blockOf = (wanted: unknown): RpcResponse => {
    const number = wanted === 'latest' ? head : BigInt(String(wanted))
    if (number > head) return { ok: true, result: null }
    const [hash, parentHash] = [hashOf(number, fork), hashOf(number - 1n, fork)]
    return { ok: true, result: { number: `0x${number.toString(16)}`, hash, parentHash, timestamp: '0x1' } }
  }
  const batch: Rpc['batch'] = async (calls) => {
    requests.push([...calls])
    await ready
    return calls.map(({ params }) => blockOf(params[0]))
  }
  const call: Rpc['call'] = async (method, params) => (await batch([{ method, params }]))[0] ?? blockOf('latest')
  const rpc: Rpc = {
    batch,
    call,
    result: async (method, params) => {
      const response = await call(method, params)
      return response.ok ? response.result : undefined
    },
    onOneNode: (work) => work(rpc),
  }
  return { rpc, requests }
}

async function decideAmong(nodes: readonly ReturnType<typeof aNode>[], atMost?: bigint): Promise<Decision | undefined> {
  const network = networkByName('base-sepolia')
  if (network === undefined) throw new Error('no such network')
  const voters = nodes.map(({ rpc }, index) => ({ node: { index: index + 1, url: '', state: 'up' as const }, rpc }))
  const rpc: NodeRpc = {
    voters,
    suspend: () => undefined,
    probe: async () => {},
    compareHeads: async () => {},
    agreedHead: () => 0n,
  }
  return createQuorum(network, rpc).decide({ depth: 1 }, atMost)
}

test('the block that a read may not be above is requested together with the head, so that deciding takes one request to each node', async () => {
  const nodes = [aNode(10n), aNode(12n), aNode(11n)]
  const decision = await decideAmong(nodes, 9n)
  expect(decision?.block).toEqual({ number: 9n, hash: hashOf(9n), timestampSeconds: 1n })
  expect(decision?.nodes).toHaveLength(3)
  expect(nodes.map(({ requests }) => requests.length)).toEqual([1, 1, 1])
})

test('the newest block is the decision block at depth 1, so that deciding takes one request to each node', async () => {
  const nodes = [aNode(10n), aNode(10n), aNode(10n)]
  const decision = await decideAmong(nodes)
  expect(decision?.block).toEqual({ number: 10n, hash: hashOf(10n), timestampSeconds: 1n })
  expect(nodes.map(({ requests }) => requests.length)).toEqual([1, 1, 1])
})

test('where the nodes are not that far yet, a second request reads the newest common block from those that are further', async () => {
  const nodes = [aNode(10n), aNode(12n), aNode(11n)]
  const decision = await decideAmong(nodes, 12n)
  expect(decision?.block).toMatchObject({ number: 10n, hash: hashOf(10n) })
  expect(nodes.map(({ requests }) => requests.length)).toEqual([1, 2, 2])
})

test('a node with another block at that height is not among those that decide', async () => {
  const nodes = [aNode(10n), aNode(10n, 'b'), aNode(10n)]
  const decision = await decideAmong(nodes, 9n)
  expect(decision?.block.hash).toBe(hashOf(9n))
  expect(decision?.nodes).toEqual([nodes[0]?.rpc, nodes[2]?.rpc])
  expect(await decideAmong(nodes.slice(0, 2), 9n)).toBeUndefined()
})

test('a node that responds late delays no decision, and its vote counts once the others do not suffice', async () => {
  const ready = Promise.withResolvers<void>()
  const deciding = decideAmong([aNode(10n), aNode(10n), aNode(10n, 'a', ready.promise)])
  await vi.advanceTimersByTimeAsync(1_000)
  const decision = await deciding
  expect(decision?.nodes).toHaveLength(2)
  const votes = ['yes', 'no', 'yes'].values()
  const ask = async () => [votes.next().value]
  const voting = decision?.vote({ count: 1, ask })
  ready.resolve()
  expect(await voting).toEqual(['yes'])
})

test.each([
  [10n, 1_000n, 1_000n, 1_000n],
  [1_000n, 10n, 1_000n, 1_000n],
  [1_000_000n, 1_000n, 1_000n, 1_000n],
])(
  'a late node is awaited where the others show the heights %d and %d, which are far apart',
  async (one, other, last, decided) => {
    const ready = Promise.withResolvers<void>()
    const deciding = decideAmong([aNode(one), aNode(other), aNode(last, 'a', ready.promise)])
    await vi.advanceTimersByTimeAsync(1_000)
    ready.resolve()
    expect((await deciding)?.block.number).toBe(decided)
  },
)

test('a late node is awaited where the others show different blocks, and has no vote on a block that it does not have', async () => {
  const ready = Promise.withResolvers<void>()
  const deciding = decideAmong([aNode(10n), aNode(10n, 'b'), aNode(10n, 'a', ready.promise)])
  await vi.advanceTimersByTimeAsync(1_000)
  ready.resolve()
  expect((await deciding)?.block.hash).toBe(hashOf(10n))
  const behind = Promise.withResolvers<void>()
  const second = decideAmong([aNode(10n), aNode(10n), aNode(9n, 'a', behind.promise)])
  await vi.advanceTimersByTimeAsync(1_000)
  const decision = await second
  const votes = ['yes', 'no', 'yes'].values()
  const voting = decision?.vote({ count: 1, ask: async () => [votes.next().value] })
  behind.resolve()
  expect(await voting).toEqual([undefined])
})
