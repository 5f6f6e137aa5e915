import type {
  Address,
  Hex,
  Network,
  Permit2Settlement,
  TokenInfo,
  TransferAuthorization,
  TransferSignature,
} from '@purser/protocol'
import type { TempoSendAnswer, TempoTransaction, TempoTransactions, TempoTrial } from './tempo-port.ts'

export type {
  TempoCall,
  TempoDecoded,
  TempoFields,
  TempoRefusal,
  TempoSendAnswer,
  TempoTransaction,
  TempoTransactions,
  TempoTrial,
} from './tempo-port.ts'

import type { BlockReads, ConfirmedReads } from './block-port.ts'
import type { ChainHealth, TokenDomainState } from './health-port.ts'
import type { LaneCall, Lanes } from './lanes/port.ts'
import type { QuorumReads } from './quorum-port.ts'

import type { SentCall } from './try-sending.ts'

export type { ChainHealth, TokenDomainState } from './health-port.ts'
export type {
  AuthorizationId,
  AuthorizationUse,
  DecisionBlock,
  Finality,
  NonceState,
  PermitId,
  QuorumReads,
  SentCallId,
  StateAt,
  StateQuestion,
  TempoTransactionId,
  Verdict,
} from './quorum-port.ts'

/** The chains of this deployment. */
export interface Chains {
  /** Throws the problem `chain-not-configured` where the deployment has no node. */
  on(network: Network): Chain
  readonly configured: readonly Network[]
  /** How the network's nodes are, as this process has met them; undefined where it has none. */
  health(network: Network): ChainHealth | undefined
  /** Whether the token signs under the domain that the registry says. A wrong one must not be offered for payment by signature. */
  tokenDomainState(network: Network, token: TokenInfo): TokenDomainState
  /** Asks the nodes that are due which chain they are of, and the tokens what they sign under. Never throws. */
  check(): Promise<void>
  /** Checks again and again, until `stop`. */
  watch(): void
  /** Lets the asking under way finish. */
  stop(): Promise<void>
}

declare module '../platform/ctx.ts' {
  interface Ports {
    readonly chains: Chains
    /** Sends what the relayer and the managed wallets send. */
    readonly lanes: Lanes
    readonly tempoTransactions: TempoTransactions
  }
}

/** One network, read and written through its nodes. Every method throws the problem `chain-unavailable` when they fail. */
export interface Chain extends QuorumReads {
  readonly network: Network
  /** Whole blocks, for the watcher of deposits. */
  readonly blocks: BlockReads & ConfirmedReads
  /** What the latest block says of a signed authorization; concurrent probes share one request to the node. */
  inspectAuthorization(probe: AuthorizationProbe): Promise<AuthorizationFacts>
  /** What a token says of its signing domain; `undefined` when it says nothing usable. Only what it said is remembered. */
  tokenDomain(token: Address): Promise<TokenDomain | undefined>
  /** The account's code as of the latest block; `0x` when it has none. */
  code(address: Address): Promise<Hex>
  /** Whether the latest block would take the call from this account, and the gas that it used; otherwise why not, in the contract's words. */
  tryCall(call: TriedCall): Promise<CallTrial>
  /**
   * The same of several calls that one transaction makes, one after the other and all of them or none; the gas is what they use at most,
   * each counted as a transaction of its own.
   */
  tryCalls(from: Address, calls: readonly LaneCall[]): Promise<CallTrial>
  /** What calls of one account, one after the other, would change of balances as of the latest block; gas costs nothing. Keeps nothing. */
  simulate(from: Address, calls: readonly LaneCall[], readings: readonly BalanceReading[]): Promise<Simulation>
  /**
   * Whether the latest block would take the call as the transaction that it is to be: at today's gas price, for two block builders and times.
   * What a node cannot say is no refusal.
   */
  trySending(call: SentCall): Promise<boolean>
  /** Those of the accounts, in lower case, that have code as of the latest block: contracts, and ordinary accounts that delegate (EIP-7702). */
  accountsWithCode(accounts: readonly Address[]): Promise<ReadonlySet<string>>
  /** What a payer has, and which of their nonces are spent, all of the latest block, which may still be reorganized away. */
  payerFunds(question: PayerQuestion): Promise<PayerFunds>
  /** What the latest block says of a signed Permit2 payment, were the settler to send it now. */
  inspectPermit2(probe: Permit2Probe): Promise<Permit2Facts>
  /** Balances in each token's smallest unit, in the order of the questions, all of one block. */
  balances(questions: readonly { readonly token: Address; readonly account: Address }[]): Promise<readonly bigint[]>
  /** What a sanctions oracle at that address says of each account, all of one block, and when that block was made. */
  sanctions(oracle: Address, accounts: readonly Address[]): Promise<Sanctions>
  /**
   * The native coin and tokens of accounts, in the order of the questions, as of the latest block or of the canonical block with this hash. A node that
   * does not have that block is `chain-unavailable`.
   */
  holdings(questions: readonly HoldingQuestion[], blockHash?: Hex): Promise<readonly Holding[]>
  /** What a contract answers as of the latest block. A call that reverts is `chain-unavailable` too: ask what must answer. */
  call(to: Address, data: Hex): Promise<Hex>
  /** The same as of the newest block at the network's confirmation depth: what nothing is expected to undo. `0x` before there is one. */
  callAtDepth(to: Address, data: Hex): Promise<Hex>
  head(): Promise<Head>
  /** What the node thinks that a block builder wants beside the base fee, in wei; `undefined` when it will not say. */
  suggestedTip(): Promise<bigint | undefined>
  /** What a transaction that is signed now would offer for gas, in wei per unit, and what it would be taken beside. */
  offeredFees(): Promise<OfferedFees>
  transactionCount(address: Address, block: 'latest' | 'pending'): Promise<bigint>
  /** Hands signed transactions to all nodes that answer, in their order. Returns for each what most of them answered. */
  send(raws: readonly Hex[]): Promise<readonly SendAnswer[]>
  /** One request: the head, the senders' transaction counts and the receipts of these hashes, in their order. */
  watch(senders: readonly Address[], hashes: readonly Hex[]): Promise<Watch>
  /** The receipts of these hashes at any node, in their order. For those of which the node that is used first has none. */
  findReceipts(hashes: readonly Hex[]): Promise<readonly (SeenReceipt | undefined)[]>
  receipt(hash: Hex): Promise<Receipt | undefined>
  /** The newest transaction in which the contract logged an event with these topics. Searches the whole chain: for local chains. */
  findEvent(address: Address, topics: readonly Hex[]): Promise<Hex | undefined>
  /** Tempo networks: whether the latest block would take the transaction, by its sender, with its own gas limit. */
  tryTempo(transaction: TempoTransaction): Promise<TempoTrial>
  /** Tempo networks: hands a final transaction to all nodes that answer, which take the same bytes again without harm. */
  sendTempo(raw: Hex): Promise<TempoSendAnswer>
  /** The newest block, the newest that can no longer be undone, and the receipts of these hashes, in their order. */
  lookUp(hashes: readonly Hex[]): Promise<LookUp>
}

export interface PayerQuestion {
  readonly token: Address
  readonly account: Address
  /** Of EIP-3009 authorizations of this token. */
  readonly nonces: readonly Hex[]
  /** Of Permit2. */
  readonly permits: readonly bigint[]
}

export interface PayerFunds {
  /** In the token's smallest unit. */
  readonly rawBalance: bigint
  /** Those that are used, canceled or given up. One about which the contract gives no answer is not among them. */
  readonly spentNonces: readonly Hex[]
  readonly spentPermits: readonly bigint[]
}

export interface HoldingQuestion {
  readonly account: Address
  readonly tokens: readonly Address[]
}

/** Amounts in the smallest unit. */
export interface Holding {
  /** Undefined where the network has no native coin and what a node says of it means nothing. */
  readonly native: bigint | undefined
  /** In the order in which the question named the tokens. */
  readonly tokens: readonly bigint[]
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

/** Wei per unit of gas (EIP-1559). */
export interface OfferedFees {
  readonly maxFee: bigint
  readonly priorityFee: bigint
  /**
   * Wei to count beside the gas for each 256 bytes of a transaction (`l1FeeOf`): twice what an OP Stack network takes for them now, since
   * that rises with Ethereum's fees until a block has it, and the operator's fee. 0 where a transaction pays for gas alone.
   */
  readonly l1Fee: bigint
}

/** A call that somebody might send; `value` in wei. */
export interface TriedCall {
  readonly from: Address
  readonly to: Address
  readonly data: Hex
  readonly value: bigint
}

export type CallTrial =
  | { readonly ok: true; readonly gas: bigint }
  | { readonly ok: false; readonly reason: string | null }

export interface BalanceReading {
  /** The zero address is the network's coin. */
  readonly token: Address
  /** `supply`: how much there is of the token in all. */
  readonly account: Address | 'supply'
}

/** `unable`: no node of the network simulates. Changes in the order of the readings, in the smallest unit; what fell is negative. */
export type Simulation =
  | { readonly outcome: 'ran'; readonly changes: readonly bigint[] }
  | { readonly outcome: 'refused'; readonly reason: string | null }
  | { readonly outcome: 'unable' }

export interface AuthorizationFacts {
  readonly balance: bigint
  readonly nonceUsed: boolean
  /** Whether the token would move the money now; otherwise why not, in the token's words, or null when it gave none. */
  readonly simulation: { readonly ok: true } | { readonly ok: false; readonly reason: string | null }
}

/** A Permit2 payment and the account that would send it. */
export interface Permit2Probe {
  readonly settlement: Permit2Settlement
  readonly settler: Address
}

export interface Permit2Facts {
  readonly proxyDeployed: boolean
  /** Permit2 then asks the payer's contract instead of recovering its key. */
  readonly payerHasCode: boolean
  readonly balance: bigint
  /** What the payer lets Permit2 spend of the token. */
  readonly allowance: bigint
  readonly nonceUsed: boolean
  /** Whether the proxy would settle now; means nothing where it is not deployed. `data` is what it reverted with, null when the node did not say. */
  readonly trial: { readonly ok: true } | { readonly ok: false; readonly data: Hex | null }
}

/**
 * `used`: this transaction settled the permit. `elsewhere`: no transaction that can be shown to have settled it, so it was given up or spent
 * otherwise. `open`: not deep enough yet: ask again later and decide nothing.
 */
export type Permit2Use =
  | { readonly outcome: 'used'; readonly transactionHash: Hex }
  | { readonly outcome: 'elsewhere' }
  | { readonly outcome: 'open' }

export interface Sanctions {
  readonly timestampSeconds: bigint
  /** In the order of the accounts. */
  readonly sanctioned: readonly boolean[]
}

export interface TokenDomain {
  readonly name: string
  readonly version: string
  readonly separator: Hex
}

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
  /** Wei that were taken beside the gas, for its bytes on Ethereum and for the operator; 0 where there is no such fee. */
  readonly l1Fee: bigint
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
  /** Each sender's transactions in blocks: the lowest nonce that is still free. */
  readonly transactionCounts: ReadonlyMap<Address, bigint>
  readonly receipts: readonly (Receipt | undefined)[]
}

/** A receipt as one node has it, and the head of that node. */
export interface SeenReceipt {
  readonly receipt: Receipt
  readonly head: Head
}

export interface LookUp {
  readonly head: Head
  readonly finalized: Pick<Head, 'number' | 'timestampSeconds'>
  readonly receipts: readonly (Receipt | undefined)[]
}

/** An account whose key nobody outside custody sees. */
export interface Signer extends FeeSponsor {
  signTransaction(fields: TransactionFields): Promise<SignedTransaction>
}

/** An account that pays the fees of other people's Tempo transactions. */
export interface FeeSponsor {
  readonly address: Address
  /**
   * Completes a transaction whose sender left the fee to somebody else: names the fee token and signs for the fee. Throws for a
   * transaction of its own account and for one that does not wait for a sponsor; what it may cost is the caller's to bound.
   */
  signTempoFeePayer(transaction: TempoTransaction, feeToken: Address): Promise<SignedTransaction>
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

export type {
  AccountPlan,
  ChainTransactionId,
  LaneCall,
  LaneHandler,
  LaneSigner,
  LaneSlot,
  Lanes,
  LaneTransaction,
  MinedTransaction,
  OpenCounts,
  PlannedTransaction,
} from './lanes/port.ts'
