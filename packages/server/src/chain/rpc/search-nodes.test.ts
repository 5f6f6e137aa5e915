import { type Address, type Hex, type Network, networkByName, topics } from '@purser/protocol'
import { expect, test } from 'vitest'
import { systemClock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import { fail } from '../errors.ts'
import { createAuthorizationUse } from './authorization-use.ts'
import type { Decision } from './quorum.ts'
import { accountTopic } from './read.ts'
import type { Rpc, RpcResponse } from './rpc.ts'
import { createSameCall } from './same-call.ts'

const [token, payer, receiver]: Address[] = [`0x${'1'.repeat(40)}`, `0x${'2'.repeat(40)}`, `0x${'3'.repeat(40)}`]
const [transactionHash, blockHash, nonce]: Hex[] = [`0x${'5'.repeat(64)}`, `0x${'6'.repeat(64)}`, `0x${'7'.repeat(64)}`]
const id = { token: token ?? '0x', authorizer: payer ?? '0x', nonce: nonce ?? '0x' }
const used = {
  address: id.token,
  topics: [topics.authorizationUsed, accountTopic(id.authorizer), id.nonce],
  data: '0x',
}
const call = { sender: id.authorizer, nonce: 4n, calls: [{ to: receiver ?? '0x', data: '0x' as const, value: 0n }] }
const head = 9_000
const receipt = {
  ...{ transactionHash, blockNumber: '0x2320', blockHash, status: '0x1' },
  ...{ gasUsed: '0x5208', effectiveGasPrice: '0x1', logs: [used] },
}
const transaction = {
  ...{ hash: transactionHash, blockNumber: '0x2320', blockHash },
  ...{ from: id.authorizer, to: receiver, input: '0x', value: '0x0', nonce: '0x4' },
}

/** `stalls`: serves no range of blocks, and answers for a single one only when the test says. */
type Kind = 'has it' | 'has nothing' | 'fails' | 'stalls'

interface FakeNode {
  readonly rpc: Rpc
  /** How many calls it got. */
  requested(): number
  /** Answers that there are no logs, wherever it was queried for them. */
  answer(): void
}

function aNode(kind: Kind): FakeNode {
  let requested = 0
  const paused: (() => void)[] = []
  const logsOf = ({ fromBlock, toBlock }: { fromBlock: string; toBlock: string }): Promise<unknown> => {
    if (kind !== 'stalls') return Promise.resolve(kind === 'has it' ? [{ ...used, transactionHash }] : [])
    if (fromBlock !== toBlock) throw new Error('the range is too large')
    return new Promise((resolve) => paused.push(() => resolve([])))
  }
  const resultOf = async (method: string, [first]: readonly unknown[]): Promise<unknown> => {
    requested += 1
    if (kind === 'fails') throw fail('chain-unavailable')
    if (method === 'eth_blockNumber') return `0x${head.toString(16)}`
    if (method === 'eth_getLogs') return logsOf(first as Parameters<typeof logsOf>[0])
    if (method === 'eth_getTransactionCount') return '0x0'
    if (method === 'eth_getTransactionReceipt') return receipt
    if (method === 'eth_getTransactionByHash') return transaction
    return { timestamp: `0x${Math.floor(systemClock.now().getTime() / 1_000).toString(16)}` }
  }
  const respond = async (method: string, params: readonly unknown[]): Promise<RpcResponse> => {
    try {
      return { ok: true, result: await resultOf(method, params) }
    } catch (error) {
      if (isProblem(error)) throw error
      return { ok: false, code: -32_005, message: String(error), data: undefined }
    }
  }
  const rpc: Rpc = {
    batch: (calls) => Promise.all(calls.map(({ method, params }) => respond(method, params))),
    call: respond,
    result: resultOf,
    onOneNode: (work) => work(rpc),
  }
  return {
    rpc,
    requested: () => requested,
    answer() {
      for (const resolve of paused.splice(0)) resolve()
    },
  }
}

/** The two searches over three nodes. A wait ends when the test ends it. */
function searchesOver(kinds: readonly Kind[]) {
  const nodes = kinds.map(aNode)
  const waits: { readonly ms: number; readonly end: () => void }[] = []
  const found = networkByName('base')
  if (found === undefined) throw new Error('no such network')
  const network: Network = found
  const decision: Decision = {
    block: { number: BigInt(head), hash: blockHash ?? '0x', timestampSeconds: 1n },
    ...{ newest: BigInt(head), highest: BigInt(head) },
    at: { blockHash: String(blockHash), requireCanonical: true },
    nodes: nodes.map(({ rpc }) => rpc),
    vote: async <T extends string | bigint>() => ['yes' as T],
  }
  const parts = {
    ...{ network, clock: systemClock },
    quorum: { needed: 2, decide: async () => decision },
    reads: { authorizationStates: async () => ['used'] as const, confirmReceipts: async () => ['yes'] as const },
    wait: (ms: number) => new Promise<void>((resolve) => waits.push({ ms, end: resolve })),
  }
  const since = new Date()
  return {
    nodes,
    /** Ends the waits of this length. */
    async pass(ms: number): Promise<void> {
      await settled()
      for (const wait of waits) if (wait.ms === ms) wait.end()
      await settled()
    },
    searches: {
      use: async () => {
        const use = await createAuthorizationUse(parts).findAuthorizationUse(id, { since })
        return 'receipt' in use ? use.receipt.transactionHash : undefined
      },
      call: (stopped?: AbortSignal, onRemaining?: () => void) =>
        createSameCall(parts).findSameCall(call, {
          ...{ since, isOurs: async () => new Set() },
          ...(stopped === undefined ? {} : { stopped }),
          ...(onRemaining === undefined ? {} : { onRemaining }),
        }),
    },
  }
}

/** Waits for everything that needs no further event. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 50; turns += 1) await new Promise((resolve) => setImmediate(resolve))
}

const names = ['use', 'call'] as const

test.each(names)('a node that serves single blocks late does not stop the search of a %s', async (name) => {
  const { nodes, pass, searches } = searchesOver(['stalls', 'has it', 'has nothing'])
  const search = searches[name]()
  await pass(2_000)
  expect(await search).toBe(transactionHash)
  const [stalling] = nodes
  const requested = stalling?.requested()
  stalling?.answer()
  await settled()
  expect(stalling?.requested(), 'its search has ended').toBe(requested)
})

test.each(names)('two of three nodes that serve single blocks late do not stop the search of a %s', async (name) => {
  const { pass, searches } = searchesOver(['stalls', 'stalls', 'has it'])
  const search = searches[name]()
  await pass(2_000)
  await pass(2_000)
  expect(await search).toBe(transactionHash)
})

test.each(names)('the other nodes are not queried for a %s that the first one has', async (name) => {
  const { nodes, searches } = searchesOver(['has it', 'has it', 'has it'])
  expect(await searches[name]()).toBe(transactionHash)
  await settled()
  expect(nodes.map((node) => node.requested() > 0)).toEqual([true, false, false])
})

test.each(names)('a node that has no %s is followed by the next one at once', async (name) => {
  const { nodes, searches } = searchesOver(['has nothing', 'fails', 'has it'])
  expect(await searches[name]()).toBe(transactionHash)
  expect(nodes.every((node) => node.requested() > 0)).toBe(true)
})

test.each(names)('a %s is missing only when no node searches any more', async (name) => {
  const { nodes, pass, searches } = searchesOver(['stalls', 'has nothing', 'has nothing'])
  let isDone = false
  const search = searches[name]().finally(() => {
    isDone = true
  })
  await pass(2_000)
  expect(isDone).toBe(false)
  // One reply for each of the last 5,000 blocks, and for those of the time since then.
  while (!isDone) {
    nodes[0]?.answer()
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await search).toBeUndefined()
})

test.each(names)(
  'the search of a %s ends without a result when one node has not ended it ten minutes after a majority',
  async (name) => {
    const { pass, searches } = searchesOver(['stalls', 'has nothing', 'has nothing'])
    const search = searches[name]()
    await pass(2_000)
    await pass(600_000)
    expect(await search).toBeUndefined()
  },
)

test('a search says when it waits only for the nodes that are no majority', async () => {
  const { pass, searches } = searchesOver(['stalls', 'has nothing', 'has nothing'])
  const stopping = new AbortController()
  let isWaiting = false
  const search = searches.call(stopping.signal, () => {
    isWaiting = true
  })
  search.catch(() => undefined)
  await settled()
  expect(isWaiting).toBe(false)
  await pass(2_000)
  expect(isWaiting).toBe(true)
  stopping.abort()
  await expect(search).rejects.toMatchObject({ code: 'chain-unavailable' })
})

test.each(names)('the search of a %s fails after an hour when a majority does not end it', async (name) => {
  const { pass, searches } = searchesOver(['stalls', 'stalls', 'has nothing'])
  const search = searches[name]().catch((error: unknown) => isProblem(error, 'chain-unavailable'))
  await pass(2_000)
  await pass(2_000)
  await pass(600_000)
  await pass(3_600_000)
  expect(await search).toBe(true)
})

test('a search of a call that is stopped fails at once, at every node', async () => {
  const { nodes, pass, searches } = searchesOver(['stalls', 'stalls', 'has nothing'])
  const stopping = new AbortController()
  const search = searches.call(stopping.signal).catch((error: unknown) => isProblem(error, 'chain-unavailable'))
  await pass(2_000)
  stopping.abort()
  expect(await search).toBe(true)
  const requested = nodes.map((node) => node.requested())
  for (const node of nodes) node.answer()
  await settled()
  expect(nodes.map((node) => node.requested())).toEqual(requested)
})

test.each(names)('the search of a %s fails when every node fails', async (name) => {
  const { searches } = searchesOver(['fails', 'fails', 'fails'])
  await expect(searches[name]()).rejects.toMatchObject({ code: 'chain-unavailable' })
})
