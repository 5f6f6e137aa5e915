import { isDeepStrictEqual } from 'node:util'
import { type Hex, isHex, topics } from '@purser/protocol'
import { collect, electorateOf } from '../rpc/acceptance.ts'
import { invalidResponse } from '../rpc/read.ts'
import type { NodeRpc, Rpc, RpcCall, RpcResponse, Voter } from '../rpc/rpc.ts'
import { createLongBlocks, type LongBlocks, scanReceipts } from './long-blocks.ts'
import {
  type Block,
  type BloomBits,
  bloomBits,
  lower,
  presentBlock,
  type RawTransfer,
  readLogs,
  readReceipt,
  readTransfer,
  withoutDuplicates,
} from './parse.ts'
import type {
  BlockHeader,
  BlockRange,
  BlockReads,
  IsWanted,
  PlacedReceipt,
  ScannedRange,
  TokenTransfer,
} from './port.ts'

/** Most headers in one request. Nodes limit the number of calls in a batch. */
const headersPerRequest = 100

/** Reads blocks at one of a network's nodes, or at each. */
export function createBlockReads(rpc: Rpc, { voters }: Pick<NodeRpc, 'voters'>): BlockReads {
  const bits = new Map<string, BloomBits>()
  const bitsOf = (value: Hex): BloomBits => {
    const known = bits.get(value) ?? bloomBits(value)
    bits.set(value, known)
    return known
  }
  const longBlocks = createLongBlocks()
  const reader = (node: Rpc): Pick<BlockReads, 'transfers'> => ({
    transfers: (range, isWanted) => node.onOneNode((one) => scan(one, range, { isWanted, bitsOf, longBlocks })),
  })
  return {
    ...reader(rpc),
    async head() {
      const [head] = await rpc.batch([blockCall('latest')])
      return presentBlock(resultOf(head))
    },
    transferReceipt: (hash) => mostShownReceipt(voters, hash),
    eachNode() {
      const used = voters.filter(({ node }) => node.state !== 'refused')
      const [healthy, weak] = [used.filter(isHealthy), used.filter((voter) => !isHealthy(voter))]
      return [...healthy.slice(1), ...healthy.slice(0, 1), ...weak].map((voter) => reader(voter.rpc))
    },
  }
}

/** So that one node neither hides nor invents a receipt. Where two nodes differ, the first that shows one counts: a majority confirms what it brings. */
async function mostShownReceipt(voters: readonly Voter[], hash: Hex): Promise<PlacedReceipt | undefined> {
  const responses: { readonly receipt: PlacedReceipt | undefined }[] = []
  const electorate = electorateOf(voters)
  await collect(
    electorate.voters,
    async (voter) => ({ receipt: await receiptAt(voter.rpc, hash) }),
    (response) => {
      responses.push(response)
      return false
    },
  )
  const shown = responses.flatMap(({ receipt }) => receipt ?? [])
  if (shown.length === 0 && responses.length < electorate.needed)
    throw invalidResponse('too few nodes say whether there is a receipt')
  const counts = shown.map((one) => shown.filter((other) => isDeepStrictEqual(other, one)).length)
  return shown[counts.indexOf(Math.max(...counts))]
}

async function receiptAt(rpc: Rpc, hash: Hex): Promise<PlacedReceipt | undefined> {
  const receipt = readReceipt(await rpc.result('eth_getTransactionReceipt', [hash]), hash)
  if (receipt === undefined) return undefined
  const [block] = await rpc.batch([blockCall(receipt.blockNumber)])
  const { number, hash: blockHash, parentHash, timestampSeconds } = presentBlock(resultOf(block), receipt.blockNumber)
  if (blockHash !== receipt.blockHash) throw invalidResponse('a receipt is of another block than the chain has there')
  return { receipt, header: { number, hash: blockHash, parentHash, timestampSeconds } }
}

function isHealthy({ node: { state } }: Voter): boolean {
  return state === 'up' || state === 'unchecked'
}

interface Scanner {
  readonly isWanted: IsWanted
  readonly bitsOf: (value: Hex) => BloomBits
  readonly longBlocks: LongBlocks
}

/**
 * Requests logs and headers in one batch, so that both come from one node. Reads the receipts of a single block whose logs were refused several
 * times.
 */
async function scan(rpc: Rpc, range: BlockRange, { isWanted, bitsOf, longBlocks }: Scanner): Promise<ScannedRange> {
  const isOne = range.from === range.to
  if (isOne && longBlocks.has(range.from)) return scanReceipts(rpc, range, isWanted)
  const numbers = range.headers === 'all' ? numbersOf(range) : [...new Set([range.from, range.to])]
  const [logs, ...responses] = await rpc.batch([logsCall(range), ...numbers.map((number) => blockCall(number))])
  const blocks = numbers.map((number, index) => presentBlock(resultOf(responses[index]), number))
  if (range.hash !== undefined && blocks.at(-1)?.hash !== range.hash)
    throw invalidResponse('the node has a different block at that height')
  if (range.headers === 'all') refuseBrokenChain(blocks)
  if (isOne && logs?.ok === false) {
    longBlocks.add(range.from, logs.message)
    throw invalidResponse(`the logs of block ${range.from}: ${logs.message}`)
  }
  const raw = readLogs(resultOf(logs), range)
  refuseImpossible(raw, blocks, bitsOf)
  await refuseMissing({ rpc, range, bitsOf }, raw, blocks)
  const wantedIn = new Set(raw.flatMap((log) => (isWanted(log.fromTopic, log.toTopic) ? [txOf(log)] : [])))
  const transfers =
    wantedIn.size === 0 ? [] : withoutDuplicates(raw.filter((log) => wantedIn.has(txOf(log))).map(readTransfer))
  const headers = await headersFor(rpc, blocks, transfers)
  return { headers, transfers }
}

function numbersOf({ from, to }: BlockRange): bigint[] {
  return Array.from({ length: Number(to - from) + 1 }, (_, index) => from + BigInt(index))
}

function txOf(log: RawTransfer): unknown {
  return log.entry.transactionHash
}

function refuseBrokenChain(blocks: readonly Block[]): void {
  blocks.forEach((block, index) => {
    const before = blocks[index - 1]
    if (before !== undefined && block.parentHash !== before.hash)
      throw invalidResponse('blocks do not link to each other: the chain was reorganized during the request')
  })
}

/** Rejects logs of a token that the block's bloom filter excludes: they do not belong to this block. */
function refuseImpossible(raw: readonly RawTransfer[], blocks: readonly Block[], bitsOf: Scanner['bitsOf']): void {
  const byNumber = new Map(blocks.map((block) => [block.number, block]))
  for (const log of raw) {
    const block = byNumber.get(log.blockNumber)
    if (block === undefined) continue
    if (lower(log.entry.blockHash) !== block.hash)
      throw invalidResponse('a log belongs to a different block than the header')
    const token = lower(log.entry.address)
    if (block.bloom !== undefined && !block.bloom.isEmpty && isHex(token) && !block.bloom.mayHold(bitsOf(token)))
      throw invalidResponse('a log is from a token that the block’s bloom filter excludes')
  }
}

/**
 * Some nodes serve a new block before its logs. When a block has no logs but its bloom filter indicates some, its logs are requested again by block
 * hash; a node that does not have the block then returns an error. Bloom filters have false positives, so a second empty answer is accepted.
 */
async function refuseMissing(
  { rpc, range, bitsOf }: { readonly rpc: Rpc; readonly range: BlockRange; readonly bitsOf: Scanner['bitsOf'] },
  raw: readonly RawTransfer[],
  blocks: readonly Block[],
): Promise<void> {
  const blocksWithLogs = new Set(raw.map((log) => log.blockNumber))
  const doubtful = blocks.filter(
    ({ number, bloom }) =>
      !blocksWithLogs.has(number) &&
      bloom?.isUsable === true &&
      bloom.mayHold(bitsOf(topics.transfer)) &&
      range.tokens.some((token) => bloom.mayHold(bitsOf(token))),
  )
  if (doubtful.length === 0) return
  const again = await rpc.batch(
    doubtful.map(({ hash }) => ({ method: 'eth_getLogs', params: [{ ...filterOf(range), blockHash: hash }] })),
  )
  if (again.some((response) => readLogs(resultOf(response), range).length > 0))
    throw invalidResponse('the node omitted logs of a block')
}

/** The headers already read and those of the blocks with wanted transfers, each checked against its logs. */
async function headersFor(
  rpc: Rpc,
  blocks: readonly Block[],
  transfers: readonly TokenTransfer[],
): Promise<BlockHeader[]> {
  const known = new Map<bigint, BlockHeader>(blocks.map((block) => [block.number, block]))
  const missing = [...new Set(transfers.map(({ blockNumber }) => blockNumber))].filter((number) => !known.has(number))
  for (let at = 0; at < missing.length; at += headersPerRequest) {
    const part = missing.slice(at, at + headersPerRequest)
    const responses = await rpc.batch(part.map((number) => blockCall(number)))
    part.forEach((number, index) => {
      known.set(number, presentBlock(resultOf(responses[index]), number))
    })
  }
  for (const { blockNumber, blockHash } of transfers)
    if (known.get(blockNumber)?.hash !== blockHash)
      throw invalidResponse('a log belongs to a different block than the header')
  return [...known.values()].sort((left, right) => (left.number < right.number ? -1 : 1))
}

function blockCall(block: bigint | 'latest'): RpcCall {
  return { method: 'eth_getBlockByNumber', params: [typeof block === 'bigint' ? quantity(block) : block, false] }
}

function logsCall(range: BlockRange): RpcCall {
  if (range.hash !== undefined && range.from === range.to)
    return { method: 'eth_getLogs', params: [{ ...filterOf(range), blockHash: range.hash }] }
  const bounds = { fromBlock: quantity(range.from), toBlock: quantity(range.to) }
  return { method: 'eth_getLogs', params: [{ ...filterOf(range), ...bounds }] }
}

function filterOf({ tokens }: BlockRange) {
  return { address: tokens, topics: [topics.transfer] }
}

function quantity(value: bigint): string {
  return `0x${value.toString(16)}`
}

function resultOf(response: RpcResponse | undefined): unknown {
  if (response === undefined || !response.ok) throw invalidResponse(response?.message ?? 'no answer')
  return response.result
}
