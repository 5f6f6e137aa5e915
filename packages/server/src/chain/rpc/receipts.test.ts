import { type Hex, networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { QuorumReads } from '../quorum-port.ts'
import { createQuorum } from './quorum.ts'
import { createReceipts } from './receipts.ts'
import type { NodeRpc, Rpc } from './rpc.ts'

const hash: Hex = `0x${'5'.repeat(64)}`
const blockHash: Hex = `0x${'6'.repeat(64)}`
const receipt = {
  ...{ transactionHash: hash, blockNumber: '0x9', blockHash, status: '0x1' },
  ...{ gasUsed: '0x5208', effectiveGasPrice: '0x1', logs: [] },
}

/** A node at this height that has the receipt of block 9 if it has the block. */
function aNode(head: number): Rpc {
  const resultOf = (method: string, block: unknown): unknown => {
    if (method === 'eth_getTransactionReceipt') return head < 9 ? null : receipt
    const number = block === 'latest' ? `0x${head.toString(16)}` : block
    return { number, hash: blockHash, timestamp: '0x1', transactions: [hash] }
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

/** Reads receipts from nodes at these heights. Returns the result with the places of the nodes that it suspended. */
async function readAmong<T>(
  heads: readonly number[],
  read: (receipts: Pick<QuorumReads, 'areInBlocks' | 'isInNoBlock'>) => Promise<T>,
) {
  const network = networkByName('base-sepolia')
  if (network === undefined) throw new Error('no such network')
  const suspended: number[] = []
  const voters = heads.map((head, index) => ({
    node: { place: index + 1, url: '', state: 'up' as const },
    rpc: aNode(head),
  }))
  const rpc: NodeRpc = {
    voters,
    suspend: ({ place }) => void suspended.push(place),
    probe: async () => {},
    compareHeads: async () => {},
  }
  const result = await read(createReceipts(network, createQuorum(network, rpc)))
  // A majority decides before the last node has responded.
  await new Promise(setImmediate)
  return { result, suspended }
}

test('a node that is one block ahead of the others, or behind, is not suspended for what it reports of its newest block', async () => {
  for (const [heads, verdict] of [
    [[9, 8, 8], 'no'],
    [[9, 9, 8], 'yes'],
  ] as const) {
    expect(await readAmong(heads, (reads) => reads.areInBlocks([hash]))).toEqual({ result: [verdict], suspended: [] })
    const unmined = verdict === 'yes' ? 'no' : 'yes'
    expect(await readAmong(heads, (reads) => reads.isInNoBlock([hash]))).toEqual({ result: unmined, suspended: [] })
  }
})
