import { type Hex, hexToBytes, isAddress, isHex, keccak256, topics } from '@purser/protocol'
import { invalidResponse, readHex, readQuantity } from '../rpc/read.ts'
import { isRecord } from '../rpc/rpc.ts'
import type { BlockHeader, BlockRange, TokenTransfer, TransferReceipt } from './port.ts'

/** A header with its bloom filter, where it has one. */
export interface Block extends BlockHeader {
  readonly bloom: Bloom | undefined
}

/** An unparsed log; only wanted logs are parsed further. */
export interface RawTransfer {
  readonly entry: Readonly<Record<string, unknown>>
  readonly blockNumber: bigint
  readonly fromTopic: string
  readonly toTopic: string
}

/** The text in lower case; empty when the value is not a string. */
export function lower(value: unknown): string {
  return typeof value === 'string' ? value.toLowerCase() : ''
}

/** Parses a block that must exist. A node that is behind returns null, which throws. */
export function presentBlock(value: unknown, number?: bigint): Block {
  const block = readBlock(value, number)
  if (block === undefined) throw invalidResponse('the node lacks a required block')
  return block
}

/** Parses a block of `eth_getBlockByNumber` with the requested number; undefined when the node has none. */
export function readBlock(value: unknown, number?: bigint): Block | undefined {
  if (value === null) return undefined
  if (!isRecord(value)) throw invalidResponse('the node returned no block')
  const block = {
    number: readQuantity(value.number, 'block number'),
    hash: readHash(value.hash),
    parentHash: readHash(value.parentHash),
    timestampSeconds: readQuantity(value.timestamp, 'block time'),
    bloom: readBloom(value.logsBloom),
  }
  if (number !== undefined && block.number !== number) throw invalidResponse('the node returned a different block')
  return block
}

function readHash(value: unknown): Hex {
  const hash = lower(value)
  if (hash.length !== 66 || !isHex(hash)) throw invalidResponse('the node returned no hash')
  return hash
}

/** Runs the cheap checks on each log (thousands per second). Only wanted logs are parsed fully. */
export function readLogs(value: unknown, { from, to, tokens }: Omit<BlockRange, 'headers'>): RawTransfer[] {
  if (!Array.isArray(value)) throw invalidResponse('the node returned no list of logs')
  const requested = new Set(tokens.map((token) => token.toLowerCase()))
  const numbers = new Map<unknown, bigint>()
  return value.map((entry: unknown) => {
    if (!isRecord(entry) || !Array.isArray(entry.topics))
      throw invalidResponse('the node returned a log without topics')
    if (entry.removed === true) throw invalidResponse('the node returned a removed log')
    if (!requested.has(lower(entry.address)))
      throw invalidResponse('the node returned a log of a contract that was not requested')
    let blockNumber = numbers.get(entry.blockNumber)
    if (blockNumber === undefined) {
      blockNumber = readQuantity(entry.blockNumber, 'log block')
      numbers.set(entry.blockNumber, blockNumber)
    }
    if (blockNumber < from || blockNumber > to)
      throw invalidResponse('the node returned a log of a block that was not requested')
    const [topic, fromTopic, toTopic] = entry.topics
    if (lower(topic) !== topics.transfer) throw invalidResponse('the node returned a log of a different event')
    return { entry, blockNumber, fromTopic: String(fromTopic), toTopic: String(toTopic) }
  })
}

/** Parses a transfer log. */
export function readTransfer({ entry, blockNumber, fromTopic, toTopic }: RawTransfer): TokenTransfer {
  const data = readHex(entry.data, 'log data')
  const token = lower(entry.address)
  const logIndex = readQuantity(entry.logIndex, 'log index')
  if (data.length !== 66 || !isAddress(token) || logIndex > 2_147_483_647n)
    throw invalidResponse('a transfer log has an invalid shape')
  return {
    token,
    from: accountOf(fromTopic),
    to: accountOf(toTopic),
    rawAmount: BigInt(data),
    txHash: readHash(entry.transactionHash),
    logIndex: Number(logIndex),
    blockNumber,
    blockHash: readHash(entry.blockHash),
  }
}

export function accountOf(topic: string): `0x${string}` {
  const account = `0x${topic.slice(26).toLowerCase()}`
  if (topic.length !== 66 || !isAddress(account)) throw invalidResponse('a transfer log has no account')
  return account
}

/** Removes duplicate logs. Throws when two logs at one position contradict each other. */
export function withoutDuplicates(transfers: readonly TokenTransfer[]): TokenTransfer[] {
  const byPlace = new Map<string, TokenTransfer>()
  for (const transfer of transfers) {
    const place = `${transfer.blockNumber}/${transfer.logIndex}`
    const known = byPlace.get(place)
    if (known !== undefined && !isSameTransfer(known, transfer))
      throw invalidResponse('two different logs have the same position')
    byPlace.set(place, transfer)
  }
  return [...byPlace.values()].sort((left, right) =>
    left.blockNumber === right.blockNumber
      ? left.logIndex - right.logIndex
      : left.blockNumber < right.blockNumber
        ? -1
        : 1,
  )
}

/** Whether two logs describe the same transfer at the same position of the same block. */
function isSameTransfer(left: TokenTransfer, right: TokenTransfer): boolean {
  return (
    left.txHash === right.txHash &&
    left.logIndex === right.logIndex &&
    left.blockHash === right.blockHash &&
    left.token === right.token &&
    left.from === right.from &&
    left.to === right.to &&
    left.rawAmount === right.rawAmount
  )
}

/** The transfers of the requested receipt; undefined when the node has none. */
export function readReceipt(value: unknown, hash: Hex | undefined): TransferReceipt | undefined {
  if (value === null) return undefined
  if (!isRecord(value) || !Array.isArray(value.logs)) throw invalidResponse('the node returned no receipt')
  if (lower(value.transactionHash) !== hash?.toLowerCase())
    throw invalidResponse('the node returned a different receipt')
  const blockNumber = readQuantity(value.blockNumber, 'receipt block')
  const blockHash = readHash(value.blockHash)
  const transfers = value.logs.flatMap((entry: unknown): TokenTransfer[] => {
    if (!isRecord(entry) || !Array.isArray(entry.topics))
      throw invalidResponse('the node returned a log without topics')
    const [topic, fromTopic, toTopic] = entry.topics
    // Logs with another number of topics (ERC-721) are ignored.
    if (entry.topics.length !== 3 || lower(topic) !== topics.transfer) return []
    if (typeof entry.data !== 'string' || entry.data.length !== 66) return []
    const placed = { ...entry, blockHash, transactionHash: value.transactionHash }
    return [readTransfer({ entry: placed, blockNumber, fromTopic: String(fromTopic), toTopic: String(toTopic) })]
  })
  return { blockNumber, blockHash, transfers: withoutDuplicates(transfers) }
}

/** The three bits that a value sets in a bloom filter of 2,048 bits (yellow paper, section 4.3.1). */
export type BloomBits = readonly number[]

export function bloomBits(value: Hex): BloomBits {
  const hash = keccak256(hexToBytes(value))
  return [0, 2, 4].map((at) => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 2047)
}

/** A parsed block bloom filter. */
interface Bloom {
  /** Whether the filter carries information. False when it has no bits (chains without bloom filters) or more than half of its bits set. */
  readonly isUsable: boolean
  readonly isEmpty: boolean
  /** False: no log of the block contains the value. True: a log probably does. */
  mayHold(bits: BloomBits): boolean
}

/** With half of its bits set, a filter has a false-positive rate of one in eight. */
const bitsMax = 1_024

/** Parses the `logsBloom` of a header; undefined when it is not 256 bytes. */
function readBloom(value: unknown): Bloom | undefined {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{512}$/.test(value)) return undefined
  const bytes = hexToBytes(value)
  const count = bytes.reduce((sum, byte) => sum + ones(byte), 0)
  return {
    isUsable: count > 0 && count <= bitsMax,
    isEmpty: count === 0,
    mayHold: (bits) => bits.every((bit) => (((bytes[255 - (bit >> 3)] ?? 0) >> (bit & 7)) & 1) === 1),
  }
}

function ones(byte: number): number {
  let count = 0
  for (let rest = byte; rest > 0; rest &= rest - 1) count += 1
  return count
}
