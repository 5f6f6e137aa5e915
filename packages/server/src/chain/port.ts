import type { Address, Hex, Network, TransferAuthorization, TransferSignature } from '@purser/protocol'
import type { Tx } from '../platform/db/db.ts'
import type { Id } from '../platform/ids.ts'

/** The chains of this deployment. */
export interface Chains {
  /** Throws the problem `chain-not-configured` where the deployment has no node. */
  on(network: Network): Chain
  readonly configured: readonly Network[]
}

declare module '../platform/ctx.ts' {
  interface Ports {
    readonly chains: Chains
  }
}

/** One network, read and written through its nodes. Every method throws the problem `chain-unavailable` when they fail. */
export interface Chain {
  readonly network: Network
  /** What the latest block says of a signed authorization; concurrent probes share one request to the node. */
  inspectAuthorization(probe: AuthorizationProbe): Promise<AuthorizationFacts>
  /** What a token says of its signing domain; `undefined` when it says nothing usable. Only what it said is remembered. */
  tokenDomain(token: Address): Promise<TokenDomain | undefined>
  /** The account's code as of the latest block; `0x` when it has none. */
  code(address: Address): Promise<Hex>
  /** Whether the nonce is used or cancelled, as of the latest block, which may still be reorganised away. */
  authorizationState(token: Address, authorizer: Address, nonce: Hex): Promise<boolean>
  /**
   * How an authorization that `authorizationState` calls used came to be so, at the network's confirmation depth. `since` is an
   * instant before which it was unused.
   */
  findAuthorizationUsed(
    token: Address,
    authorizer: Address,
    nonce: Hex,
    options: { readonly since: Date },
  ): Promise<AuthorizationUse>
  /** Balances in each token's smallest unit, in the order of the questions, all of one block. */
  balances(questions: readonly { readonly token: Address; readonly account: Address }[]): Promise<readonly bigint[]>
  head(): Promise<Head>
  /** What the node thinks that a block builder wants beside the base fee, in wei; `undefined` when it will not say. */
  suggestedTip(): Promise<bigint | undefined>
  transactionCount(address: Address, block: 'latest' | 'pending'): Promise<bigint>
  /** Hands signed transactions to the node, in their order; answers what it said to each. */
  send(raws: readonly Hex[]): Promise<readonly SendAnswer[]>
  /** One request: the head, the sender's transaction count and the receipts of these hashes, in their order. */
  watch(sender: Address, hashes: readonly Hex[]): Promise<Watch>
  receipt(hash: Hex): Promise<Receipt | undefined>
}

/** A signed EIP-3009 authorization to be looked at, as `checkAuthorization` of the protocol gives it. */
export interface AuthorizationProbe {
  readonly token: Address
  readonly authorization: TransferAuthorization
  readonly signature: TransferSignature
  /** The call that creates the payer's account (EIP-6492). */
  readonly deployment?: { readonly factory: Address; readonly factoryCalldata: Hex } | undefined
  /** The payer's own contract decides, so this probe runs code of a stranger: it gets a call of its own. */
  readonly untrusted: boolean
}

export interface AuthorizationFacts {
  readonly balance: bigint
  readonly nonceUsed: boolean
  /** Whether the token would move the money now; otherwise why not, in the token's words, or null when it gave none. */
  readonly simulation: { readonly ok: true } | { readonly ok: false; readonly reason: string | null }
}

export interface TokenDomain {
  readonly name: string
  readonly version: string
  readonly separator: Hex
}

/**
 * `used`: its money moved in this transaction. `cancelled`: the payer took it back. `open`: not deep enough yet, or the node
 * has not indexed it: ask again later and decide nothing.
 */
export type AuthorizationUse =
  | {
      readonly outcome: 'used'
      readonly transactionHash: Hex
      readonly blockNumber: bigint
      readonly logs: readonly Log[]
    }
  | { readonly outcome: 'cancelled' }
  | { readonly outcome: 'open' }

export interface Head {
  readonly number: bigint
  readonly timestampSeconds: bigint
  /** In wei; 0 where blocks have no base fee. */
  readonly baseFee: bigint
}

export interface Log {
  readonly address: Address
  readonly topics: readonly Hex[]
  readonly data: Hex
}

export interface Receipt {
  readonly transactionHash: Hex
  readonly status: 'success' | 'reverted'
  readonly blockNumber: bigint
  readonly blockHash: Hex
  readonly gasUsed: bigint
  readonly effectiveGasPrice: bigint
  readonly logs: readonly Log[]
}

/**
 * `sent` also when the node knew it already, and when nobody can tell what became of it. `nonce-too-low`: some transaction at that
 * nonce is mined, maybe this one. `underpriced`: the fees must be higher. `refused`: for a reason that sending again will not cure.
 */
export type SendAnswer =
  | { readonly outcome: 'sent' }
  | { readonly outcome: 'nonce-too-low' | 'underpriced' | 'refused'; readonly words: string }

export interface Watch {
  readonly head: Head
  /** The sender's transactions in blocks: the lowest nonce that is still free. */
  readonly transactionCount: bigint
  readonly receipts: readonly (Receipt | undefined)[]
}

/** An account whose key nobody outside custody sees. */
export interface Signer {
  readonly address: Address
  signTransaction(fields: TransactionFields): Promise<SignedTransaction>
}

/** An EIP-1559 transaction before it is signed; fees in wei per gas. */
export interface TransactionFields {
  readonly chainId: number
  readonly nonce: bigint
  readonly maxPriorityFeePerGas: bigint
  readonly maxFeePerGas: bigint
  readonly gasLimit: bigint
  readonly to: Address
  readonly value: bigint
  readonly data: Hex
}

export interface SignedTransaction {
  readonly raw: Hex
  readonly hash: Hex
}

export type ChainTransactionId = Id<'ctx'>

export interface PlannedTransaction {
  readonly network: Network
  readonly to: Address
  readonly data: Hex
  readonly value: bigint
  readonly gasLimit: bigint
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

export interface LaneTransaction {
  readonly id: ChainTransactionId
  readonly network: string
  readonly purpose: string
  readonly nonce: bigint
  /** The newest of the hashes that it was signed under; on mined and final, the one in the block. */
  readonly hash: Hex
}

/** What a feature does with its transactions, inside the database transaction that marks the step, so it happens once with it. */
export interface LaneHandler {
  readonly purpose: string
  /** Signed bytes are stored and about to be sent; again, with another hash, for every replacement. */
  onSent?(tx: Tx, transaction: LaneTransaction): Promise<void>
  /** In a block that may still be reorganised away; again when it then comes into another. */
  onMined?(tx: Tx, transaction: LaneTransaction, receipt: Receipt): Promise<void>
  /** Its nonce was used by a transaction that is not ours, so it can never be mined. What it was to do is undone or done elsewhere: look. */
  onDisplaced(tx: Tx, transaction: LaneTransaction): Promise<void>
  /** At the network's confirmation depth. Once. */
  onFinal(tx: Tx, transaction: LaneTransaction, receipt: Receipt): Promise<void>
}
