import type { Address, Hex } from '@purser/protocol'
import type { DecisionBlock, NodeVerdict } from '../rpc/port.ts'

/** A block header; hashes in lower case. */
export interface BlockHeader {
  readonly number: bigint
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestampSeconds: bigint
}

/** An ERC-20 or TIP-20 transfer log; all hexadecimal in lower case. */
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
   * `all`: reads every header; each must be the parent of the next. `ends`: for old blocks, reads the headers of the range's first and last blocks
   * and of the blocks with wanted transfers.
   */
  readonly headers: 'all' | 'ends'
  readonly tokens: readonly Address[]
  /**
   * The accounts of interest, as topics of logs. Their transfers are requested by account where a node delivers neither all logs nor all receipts of a block.
   */
  readonly accounts?: (() => Iterable<Hex>) | undefined
  /** Whether an account, in lower case, forwards what it receives in the same transaction, so that its transfers are of interest too. */
  readonly isForwarding?: (account: string) => boolean
  /** Hash of the range's last block, if it is known. A node that has another block there is refused. */
  readonly hash?: Hex | undefined
}

/** Whether a transfer is of interest. Both parameters are log topics: 32 bytes in hexadecimal, with the account in the last 20 bytes. */
export type IsWanted = (fromTopic: string, toTopic: string) => boolean

export interface ScannedRange {
  /** The requested headers by ascending block number. The last is the header of the range's last block. */
  readonly headers: readonly BlockHeader[]
  /** Every transfer of each transaction that has a wanted transfer, in chain order, without duplicates. */
  readonly transfers: readonly TokenTransfer[]
}

/** A transaction's receipt, as one node reports it. */
export interface TransferReceipt {
  readonly blockNumber: bigint
  readonly blockHash: Hex
  readonly transfers: readonly TokenTransfer[]
}

/** A receipt and the header of its block, from one node. */
export interface PlacedReceipt {
  readonly receipt: TransferReceipt
  readonly header: BlockHeader
}

/**
 * Reads whole blocks. Each method throws the problem `chain-unavailable` when a response is incomplete, late or contradictory; the caller retries.
 */
export interface BlockReads {
  /** The latest block of one node, which may be invented: use `newestBlock` where it decides something. */
  head(): Promise<BlockHeader>
  /** The transfers of a range of blocks. Requests the logs of a block again when its bloom filter indicates logs that the node did not return. */
  transfers(range: BlockRange, isWanted: IsWanted): Promise<ScannedRange>
  /** The transaction's receipt and its block, as most of the nodes show them; undefined when none has the receipt. */
  transferReceipt(hash: Hex): Promise<PlacedReceipt | undefined>
  /** The nodes one by one, for readings that must not depend on one node: healthy ones first, and of those the node that is usually read last. */
  eachNode(): readonly Pick<BlockReads, 'transfers'>[]
}

/** A transfer read from a block; hashes in lower case. */
export interface TransferClaim {
  readonly token: Address
  readonly to: Address
  readonly txHash: Hex
  readonly blockNumber: bigint
  readonly blockHash: Hex
  readonly isOf: (transfer: TokenTransfer) => boolean
}

export type PlacedBlock = Pick<BlockHeader, 'number' | 'hash'> & Partial<Pick<BlockHeader, 'timestampSeconds'>>

/** Reads confirmed by a majority of the configured nodes, at the depth at which deposits count. */
export interface ConfirmedReads {
  /**
   * The newest block that a majority of the nodes has; undefined while too few agree on one. `highest` is its number, or with two nodes the higher
   * number of the two: one that is slightly behind makes the majority's block an older one.
   */
  newestBlock(): Promise<(DecisionBlock & { readonly highest: bigint }) | undefined>
  /** Number of the newest block at the required depth; undefined while too few nodes agree on one. */
  finalBlock(): Promise<bigint | undefined>
  /**
   * Whether each transfer is in its block and that block is canonical at the required depth. `no`: the canonical block at that height is another
   * one, does not contain the transaction, or contains it without the transfer. Anything else is `undecided`.
   */
  confirmTransfers(claims: readonly TransferClaim[]): Promise<readonly NodeVerdict[]>
  /**
   * Whether a node invented each transfer: `yes` if a majority has its block, by the hash, without the transfer, at any depth; `no` if a majority has the
   * transfer in that block. Always `no` with fewer than three nodes, where none can be outvoted. Suspends no node, and
   * waits a second at most for the last nodes.
   */
  areInvented(claims: readonly TransferClaim[]): Promise<readonly NodeVerdict[]>
  /**
   * Whether each block is canonical at the required depth. `no`: the canonical block at that height is another one. `undecided`: it is not as deep, or too
   * few nodes agree.
   */
  areFinal(blocks: readonly PlacedBlock[]): Promise<readonly NodeVerdict[]>
  /** Whether the chain now has another block at each height, at any depth: one with another hash or, where a time is given, another time. */
  areReplaced(blocks: readonly PlacedBlock[]): Promise<readonly NodeVerdict[]>
}
