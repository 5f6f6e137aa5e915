import { type Address, type Hex, networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import { createQuorum } from './quorum.ts'
import { readReceipt } from './read.ts'
import { createReceipts } from './receipts.ts'
import type { NodeRpc, Rpc } from './rpc.ts'
import { createTransferReads } from './transfers.ts'

const hash: Hex = `0x${'5'.repeat(64)}`
const blockHash: Hex = `0x${'6'.repeat(64)}`
const receipt = {
  ...{ transactionHash: hash, blockNumber: '0x9', blockHash, status: '0x1' },
  ...{ gasUsed: '0x5208', effectiveGasPrice: '0x1', logs: [] },
}

const replacedHash: Hex = `0x${'7'.repeat(64)}`

/** A node at this height. It has the receipt of block 9 if it has the block; `replaced`: it has another block 9, without the transaction. */
function aNode({ head, replaced = false }: { readonly head: number; readonly replaced?: boolean }): Rpc {
  const resultOf = (method: string, block: unknown): unknown => {
    if (method === 'eth_getTransactionReceipt') return head < 9 || replaced ? null : receipt
    const number = block === 'latest' ? `0x${head.toString(16)}` : block
    const own = replaced ? replacedHash : blockHash
    const fields = { parentHash: own, timestamp: '0x1', logsBloom: `0x${'0'.repeat(512)}` }
    return { number, hash: own, ...fields, transactions: replaced ? [] : [hash] }
  }
  const result: Rpc['result'] = async (method, [block]) => resultOf(method, block)
  const call: Rpc['call'] = async (method, params) => ({ ok: true, result: await result(method, params) })
  const rpc: Rpc = {
    batch: (calls) => Promise.all(calls.map(({ method, params }) => call(method, params))),
    ...{ call, result },
    onOneNode: (work) => work(rpc),
  }
  return rpc
}

/** Reads from these nodes. Returns the result with the places of the nodes that it suspended. */
async function readAmong<T>(
  nodes: readonly Parameters<typeof aNode>[0][],
  read: (reads: ReturnType<typeof createReceipts> & ReturnType<typeof createTransferReads>) => Promise<T>,
) {
  const network = networkByName('base')
  if (network === undefined) throw new Error('no such network')
  const suspended: number[] = []
  const voters = nodes.map((node, index) => ({
    node: { index: index + 1, url: '', state: 'up' as const },
    rpc: aNode(node),
  }))
  const rpc: NodeRpc = {
    voters,
    suspend: ({ index }) => void suspended.push(index),
    probe: async () => {},
    compareHeads: async () => {},
    agreedHead: () => 0n,
  }
  const quorum = createQuorum(network, rpc)
  const result = await read({ ...createReceipts(network, quorum), ...createTransferReads(network, quorum) })
  // A majority decides before the last node has responded.
  await new Promise(setImmediate)
  return { result, suspended }
}

test('a vote on new transfers waits a second at most for the last node, and not at all where the others agree', async () => {
  const network = networkByName('base')
  if (network === undefined) throw new Error('no such network')
  const silent: Rpc = { ...aNode({ head: 9 }), batch: () => new Promise(() => {}) }
  const waits: number[] = []
  const reads = createTransferReads(
    network,
    createQuorum(network, {
      voters: [silent, aNode({ head: 9 }), aNode({ head: 9 })].map((rpc, index) => ({
        node: { index: index + 1, url: '', state: 'up' as const },
        rpc,
      })),
      wait: async (ms) => void waits.push(ms),
      suspend: () => {},
      probe: async () => {},
      compareHeads: async () => {},
      agreedHead: () => 0n,
    }),
  )
  const account: Address = `0x${'a'.repeat(40)}`
  const claim = { token: account, to: account, txHash: hash, blockNumber: 9n, isOf: () => true }
  expect(await reads.areInvented([{ ...claim, blockHash }])).toEqual(['yes'])
  expect(waits).toEqual([])
  expect(await reads.areInvented([{ ...claim, blockHash: replacedHash }])).toEqual(['undecided'])
  expect(waits).toEqual([1_000])
})

test('a node that is one block ahead of the others, or behind, is not suspended for what it reports of its newest block', async () => {
  for (const [heads, verdict] of [
    [[9, 8, 8], 'no'],
    [[9, 9, 8], 'yes'],
  ] as const) {
    const nodes = heads.map((head) => ({ head }))
    expect(await readAmong(nodes, (reads) => reads.areInBlocks([hash]))).toEqual({ result: [verdict], suspended: [] })
    const unmined = verdict === 'yes' ? 'no' : 'yes'
    expect(await readAmong(nodes, (reads) => reads.isInNoBlock([hash]))).toEqual({ result: unmined, suspended: [] })
  }
})

test('a node that has another block shortly after a reorganization is not suspended, and below the depth of a payment it is', async () => {
  const shown = readReceipt(receipt, hash)
  if (shown === undefined) throw new Error('no receipt')
  const confirm = (head: number, finality?: { readonly depth: number }) =>
    readAmong([{ head }, { head }, { head, replaced: true }], (reads) => reads.confirmReceipts([shown], finality))
  expect(await confirm(9, { depth: 1 })).toEqual({ result: ['yes'], suspended: [] })
  expect(await confirm(1_000)).toEqual({ result: ['yes'], suspended: [3] })
})

test('a node that has another newest block than a majority is not suspended for it, and for an older one it is', async () => {
  const nodes = [{ head: 9 }, { head: 9 }, { head: 9, replaced: true }]
  const replacedOf = (...numbers: readonly bigint[]) =>
    readAmong(nodes, (reads) => reads.areReplaced(numbers.map((number) => ({ number, hash: blockHash }))))
  expect(await replacedOf(9n)).toEqual({ result: ['no'], suspended: [] })
  expect(await replacedOf(9n, 8n)).toEqual({ result: ['no', 'no'], suspended: [] })
  expect(await replacedOf(1_000n, 9n)).toEqual({ result: ['no', 'no'], suspended: [3] })
})
