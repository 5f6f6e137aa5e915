import type { Address, Hex, Network } from '@purser/protocol'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import type { Id } from '../../platform/ids.ts'
import type { Receipt, Signer, TempoFields, TempoTransaction } from '../port.ts'

/** Who signs what an account sends. */
export interface LaneSigner extends Pick<Signer, 'signTransaction'> {
  /** Where fees are paid in stablecoins (Tempo's type 0x76); an account without it sends nothing there. */
  signTempoTransaction?(fields: TempoFields): Promise<TempoTransaction>
}

/** A call that a transaction makes; `value` in wei. */
export interface LaneCall {
  readonly to: Address
  readonly data: Hex
  readonly value: bigint
}

export type ChainTransactionId = Id<'ctx'>

/**
 * Which of an account's places in flight a transaction takes. `batch`: it carries the work of several, or of its account. `alone`: it runs code
 * of a stranger or repeats what failed, so it travels by itself, in a place that batches cannot take and beyond which it cannot take theirs.
 */
export type LaneSlot = 'batch' | 'alone'

export interface PlannedTransaction extends LaneCall {
  readonly network: Network
  readonly gasLimit: bigint
  /** `batch` where it is left out. */
  readonly slot?: LaneSlot | undefined
  /** Where there is no coin: what the fee is paid in. Left out, the token that is called. */
  readonly feeToken?: Address | undefined
  /** Where there is no coin: calls that run before this one in the same transaction, all of them or none. */
  readonly callsBefore?: readonly LaneCall[] | undefined
  /** Where there is no coin: whether the sponsor pays the fee, in `feeToken`, which is named then. */
  readonly isSponsored?: boolean | undefined
  /** Names the handler of what becomes of it. */
  readonly purpose: string
}

/** How many transactions of each slot are in no block yet. */
export type OpenCounts = Readonly<Record<LaneSlot, number>>

/**
 * One lane per account and network: what is planned here is signed and sent in the order of its nonces, once, whatever process dies when. Any
 * process may plan; workers sign, send and follow the lanes of the shards that they have leased.
 */
export interface Lanes {
  /** Starts leasing, sending and following. A process that only plans does not call it. */
  start(handlers: readonly LaneHandler[]): void
  /** Before an account's first `plan` on a network, and outside any transaction: reads its first nonce from the chain. Cheap when known. */
  prepare(network: Network, account: Address): Promise<void>
  /** Takes the account's next nonce and stores the transaction in the caller's database transaction: both are there or neither is. */
  plan(tx: Tx, account: Address, transaction: PlannedTransaction): Promise<ChainTransactionId>
  /** Plans several transactions of any accounts, in their order; returns their ids in that order. */
  planAll(tx: Tx, plans: readonly AccountPlan[]): Promise<readonly ChainTransactionId[]>
  /** Most transactions of an account that may be in no block yet, by slot, before its planner should wait. */
  readonly slots: OpenCounts
  /** The account's transactions that are in no block yet. Exact inside a transaction that has planned for the account. */
  openCounts(db: Queryable, network: Network, account: Address): Promise<OpenCounts>
  /**
   * The block of a transaction that was final at the payment depth is gone. Its stored bytes are sent again, and its handler is called as for any
   * other; it may have been called for it before.
   */
  reopen(tx: Tx, transactionId: ChainTransactionId): Promise<void>
  /** Something was planned and committed: wakes this process's driver of the network. */
  notify(network: Network): void
  /** Finishes the step under way and releases the leases; nothing runs afterwards. */
  stop(): Promise<void>
}

export interface AccountPlan {
  readonly account: Address
  readonly planned: PlannedTransaction
}

export interface LaneTransaction {
  readonly id: ChainTransactionId
  readonly network: string
  readonly purpose: string
  readonly nonce: bigint
  /** The newest of the hashes that it was signed under; on mined and final, the one in the block. */
  readonly hash: Hex
}

/** A transaction in a block, and what the block says of it. */
export interface MinedTransaction {
  readonly transaction: LaneTransaction
  readonly receipt: Receipt
}

/**
 * What a feature does with its transactions, inside the database transaction that marks the step, so that it happens once with it. Each call
 * gets all of a purpose that come to the step together, of any accounts, each account's in the order of its nonces. What a call throws undoes
 * the step for all of them; each is then given to the call alone.
 */
export interface LaneHandler {
  readonly purpose: string
  /** Signed bytes are stored and about to be sent; comes again, with another hash, for every replacement. */
  onSent?(tx: Tx, transactions: readonly LaneTransaction[]): Promise<void>
  /** In a block that may still be reorganised away; comes again when they are then in another. */
  onMined?(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
  /** The block that `onMined` reported is gone; the same bytes are sent again, and `onMined` comes again. */
  onReorganised?(tx: Tx, transactions: readonly LaneTransaction[]): Promise<void>
  /**
   * A transaction that is not ours took their nonce, so they can never be mined, and no transaction with their calls was found. What they were to
   * do may have been done elsewhere all the same: release nothing by this alone.
   */
  onReplaced(tx: Tx, transactions: readonly LaneTransaction[]): Promise<void>
  /** At the network's confirmation depth. Once. */
  onFinal(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
  /** In place of `onMined` and then `onFinal`, for those whose block is at its depth when it is first seen. */
  onMinedAndFinal?(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
}
