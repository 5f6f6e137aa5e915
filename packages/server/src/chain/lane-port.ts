import type { Address, Hex, Network } from '@purser/protocol'
import type { Tx } from '../platform/db/db.ts'
import type { Id } from '../platform/ids.ts'
import type { Receipt, Signer, TempoFields, TempoTransaction } from './port.ts'

/** Who signs what a lane sends. */
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

export interface PlannedTransaction extends LaneCall {
  readonly network: Network
  readonly gasLimit: bigint
  /** Where there is no coin: what the fee is paid in. Left out, the token that is called. */
  readonly feeToken?: Address | undefined
  /** Where there is no coin: calls that run before this one in the same transaction, all of them or none. */
  readonly callsBefore?: readonly LaneCall[] | undefined
  /** Where there is no coin: whether the lanes' sponsor pays the fee, in `feeToken`, which is named then. */
  readonly isSponsored?: boolean | undefined
  /** Names the handler that is told what became of it. */
  readonly purpose: string
}

/** The settler's lanes, one per network: what is planned here is sent in the order of its nonces, once, whatever dies when. */
export interface Lanes {
  /** Configured networks on which authorizations are settled. */
  readonly networks: readonly Network[]
  /** How many transactions may wait for a block at once before planners should gather more into the next. */
  readonly openMax: number
  /** The account that sends, on every network. */
  readonly address: Address
  /** Starts sending and watching. A process that only plans does not call it. */
  start(handlers: readonly LaneHandler[]): void
  /** Before the first `plan` on a network, and outside any transaction: asks the chain for the lane's first nonce. Cheap when known. */
  prepare(network: Network): Promise<void>
  /** Takes the next nonce and stores the intent in the caller's transaction: both are there or neither is. */
  plan(tx: Tx, transaction: PlannedTransaction): Promise<ChainTransactionId>
  /** How many transactions are in no block yet. */
  openCount(network: Network): Promise<number>
  /** Something was planned and committed: look at once. */
  nudge(network: Network): void
  /** Lets the step under way finish; nothing runs afterwards. */
  stop(): Promise<void>
}

/** Lanes of any number of accounts, as `Lanes` is the settler's. */
export interface AccountLanes {
  /** Starts sending and watching. A process that only plans does not call it. */
  start(handlers: readonly LaneHandler[]): void
  /** Before an account's first `plan` on a network, and outside any transaction: asks the chain for its first nonce. Cheap when known. */
  prepare(network: Network, account: Address): Promise<void>
  /** Takes the account's next nonce and stores the intent in the caller's transaction: both are there or neither is. */
  plan(tx: Tx, account: Address, transaction: PlannedTransaction): Promise<ChainTransactionId>
  /** The same for several of any accounts, in their order; answers their ids in it. */
  planAll(tx: Tx, plans: readonly AccountPlan[]): Promise<readonly ChainTransactionId[]>
  /** Something was planned and committed: look at once. */
  nudge(network: Network): void
  /** Lets the step under way finish; nothing runs afterwards. */
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

/** What a feature does with its transactions, inside the database transaction that marks the step, so it happens once with it. */
export interface LaneHandler {
  readonly purpose: string
  /**
   * For a feature that has many: told of several that come to the same step at the same time, in place of the calls below one by one. What
   * it throws undoes all of them, and each is then told alone.
   */
  readonly several?: {
    onSent(tx: Tx, transactions: readonly LaneTransaction[]): Promise<void>
    onMined(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
    onFinal(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
    /** In place of both for those whose block is at its depth when it is first seen. */
    onMinedAndFinal(tx: Tx, mined: readonly MinedTransaction[]): Promise<void>
  }
  /** Signed bytes are stored and about to be sent; again, with another hash, for every replacement. */
  onSent?(tx: Tx, transaction: LaneTransaction): Promise<void>
  /** In a block that may still be reorganised away; again when it then comes into another. */
  onMined?(tx: Tx, transaction: LaneTransaction, receipt: Receipt): Promise<void>
  /** The block that `onMined` told of is gone; the same bytes are sent again, and `onMined` comes again. */
  onReorganised?(tx: Tx, transaction: LaneTransaction): Promise<void>
  /** Its nonce was used by a transaction that is not ours, so it can never be mined. What it was to do is undone or done elsewhere: look. */
  onDisplaced(tx: Tx, transaction: LaneTransaction): Promise<void>
  /** At the network's confirmation depth. Once. */
  onFinal(tx: Tx, transaction: LaneTransaction, receipt: Receipt): Promise<void>
}
