import { type Hex, isAddress, isHex, topics } from '@purser/protocol'
import type { BlockHeader, BlockRange, TokenTransfer, TransferReceipt } from './block-port.ts'
import { type Bloom, readBloom } from './bloom.ts'
import { fail } from './errors.ts'
import { readHex, readQuantity } from './rpc/read.ts'
import { isRecord } from './rpc/rpc.ts'

/** A header with its bloom filter, where it has one. */
export interface Block extends BlockHeader {
  readonly bloom: Bloom | undefined
}

/** A log in the node's own words; only those that are wanted are read further. */
export interface RawTransfer {
  readonly entry: Readonly<Record<string, unknown>>
  readonly blockNumber: bigint
  readonly fromTopic: string
  readonly toTopic: string
}

/** A text in lower case; empty for what is none. */
export function lower(value: unknown): string {
  return typeof value === 'string' ? value.toLowerCase() : ''
}

/** Thrown inward for an answer that cannot be true or is none; shown as `chain-unavailable`. */
export function lying(what: string): Error {
  return fail('chain-unavailable', {}, new Error(what))
}

/** A block that must be there: null is what a node says that is behind. */
export function presentBlock(value: unknown, number?: bigint): Block {
  const block = readBlock(value, number)
  if (block === undefined) throw lying('the node does not have a block that it must have')
  return block
}

/** A block of `eth_getBlockByNumber`, with the number that was asked for; undefined when the node has none. */
export function readBlock(value: unknown, number?: bigint): Block | undefined {
  if (value === null) return undefined
  if (!isRecord(value)) throw lying('the node gave no block')
  const block = {
    number: readQuantity(value.number, 'block number'),
    hash: readHash(value.hash),
    parentHash: readHash(value.parentHash),
    timestampSeconds: readQuantity(value.timestamp, 'block time'),
    bloom: readBloom(value.logsBloom),
  }
  if (number !== undefined && block.number !== number) throw lying('the node gave another block')
  return block
}

function readHash(value: unknown): Hex {
  const hash = lower(value)
  if (hash.length !== 66 || !isHex(hash)) throw lying('the node gave no hash')
  return hash
}

/** Checks of each log what is cheap, thousands of times a second; whole logs are read only where they matter. */
export function readLogs(value: unknown, { from, to, tokens }: BlockRange): RawTransfer[] {
  if (!Array.isArray(value)) throw lying('the node gave no list of logs')
  const asked = new Set(tokens.map((token) => token.toLowerCase()))
  const numbers = new Map<unknown, bigint>()
  return value.map((entry: unknown) => {
    if (!isRecord(entry) || !Array.isArray(entry.topics)) throw lying('the node gave a log without topics')
    if (entry.removed === true) throw lying('the node gave a log that it removed')
    if (!asked.has(lower(entry.address))) throw lying('the node gave a log of a contract that was not asked for')
    let blockNumber = numbers.get(entry.blockNumber)
    if (blockNumber === undefined) {
      blockNumber = readQuantity(entry.blockNumber, 'log block')
      numbers.set(entry.blockNumber, blockNumber)
    }
    if (blockNumber < from || blockNumber > to) throw lying('the node gave a log of a block that was not asked for')
    const [topic, fromTopic, toTopic] = entry.topics
    if (lower(topic) !== topics.transfer) throw lying('the node gave a log of another kind')
    return { entry, blockNumber, fromTopic: String(fromTopic), toTopic: String(toTopic) }
  })
}

/** The whole of a transfer log. */
export function readTransfer({ entry, blockNumber, fromTopic, toTopic }: RawTransfer): TokenTransfer {
  const data = readHex(entry.data, 'log data')
  const token = lower(entry.address)
  const logIndex = readQuantity(entry.logIndex, 'log index')
  if (data.length !== 66 || !isAddress(token) || logIndex > 2_147_483_647n)
    throw lying('a transfer log has not the shape that it must')
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

function accountOf(topic: string): `0x${string}` {
  const account = `0x${topic.slice(26).toLowerCase()}`
  if (topic.length !== 66 || !isAddress(account)) throw lying('a transfer log names no account')
  return account
}

/** A log that came twice counts once; two that contradict each other are no answer. */
export function eachOnce(transfers: readonly TokenTransfer[]): TokenTransfer[] {
  const byPlace = new Map<string, TokenTransfer>()
  for (const transfer of transfers) {
    const place = `${transfer.blockNumber}/${transfer.logIndex}`
    const known = byPlace.get(place)
    if (known !== undefined && !isSameTransfer(known, transfer)) throw lying('two logs have one place')
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

/** Whether two logs tell of the same movement at the same place of the same block. */
export function isSameTransfer(left: TokenTransfer, right: TokenTransfer): boolean {
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

/** The transfers of the receipt that was asked for, or undefined when the node has none. */
export function readReceipt(value: unknown, hash: Hex | undefined): TransferReceipt | undefined {
  if (value === null) return undefined
  if (!isRecord(value) || !Array.isArray(value.logs)) throw lying('the node gave no receipt')
  if (lower(value.transactionHash) !== hash?.toLowerCase()) throw lying('the node gave another receipt')
  const blockNumber = readQuantity(value.blockNumber, 'receipt block')
  const blockHash = readHash(value.blockHash)
  const transfers = value.logs.flatMap((entry: unknown): TokenTransfer[] => {
    if (!isRecord(entry) || !Array.isArray(entry.topics)) throw lying('the node gave a log without topics')
    const [topic, fromTopic, toTopic] = entry.topics
    // A token with another number of topics (ERC-721) is none of ours.
    if (entry.topics.length !== 3 || lower(topic) !== topics.transfer) return []
    if (typeof entry.data !== 'string' || entry.data.length !== 66) return []
    const placed = { ...entry, blockHash, transactionHash: value.transactionHash }
    return [readTransfer({ entry: placed, blockNumber, fromTopic: String(fromTopic), toTopic: String(toTopic) })]
  })
  return { blockNumber, blockHash, transfers: eachOnce(transfers) }
}
