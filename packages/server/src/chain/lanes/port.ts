import type { Address, Hex, Network } from '@purser/protocol'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import type { Id } from '../../platform/ids.ts'
import type { Receipt, Signer } from '../facts.ts'
import type { TempoFields, TempoTransaction } from '../tempo/port.ts'

/** The signer of an account's transactions. */
export interface LaneSigner extends Pick<Signer, 'signTransaction'> {
  /** For networks where fees are paid in stablecoins (Tempo's type 0x76). An account without it cannot send there. */
  signTempoTransaction?(fields: TempoFields): Promise<TempoTransaction>
}

/** A call that a transaction makes; `value` in wei. */
export interface LaneCall {
  readonly to: Address
  readonly data: Hex
  readonly value: bigint
}

/** A call of a transaction. A recipient of null creates a contract from `data`; on networks with a native coin only. */
export interface SentCall extends Omit<LaneCall, 'to'> {
  readonly to: Address | null
}

export type ChainTransactionId = Id<'ctx'>

/**
 * The kind of in-flight slot of an account that a transaction uses. `batch`: it carries several items, or the account's own work. `single`: it runs
 * untrusted code or repeats a failed item, so it is sent separately. The two kinds cannot use each other's slots.
 */
type LaneSlot = 'batch' | 'single'

export interface PlannedTransaction extends SentCall {
  readonly network: Network
  readonly gasLimit: bigint
  /** Defaults to `batch`. */
  readonly slot?: LaneSlot | undefined
  /** Networks without a native coin: the token that pays the fee. Defaults to the called token. */
  readonly feeToken?: Address | undefined
  /** Networks without a native coin: calls that run before this one, atomically in the same transaction. */
  readonly callsBefore?: readonly LaneCall[] | undefined
  /** Networks without a native coin: whether the sponsor pays the fee. `feeToken` is then required. */
  readonly isSponsored?: boolean | undefined
  /** Selects the `LaneHandler`. */
  readonly purpose: string
}

/** The number of transactions of each slot that are not mined yet. */
export type OpenCounts = Readonly<Record<LaneSlot, number>>

/**
 * One lane per account and network. Planned transactions are signed and sent once, in nonce order, even if processes crash. Any process may plan;
 * workers sign, send and follow the lanes of their leased shards.
 */
export interface Lanes {
  /** Starts leasing, sending and following. A process that only plans does not call it. */
  start(handlers: readonly LaneHandler[]): void
  /**
   * Reads an account's first nonce from the chain. Call it before the account's first `plan` on a network, outside any database transaction. Cached
   * after the first call.
   */
  prepare(network: Network, account: Address): Promise<void>
  /** Takes the account's next nonce and stores the transaction, atomically in the caller's database transaction. */
  plan(tx: Tx, account: Address, transaction: PlannedTransaction): Promise<ChainTransactionId>
  /** Plans several transactions of any accounts, in their order; returns their ids in that order. */
  planAll(tx: Tx, plans: readonly AccountPlan[]): Promise<readonly ChainTransactionId[]>
  /** Most unmined transactions of an account, by slot, before its planner should wait. */
  readonly slots: OpenCounts
  /** The number of the account's transactions that are not mined yet. Exact inside a database transaction that has planned for the account. */
  openCounts(db: Queryable, network: Network, account: Address): Promise<OpenCounts>
  /**
   * Reopens a final transaction whose block was reorganized away. Its stored bytes are sent again, and its handler is called as for any other
   * transaction, possibly for the second time.
   */
  reopen(tx: Tx, transactionId: ChainTransactionId): Promise<void>
  /** Wakes this process's driver of the network after a plan was committed. */
  notify(network: Network): void
  /** Finishes the current step and releases the leases. Nothing runs afterwards. */
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
  /** The newest hash that it was signed with; for mined and final transactions, the hash in the block. */
  readonly hash: Hex
}

/** A mined transaction and its receipt. */
export interface MinedTransaction {
  readonly transaction: LaneTransaction
  readonly receipt: Receipt
}

/**
 * A feature's callbacks for its transactions. Each runs inside the database transaction that stores the step, so its effects commit once with it. A
 * call gets all transactions of a purpose that reach the step together, of any accounts, in nonce order per account. When a call throws, the step
 * is rolled back for all of them and each is retried separately.
 */
export interface LaneHandler {
  readonly purpose: string
  /** The signed bytes are stored and about to be sent. Called again with a new hash for every replacement. */
  onSent?(tx: Tx, transactions: readonly LaneTransaction[]): Promise<void>
  /**
   * Networks without a native coin, where the fee is paid in a token: whether the account can pay this much more than the last signed fee, in 1e-18 US
   * dollars. It reads the chain first; the returned function decides in the database transaction that stores the new bytes, before anything else in it.
   * Without it every fee within the network's limits is signed.
   */
  coverRaise?(transaction: LaneTransaction, more: bigint): Promise<CoversRaise>
  /** Mined in a block that may still be reorganized away. Called again when mined in another block. */
  onMined?(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
  /** The block that `onMined` reported was reorganized away. The same bytes are sent again, and `onMined` is called again. */
  onReorganized?(tx: Tx, transactions: readonly LaneTransaction[]): Promise<void>
  /**
   * Another transaction took their nonce, so they can never be mined, and no transaction with their calls was found. Their effect may still have
   * happened elsewhere, so do not release funds because of this call alone.
   */
  onReplaced(tx: Tx, transactions: readonly LaneTransaction[]): Promise<void>
  /** Mined at the network's confirmation depth. Called once. */
  onFinal(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
  /** Replaces `onMined` and `onFinal` for transactions whose block is already at confirmation depth when first observed. */
  onMinedAndFinal?(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
}

export type CoversRaise = (tx: Tx) => Promise<boolean>

/** The handlers of one process, by their purpose. */
export type Handlers = ReadonlyMap<string, LaneHandler>
