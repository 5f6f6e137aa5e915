import type {
  Address,
  Hex,
  Network,
  Permit2Settlement,
  TokenInfo,
  TransferAuthorization,
  TransferSignature,
} from '@purser/protocol'
import type { BlockReads, ConfirmedReads } from './blocks/port.ts'
import type { Head, Log, Receipt } from './facts.ts'
import type { LaneCall, Lanes } from './lanes/port.ts'
import type { SimulatedCall } from './reads/try-sending.ts'
import type { QuorumReads } from './rpc/port.ts'
import type { TempoSendResponse, TempoTransaction, TempoTransactions, TempoTrial } from './tempo/port.ts'

export type { FeeSponsor, Head, Log, Receipt, SignedTransaction, Signer, TransactionFields } from './facts.ts'
export type { NodeVerdict, NonceState, QuorumReads, StateQuestion } from './rpc/port.ts'
export type {
  TempoCall,
  TempoDecoded,
  TempoFields,
  TempoRefusal,
  TempoSendResponse,
  TempoTransaction,
  TempoTransactions,
  TempoTrial,
} from './tempo/port.ts'

/** The networks of this deployment. */
export interface Chains {
  /** Throws the problem `chain-not-configured` when the deployment has no node for the network. */
  on(network: Network): Chain
  readonly configured: readonly Network[]
  /** The health of the network's nodes, as observed by this process; undefined when it has none. */
  health(network: Network): ChainHealth | undefined
  /** The URL of the network's block explorer; null if the deployment is configured without one. */
  explorerUrl(network: Network): string | null
  /** Whether the token's EIP-712 domain matches the registry. A token with a wrong domain must not be offered for payment by signature. */
  tokenDomainState(network: Network, token: TokenInfo): TokenDomainState
  /** Checks the chain IDs of the nodes and the signing domains of the tokens that are due. Never throws. */
  check(): Promise<void>
  /** Runs `check` periodically until `stop`. */
  watch(): void
  /** Stops after the running check has finished. */
  stop(): Promise<void>
}

/** The part of the chains that features use. */
export interface ChainPorts {
  readonly chains: Chains
  /** Sends the transactions of the relayer and of managed wallets. */
  readonly lanes: Lanes
  readonly tempoTransactions: TempoTransactions
}

/** Access to one network through its nodes. Every method throws the problem `chain-unavailable` when the nodes fail. */
export interface Chain extends QuorumReads {
  readonly network: Network
  /** Block reads for the deposit watcher. */
  readonly blocks: BlockReads & ConfirmedReads
  /** Inspects a signed authorization as of the latest block. Concurrent probes share one request to the node. */
  inspectAuthorization(probe: AuthorizationProbe): Promise<AuthorizationFacts>
  /** A token's signing domain, as a majority of the nodes reports; `undefined` when the contract returns no usable data. Only successful reads are cached. */
  tokenDomain(token: Address): Promise<TokenDomain | undefined>
  /** The account's code as of the latest block, as a majority of the nodes reports; `0x` when it has none. */
  code(address: Address): Promise<Hex>
  /**
   * Whether the call would succeed on the latest block, with the gas limit to send it with, or the contract's revert reason, as a majority of the
   * nodes decides. Throws `chain-unavailable` while there is none, so a refusal may end what it concerns.
   */
  tryCall(call: TriedCall): Promise<CallTrial>
  /**
   * The revert reason of a call on the latest block, confirmed by a majority of the nodes; undefined if it would not revert, or reverts without a
   * reason.
   */
  refusalOf(call: TriedCall): Promise<string | undefined>
  /**
   * Whether several calls would succeed atomically in one transaction, in order, as `tryCall`. The gas limit counts each call as a separate
   * transaction.
   */
  tryCalls(from: Address, calls: readonly LaneCall[]): Promise<CallTrial>
  /**
   * The changes of balances that an account's calls, in sequence, would make as of the latest block. Gas is free, and nothing is stored. A majority
   * of the nodes agrees on the outcome, and whether the changes are as expected; throws `chain-unavailable` while there is none.
   */
  simulate(trial: SimulatedCalls): Promise<Simulation>
  /**
   * Whether the call would succeed as a real transaction on the latest block: at the current gas price, for two block builders and times. A response
   * that does not decide counts as success. Throws `chain-unavailable` while the nodes are divided.
   */
  trySending(call: SimulatedCall): Promise<boolean>
  /**
   * Those of the signers, in lower case, whose payloads must not share a transaction as of the latest block: contracts, ordinary accounts that
   * delegate (EIP-7702), and accounts with a smaller balance than their payloads move. A signer of whom a majority of the nodes does not report the
   * opposite is among them.
   */
  signersToSendSingly(needs: readonly SignerNeed[]): Promise<ReadonlySet<string>>
  /** A payer's balance and spent nonces as of the latest block, which may still be reorganized away. */
  payerFunds(question: PayerQuestion): Promise<PayerFunds>
  /** Inspects a signed Permit2 payment as if the relayer sent it on the latest block. */
  inspectPermit2(probe: Permit2Probe): Promise<Permit2Facts>
  /** Balances in each token's smallest unit, in the order of the questions, as of the latest block: the most that a majority of the nodes reports at least. */
  balances(questions: readonly { readonly token: Address; readonly account: Address }[]): Promise<readonly bigint[]>
  /** The account's native coin in wei, as `balances`. */
  coin(account: Address): Promise<bigint>
  /**
   * The response of the sanctions oracle at that address for each account, as of the latest block, with the block's time. Undefined for an account
   * about which no majority of the nodes agrees.
   */
  sanctions(oracle: Address, accounts: readonly Address[]): Promise<Sanctions>
  /**
   * The native coin and tokens of accounts, in the order of the questions, as of the latest block or of the canonical block with this hash. A node that
   * does not have that block is `chain-unavailable`.
   */
  holdings(questions: readonly HoldingQuestion[], blockHash?: Hex): Promise<readonly Holding[]>
  /** As `holdings` of the latest block, as a majority of the nodes reports. Throws `chain-unavailable` while they differ. */
  agreedHoldings(questions: readonly HoldingQuestion[]): Promise<readonly Holding[]>
  /**
   * A contract's result as of the latest block, as a majority of the nodes reports: the same result, or results of the same meaning. Throws
   * `chain-unavailable` while there is none, and where the call reverts, so use it for calls that must succeed.
   */
  agreedCall(to: Address, data: Hex, meaningOf?: (response: Hex) => string): Promise<Hex>
  /** The latest block of one node, with a number that is not below the one that a majority had when heads were last compared. */
  head(): Promise<Head>
  /** The priority fee that the node suggests, in wei per gas; `undefined` when it does not suggest one. */
  suggestedTip(): Promise<bigint | undefined>
  /** The fees that a transaction signed now would offer, in wei per gas, and the L1 fee to count in addition. */
  offeredFees(): Promise<OfferedFees>
  /** Transactions of an account in blocks, as of the latest block: the most that a majority of the nodes reports at least. */
  transactionCount(account: Address): Promise<bigint>
  /** Sends signed transactions, in order, to all nodes that answer. Returns the most frequent response for each. */
  send(raws: readonly Hex[]): Promise<readonly SendResponse[]>
  /** One request: the head, the senders' transaction counts and the receipts of these hashes, in their order. */
  watch(senders: readonly Address[], hashes: readonly Hex[]): Promise<Watch>
  /** The receipts of these hashes that most of the nodes show, in order. Use it when the preferred node shows no receipt, or one that the others deny. */
  findReceipts(hashes: readonly Hex[]): Promise<readonly (SeenReceipt | undefined)[]>
  /** The receipt that most of the healthy nodes show. Undefined proves nothing, since the nodes that have it may not answer: see `areInBlocks`. */
  receipt(hash: Hex): Promise<Receipt | undefined>
  /** A transaction's logs in order, as a majority of the nodes reports; undefined if it is not mined. Throws `chain-unavailable` while they differ. */
  agreedLogs(hash: Hex): Promise<readonly Log[] | undefined>
  /** The receipt from the preferred node alone, in one request; `unread` if it has more than half a MiB. */
  shortReceipt(hash: Hex): Promise<ShownReceipt>
  /** The newest transaction in which the contract logged an event with these topics. Searches the whole chain, so use it only on local chains. */
  findEvent(address: Address, topics: readonly Hex[]): Promise<Hex | undefined>
  /** Tempo networks: whether the transaction would succeed on the latest block, with its sender and gas limit. */
  tryTempo(transaction: TempoTransaction): Promise<TempoTrial>
  /** Tempo networks: sends final transactions, in order, to all nodes that answer. Sending the same bytes again is harmless. */
  sendTempo(raws: readonly Hex[]): Promise<readonly TempoSendResponse[]>
  /** The latest block, and the receipts of these hashes, in order, as the preferred node shows them; those that it does not have, as most nodes show them. */
  lookUp(hashes: readonly Hex[]): Promise<LookUp>
}

export interface PayerQuestion {
  readonly token: Address
  readonly account: Address
  /** Nonces of EIP-3009 authorizations of this token. */
  readonly nonces: readonly Hex[]
  /** Permit2 nonces. */
  readonly permits: readonly bigint[]
}

export interface SignerNeed {
  readonly signer: Address
  readonly token: Address
  /** The sum that the signer's payloads move, in the token's smallest unit. */
  readonly raw: bigint
}

export interface PayerFunds {
  /** In the token's smallest unit. */
  readonly rawBalance: bigint
  /** The nonces that are used or canceled. A nonce for which the contract gives no response is not included. */
  readonly spentNonces: readonly Hex[]
  readonly spentPermits: readonly bigint[]
}

export interface HoldingQuestion {
  readonly account: Address
  readonly tokens: readonly Address[]
}

/** Amounts in the smallest unit. */
export interface Holding {
  /** Undefined on a network without a native coin, where a node's response is meaningless. */
  readonly native: bigint | undefined
  /** In the order of the question's tokens. */
  readonly tokens: readonly bigint[]
}

/** A signed EIP-3009 authorization to inspect, as returned by the protocol's `checkAuthorization`. */
export interface AuthorizationProbe {
  readonly token: Address
  readonly authorization: TransferAuthorization
  readonly signature: TransferSignature
  /** The call that creates the payer's account (EIP-6492). */
  readonly deployment?: { readonly factory: Address; readonly factoryCalldata: Hex } | undefined
  /** The payer's contract validates the signature, so the probe runs untrusted code and gets a separate call. */
  readonly untrusted: boolean
  /** Gas that settlement grants this payment, where it is less than the usual grant. */
  readonly gas?: bigint | undefined
  /** `final`: a refusal ends the payment, so a majority must refuse it. Throws `chain-unavailable` while the nodes are divided. Default `passing`. */
  readonly refusal?: 'passing' | 'final'
}

/** Wei per unit of gas (EIP-1559). */
export interface OfferedFees {
  readonly maxFee: bigint
  readonly priorityFee: bigint
  /** Of the newest block. */
  readonly baseFee: bigint
  /**
   * Wei to count in addition to gas for each 256 bytes of a transaction (`l1FeeOf`): twice the current L1 fee of an OP Stack network, since it may
   * rise with Ethereum's fees before the transaction is mined, plus the operator fee; the cost of `dataGas` at `maxFee` on Arbitrum. 0 on networks
   * where a transaction pays only for gas.
   */
  readonly l1Fee: bigint
  /**
   * Gas to add to the gas limit for each 256 bytes of a transaction (`l1FeeOf`): on Arbitrum twice what the bytes take from the limit now. A lane
   * adds it when it signs. 0 on other networks.
   */
  readonly dataGas: bigint
}

/** A call to try; `value` in wei. */
export interface TriedCall {
  readonly from: Address
  readonly to: Address
  readonly data: Hex
  readonly value: bigint
}

export type CallTrial =
  | { readonly ok: true; readonly gasLimit: bigint }
  | { readonly ok: false; readonly reason: string | null }

export interface BalanceReading {
  /** The zero address means the network's native coin. */
  readonly token: Address
  /** `supply`: the token's total supply. */
  readonly account: Address | 'supply'
}

interface SimulatedCalls {
  readonly from: Address
  readonly calls: readonly LaneCall[]
  readonly readings: readonly BalanceReading[]
  /** Whether the changes, in the order of the readings, are those that the caller requires. */
  readonly isExpected: (changes: readonly bigint[]) => boolean
}

/**
 * `unable`: no node of the network supports simulation. `changes` are in the order of the readings, in the smallest unit; a decrease is negative.
 */
export type Simulation =
  | { readonly outcome: 'ran'; readonly changes: readonly bigint[] }
  | { readonly outcome: 'refused'; readonly reason: string | null }
  | { readonly outcome: 'unable' }

export interface AuthorizationFacts {
  readonly balance: bigint
  readonly nonceUsed: boolean
  /** Whether the transfer would succeed now, or the token's revert reason; null when it gave none. */
  readonly simulation: { readonly ok: true } | { readonly ok: false; readonly reason: string | null }
}

/** A Permit2 payment and the account that would send it. */
export interface Permit2Probe {
  readonly settlement: Permit2Settlement
  readonly settler: Address
  /** As those of `AuthorizationProbe`. */
  readonly gas?: bigint | undefined
  readonly refusal?: 'passing' | 'final'
}

export interface Permit2Facts {
  readonly proxyDeployed: boolean
  /** Permit2 then calls the payer's contract to validate the signature instead of recovering a key. */
  readonly payerHasCode: boolean
  readonly balance: bigint
  /** The payer's token allowance for Permit2. */
  readonly allowance: bigint
  readonly nonceUsed: boolean
  /** Whether the proxy would settle now; meaningless when it is not deployed. `data` is the revert data, null when the node returned none. */
  readonly trial: { readonly ok: true } | { readonly ok: false; readonly data: Hex | null }
}

export interface Sanctions {
  readonly timestampSeconds: bigint
  /** In the order of the accounts. */
  readonly sanctioned: readonly (boolean | undefined)[]
}

export interface TokenDomain {
  readonly name: string
  readonly version: string
  readonly separator: Hex
}

/**
 * `sent`: accepted, already known, or the outcome is unknown. `nonce-too-low`: a transaction at that nonce is mined, possibly this one.
 * `underpriced`: the fees must be higher. `refused`: for a reason that sending again does not fix.
 */
export type SendResponse =
  | { readonly outcome: 'sent' }
  | { readonly outcome: 'nonce-too-low' | 'underpriced' | 'refused'; readonly words: string }

export interface Watch {
  readonly head: Head
  /** Each sender's number of mined transactions, which is its lowest free nonce. */
  readonly transactionCounts: ReadonlyMap<Address, bigint>
  readonly receipts: readonly ShownReceipt[]
}

/** A receipt; undefined where nodes have none, and `unread` where no node delivers it, such as a very long one on a slow connection. */
export type ShownReceipt = Receipt | 'unread' | undefined

/** A receipt, and the head of the node that returned it or the one that a majority had, whichever is higher. */
export interface SeenReceipt {
  readonly receipt: Receipt
  readonly head: Head
}

export interface LookUp {
  readonly head: Head
  readonly receipts: readonly ShownReceipt[]
}

export type {
  ChainTransactionId,
  LaneCall,
  LaneHandler,
  Lanes,
  LaneTransaction,
  MinedTransaction,
  PlannedTransaction,
} from './lanes/port.ts'

/** `unchecked` while no node has answered. */
export type TokenDomainState = 'unchecked' | 'right' | 'wrong'

/** The number of a network's nodes, in total and by state. */
export interface ChainHealth {
  /** `unknown` until a node has answered or failed. */
  readonly status: 'unknown' | 'up' | 'down'
  readonly nodes: number
  readonly up: number
  /** The number of nodes that must agree before their response decides about money. */
  readonly needed: number
  /** `waits` while fewer nodes are up than are needed; `alone` when a single node decides about real money. */
  readonly money: 'moves' | 'waits' | 'alone'
  /** Nodes that answer but whose heads are behind the others'. */
  readonly behind: number
  readonly suspended: number
  /** Nodes that report a different chain ID than configured. */
  readonly refused: number
  /** Symbols of tokens whose contracts do not match the registry. */
  readonly wrongTokens: readonly string[]
}
