import type { Address, Hex } from '@purser/protocol'
import type { Verdict } from './quorum-port.ts'

/** A block as the chain's history names it; hashes in lower case. */
export interface BlockHeader {
  readonly number: bigint
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestampSeconds: bigint
}

/** An ERC-20 or TIP-20 transfer log; everything in lower case. */
export interface TokenTransfer {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly rawAmount: bigint
  readonly txHash: Hex
  readonly logIndex: number
  readonly blockNumber: bigint
  readonly blockHash: Hex
}

export interface BlockRange {
  readonly from: bigint
  readonly to: bigint
  /**
   * `all`: every header is read and each must be the parent of the next. `ends`: for blocks that are long past, those of the range's ends and of
   * the blocks where something wanted happened.
   */
  readonly headers: 'all' | 'ends'
  readonly tokens: readonly Address[]
  /** Of the only block of the range, where it is known: the node then answers for that block or not at all. */
  readonly hash?: Hex | undefined
}

/** Whether a transfer is of interest. Both are the topic of a log: 32 bytes in hexadecimal, the account in the last 20. */
export type IsWanted = (fromTopic: string, toTopic: string) => boolean

export interface ScannedRange {
  /** In the order of their numbers: those that the range asked for. The last is that of the range's end. */
  readonly headers: readonly BlockHeader[]
  /** Every transfer of those transactions that hold a wanted one, in the order of the chain, each log once. */
  readonly transfers: readonly TokenTransfer[]
}

/** What one node says became of a transaction. */
export interface TransferReceipt {
  readonly blockNumber: bigint
  readonly blockHash: Hex
  readonly transfers: readonly TokenTransfer[]
}

/**
 * Reads whole blocks. A short, late or contradictory answer is never an answer: each method throws the problem `chain-unavailable`, and the
 * caller asks again.
 */
export interface BlockReads {
  /** The newest block of one node. */
  head(): Promise<BlockHeader>
  /** The headers at these heights; undefined for one that the node does not have. */
  headers(numbers: readonly bigint[]): Promise<readonly (BlockHeader | undefined)[]>
  /** The transfers of a range of blocks. Where a block's bloom filter says that there must be more than the node gave, it is asked once more. */
  transfers(range: BlockRange, isWanted: IsWanted): Promise<ScannedRange>
  /** The transaction's receipt, or undefined when the node has none. */
  transferReceipt(hash: Hex): Promise<TransferReceipt | undefined>
}

/** A transfer that was read in a block; hashes in lower case. */
export interface TransferClaim {
  readonly txHash: Hex
  readonly blockNumber: bigint
  readonly blockHash: Hex
  readonly isOf: (transfer: TokenTransfer) => boolean
}

/** What a majority of the configured nodes says, by the depth at which deposits count. */
export interface ConfirmedReads {
  /** Number of the newest block that is deep enough; undefined while too few nodes agree on one. */
  finalBlock(): Promise<bigint | undefined>
  /**
   * Whether each transfer is in its block, and the block in the chain, deep enough. `no`: a block that is deep enough is another one, or does not
   * have the transaction, or has it without the transfer. Anything else is `undecided`.
   */
  confirmTransfers(claims: readonly TransferClaim[]): Promise<readonly Verdict[]>
  /** Whether the chain now has another block at that height, however deep. */
  isReplaced(block: Pick<BlockHeader, 'number' | 'hash'>): Promise<Verdict>
}
