import { expect, test } from 'vitest'
import type { NodeRpc, Rpc, RpcCall } from '../rpc/rpc.ts'
import { findReceipts, lookUp, receiptAnywhere } from './shown-receipts.ts'

const hash = `0x${'1'.repeat(64)}` as const
const word = (digit: number) => `0x${String(digit).repeat(64)}`
const head = { number: '0x20', hash: word(3), parentHash: word(2), timestamp: '0x1', baseFeePerGas: '0x1' }

/** A node at block 32 that shows the receipt in this block. */
function aNode(block: number): Rpc {
  const fields = { status: '0x1', gasUsed: '0x5208', effectiveGasPrice: '0x1', logs: [] }
  const receipt = { transactionHash: hash, blockNumber: `0x${block.toString(16)}`, blockHash: word(4), ...fields }
  const batch = async (calls: readonly RpcCall[]) =>
    calls.map(({ method }) => ({ ok: true as const, result: method.endsWith('Receipt') ? receipt : head }))
  const rpc: Partial<Rpc> = { batch, result: async () => receipt }
  return rpc as Rpc
}

/** Nodes of which the first is preferred. */
function nodesOf(blocks: readonly number[], agreed = 32n): Rpc & NodeRpc {
  const voters = blocks.map((block, index) => ({
    node: { index: index + 1, url: '', state: 'up' as const },
    rpc: aNode(block),
  }))
  const [preferred = aNode(0)] = voters.map(({ rpc }) => rpc)
  const own: Partial<Rpc & NodeRpc> = { onOneNode: (work) => work(preferred), voters, agreedHead: () => agreed }
  return { ...preferred, ...own } as Rpc & NodeRpc
}

test('a receipt above the head of the node that shows it is looked up at the others', async () => {
  const { receipts } = await lookUp(nodesOf([99, 16, 16]), [hash])
  expect(receipts).toEqual([expect.objectContaining({ blockNumber: 16n })])
})

test('the receipt of a transaction is the one that most nodes show, whichever node is preferred', async () => {
  for (const blocks of [
    [31, 16, 16],
    [16, 31, 16],
  ])
    expect(await receiptAnywhere(nodesOf(blocks), hash)).toMatchObject({ blockNumber: 16n })
})

test('the head is not below that of a majority', async () => {
  const nodes = nodesOf([16, 16, 16], 40n)
  expect((await lookUp(nodes, [hash])).head.number).toBe(40n)
  expect((await findReceipts(nodes, [hash]))[0]?.head.number).toBe(40n)
})

test('a receipt above every head is not returned where several nodes are healthy', async () => {
  expect(await receiptAnywhere(nodesOf([99, 99, 99]), hash)).toBeUndefined()
})
