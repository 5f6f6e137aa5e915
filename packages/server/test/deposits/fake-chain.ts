import { randomBytes } from 'node:crypto'
import { type Address, bytesToHex, type Hex, hexToBytes, type Network, topics } from '@purser/protocol'
import { bloomBits } from '../../src/chain/blocks/parse.ts'
import type { NodeRpc, Rpc, RpcCall, RpcResponse } from '../../src/chain/rpc/rpc.ts'

export interface FakeTransfer {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly rawAmount: bigint
}

/** A transaction. Its hash stays the same in whichever block it is. */
export interface FakeTx {
  readonly hash: Hex
  readonly transfers: readonly FakeTransfer[]
}

interface FakeBlock {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestamp: number
  readonly txs: readonly FakeTx[]
}

type FakeLog = Record<string, unknown> & { readonly address: string; readonly blockNumber: string }

/** How a node changes its answers; each function gets the true log list, block or receipt. */
export interface Lies {
  logs?: (logs: FakeLog[], filter: Record<string, unknown>) => unknown
  /** The error of the call for the logs of these blocks. */
  refusal?: (numbers: readonly number[], filter: Record<string, unknown>) => string | undefined
  block?: (block: Record<string, unknown> | null, requested: unknown) => unknown
  receipt?: (receipt: Record<string, unknown> | null) => unknown
  /** Whether it does not deliver the receipt of this transaction. */
  isUnread?: (txHash: unknown) => boolean
  /** Blocks that it has not received yet. */
  behind?: number
}

export interface FakeChain {
  readonly height: number
  readonly blocks: readonly FakeBlock[]
  /** Adds a block with these transactions. */
  mine(txs?: readonly FakeTx[]): void
  mineMany(count: number): void
  /** Removes the newest blocks and returns their transactions. */
  dropBlocks(count: number): FakeTx[]
  /** A node of this chain. Its lies may change at any time. */
  node(lies?: Lies): Rpc
  /** A chain with the same history so far, which then diverges. */
  branch(): FakeChain
}

const hash = (): Hex => bytesToHex(randomBytes(32))
const quantity = (value: number | bigint): Hex => `0x${value.toString(16)}`
const topicOf = (address: string): Hex => `0x${'0'.repeat(24)}${address.slice(2).toLowerCase()}`

export function aTx(...transfers: readonly FakeTransfer[]): FakeTx {
  return { hash: hash(), transfers }
}

/** A chain in memory with JSON-RPC. At any moment, and without waiting, it can be reorganized and its nodes can lie. */
export function aFakeChain(network: Network, startSeconds: number, history: readonly FakeBlock[] = []): FakeChain {
  let blocks: FakeBlock[] = [...history]
  const mine = (txs: readonly FakeTx[] = []): void => {
    const parent = blocks.at(-1)
    const number = blocks.length
    const timestamp = startSeconds + Math.floor((number * network.blockTimeMs) / 1_000)
    blocks.push({ number, hash: hash(), parentHash: parent?.hash ?? bytesToHex(new Uint8Array(32)), timestamp, txs })
  }
  if (blocks.length === 0) mine()
  return {
    get height() {
      return blocks.length - 1
    },
    get blocks() {
      return blocks
    },
    mine,
    mineMany(count) {
      for (let n = 0; n < count; n++) mine()
    },
    dropBlocks(count) {
      const dropped = blocks.slice(blocks.length - count)
      blocks = blocks.slice(0, blocks.length - count)
      return dropped.flatMap(({ txs }) => txs)
    },
    node: (lies = {}) => rpcOf((call) => answer(blocks, network, call, lies)),
    branch: () => aFakeChain(network, startSeconds, blocks),
  }
}

/** All nodes of a network, each healthy. */
export function nodesOf(nodes: readonly Rpc[]): NodeRpc {
  const voters = nodes.map((rpc, index) => ({ node: { index: index + 1, url: '', state: 'up' as const }, rpc }))
  return {
    voters,
    suspend: () => undefined,
    probe: async () => undefined,
    compareHeads: async () => undefined,
    agreedHead: () => 0n,
  }
}

/** An RPC client for block reads, with one function behind it. */
function rpcOf(answerTo: (call: RpcCall) => RpcResponse): Rpc {
  const rpc: Rpc = {
    batch: async (calls) => calls.map(answerTo),
    call: async (method, params) => answerTo({ method, params }),
    async result(method, params) {
      const given = answerTo({ method, params })
      if (!given.ok) throw new Error(given.message)
      return given.result
    },
    onOneNode: (work) => work(rpc),
  }
  return rpc
}

function answer(all: readonly FakeBlock[], network: Network, { method, params }: RpcCall, lies: Lies): RpcResponse {
  const blocks = all.slice(0, all.length - (lies.behind ?? 0))
  const [first] = params
  if (method === 'eth_chainId') return { ok: true, result: quantity(network.chainId) }
  if (method === 'eth_getBlockByNumber') {
    const block = blocks[heightOf(first, blocks.length - 1)]
    const shown = block === undefined ? null : shownBlock(block)
    return { ok: true, result: lies.block?.(shown, first) ?? shown }
  }
  if (method === 'eth_getTransactionReceipt' && lies.isUnread?.(first) === true)
    return { ok: false, code: -32_008, message: 'Response is too big', data: undefined }
  if (method === 'eth_getTransactionReceipt') {
    const block = blocks.find(({ txs }) => txs.some((tx) => tx.hash === first))
    const receipt = block === undefined ? null : receiptOf(block, String(first))
    return { ok: true, result: lies.receipt === undefined ? receipt : lies.receipt(receipt) }
  }
  if (method === 'eth_getLogs') return logsAnswer(blocks, first as Record<string, unknown>, lies)
  return { ok: false, code: -32_601, message: `no such method: ${method}`, data: undefined }
}

function heightOf(block: unknown, head: number): number {
  if (block === 'latest') return head
  if (block === 'safe') return Math.max(0, head - 4)
  if (block === 'finalized') return Math.max(0, head - 8)
  return Number(block)
}

function logsAnswer(blocks: readonly FakeBlock[], filter: Record<string, unknown>, lies: Lies): RpcResponse {
  const wanted = new Set((filter.address as string[]).map((address) => address.toLowerCase()))
  const byHash = filter.blockHash === undefined ? undefined : blocks.find(({ hash }) => hash === filter.blockHash)
  if (filter.blockHash !== undefined && byHash === undefined)
    return { ok: false, code: -32_000, message: 'unknown block', data: undefined }
  const range = byHash === undefined ? blocks.slice(Number(filter.fromBlock), Number(filter.toBlock) + 1) : [byHash]
  const refusal = lies.refusal?.(
    range.map(({ number }) => number),
    filter,
  )
  if (refusal !== undefined) return { ok: false, code: -32_005, message: refusal, data: undefined }
  const logs = range.flatMap(logsOf).filter((log) => wanted.has(log.address) && matches(log, filter.topics))
  return { ok: true, result: lies.logs?.(logs, filter) ?? logs }
}

function matches({ topics: own }: FakeLog, filter: unknown): boolean {
  return (filter as (string | null | string[])[]).every(
    (wanted, index) => wanted === null || [wanted].flat().includes((own as string[])[index] ?? ''),
  )
}

function logsOf(block: FakeBlock): FakeLog[] {
  const all = block.txs.flatMap((tx) => tx.transfers.map((transfer) => ({ tx, transfer })))
  return all.map(({ tx, transfer }, logIndex) => ({
    address: transfer.token.toLowerCase(),
    topics: [topics.transfer, topicOf(transfer.from), topicOf(transfer.to)],
    data: bytesToHex(hexToBytes(`0x${transfer.rawAmount.toString(16).padStart(64, '0')}`)),
    blockNumber: quantity(block.number),
    blockHash: block.hash,
    transactionHash: tx.hash,
    logIndex: quantity(logIndex),
    removed: false,
  }))
}

function receiptOf(block: FakeBlock, txHash: string): Record<string, unknown> {
  const logs = logsOf(block).filter(({ transactionHash }) => transactionHash === txHash)
  return {
    transactionHash: txHash,
    blockNumber: quantity(block.number),
    blockHash: block.hash,
    status: '0x1',
    gasUsed: '0x5208',
    logs,
  }
}

function shownBlock(block: FakeBlock): Record<string, unknown> {
  return {
    number: quantity(block.number),
    hash: block.hash,
    parentHash: block.parentHash,
    timestamp: quantity(block.timestamp),
    logsBloom: bloomOf(block),
    transactions: block.txs.map((tx) => tx.hash),
  }
}

function bloomOf(block: FakeBlock): Hex {
  const bytes = new Uint8Array(256)
  for (const log of logsOf(block))
    for (const value of [log.address, ...(log.topics as string[])])
      for (const bit of bloomBits(value as Hex))
        bytes[255 - (bit >> 3)] = (bytes[255 - (bit >> 3)] ?? 0) | (1 << (bit & 7))
  return bytesToHex(bytes)
}
