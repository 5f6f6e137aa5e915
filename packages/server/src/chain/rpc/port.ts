import type { Address, Hex, Permit2Transfer } from '@purser/protocol'
import type { Log, Permit2Use, Receipt } from '../facts.ts'
import type { SentCall } from '../lanes/port.ts'

/**
 * The response of a strict majority of a network's configured nodes. `undecided` means that too few nodes answered, that they contradict each other,
 * or that they are behind: query again later. Time alone never turns it into an outcome.
 */
export type NodeVerdict = 'yes' | 'no' | 'undecided'

/** The required depth of a block: a number of blocks including its own, or at or below the block with this tag. */
export type Finality = { readonly depth: number } | { readonly tag: 'safe' | 'finalized' }

/** An EIP-3009 authorization; `validBefore` in seconds since 1970. */
export interface AuthorizationId {
  readonly token: Address
  readonly authorizer: Address
  readonly nonce: Hex
  readonly validBefore: bigint
}

/** A Permit2 signature with an unordered nonce; `deadline` in seconds since 1970. */
export interface PermitId {
  readonly owner: Address
  readonly nonce: bigint
  readonly deadline: bigint
}

/**
 * `used`: the nonce is spent or invalidated at depth. `expired`: a block at depth is past the expiry and the nonce is unused there, so it can never
 * be used. `open`: unused at depth and not expired.
 */
export type NonceState = 'open' | 'used' | 'expired' | 'undecided'

/** `used` and `canceled` name the receipt that the quorum confirmed at depth. `open`: unused at depth. */
export type AuthorizationUse =
  | { readonly outcome: 'used'; readonly receipt: Receipt }
  | { readonly outcome: 'canceled'; readonly receipt: Receipt }
  | { readonly outcome: 'open' }
  | { readonly outcome: 'undecided' }

/**
 * A value to read of an account: a token balance in its smallest unit, the native coin in wei, its transaction count, or whether one of its EIP-3009
 * nonces is used or canceled (1) or not (0). Or the number that a contract
 * returns.
 */
export type StateQuestion =
  | { readonly account: Address; readonly asset: Address | 'coin' }
  | { readonly account: Address; readonly count: 'transactions' }
  | { readonly account: Address; readonly token: Address; readonly authorization: Hex }
  | { readonly account: Address; readonly call: Hex }

/** The calls of an account's transaction, in order, and its expected nonce. */
export interface SentCallId {
  readonly sender: Address
  readonly nonce: bigint
  readonly calls: readonly SentCall[]
}

/** An amount of native coin, in wei, that an account should have received in a transaction's block. */
export interface CoinArrival {
  readonly account: Address
  readonly rawLeast: bigint
  /** The amount of the coin that arrived in the block and is already counted for others. */
  readonly rawOthers: bigint
  readonly hash: Hex
  readonly block: bigint
}

type CoinVerdict = 'transaction' | 'block' | Exclude<NodeVerdict, 'yes'>

/** The block that the quorum answered for. */
export interface DecisionBlock {
  readonly number: bigint
  readonly hash: Hex
  readonly timestampSeconds: bigint
}

interface StateAt {
  readonly block: DecisionBlock
  /** The height at which the quorum would have answered without `atMost`. */
  readonly newest: bigint
  /** In the order of the questions; undefined where the contract gives no usable result or the quorum is undecided. */
  readonly values: readonly (bigint | undefined)[]
}

/** The blocks in which the use of a nonce is searched for, newest first. */
export interface UseSearch {
  /** The nonce was unused before. */
  readonly since: Date
  /** Most requests for logs to one node, after which it has no response. Default: as many as the search needs. */
  readonly requestsMax?: number | undefined
}

/** A Tempo transaction that was sent; `validBefore` in seconds since 1970. */
export interface TempoTransactionId {
  readonly hash: Hex
  readonly validBefore: bigint
}

/** The transfers of a token with a memo to a recipient that a transaction made, of one payer or of any. */
export interface MemoTransfers {
  readonly hash: Hex
  readonly token: Address
  readonly payer: Address | undefined
  readonly recipient: Address
}

/**
 * An account's transaction count including pending transactions: a majority reports at least `least` and a majority reports at most `most`. They
 * differ where half of the nodes contradict the other half.
 */
export interface PendingNonce {
  readonly least: bigint
  readonly most: bigint
}

/** A nonce of an account, with the hashes of the transactions that were signed with it. */
export interface SentNonce {
  readonly sender: Address
  readonly nonce: bigint
  readonly hashes: readonly Hex[]
}

/**
 * The reads on which money depends, confirmed by a quorum when several nodes are configured. Answers are in the order of the questions. The default
 * finality is the network's confirmation depth.
 */
export interface QuorumReads {
  /**
   * Whether each receipt is correct: with this content, in the canonical block of that height, at the required depth. `no`: the chain has no such
   * receipt now; read it again. A block that is not deep enough is `undecided`.
   */
  confirmReceipts(receipts: readonly Receipt[], finality?: Finality): Promise<readonly NodeVerdict[]>
  /**
   * The evidence that an account received at least `rawLeast` of the coin, at confirmation depth. `transaction`: the transaction itself sent it. `block`: the account's
   * balance rose in its block by that much and by `rawOthers`, where neither what the account's own transactions took counts nor what other transactions
   * themselves sent it. Such a rise is of the block, and several deliveries share it. `undecided` also when nodes no longer have the state of that block.
   */
  confirmCoinArrival(arrival: CoinArrival): Promise<CoinVerdict>
  /** Whether each transaction is in a block, which may still be reorganized away. */
  areInBlocks(hashes: readonly Hex[]): Promise<readonly NodeVerdict[]>
  /** Whether none of these transactions is mined. Nodes that are behind may report this too early. */
  isInNoBlock(hashes: readonly Hex[]): Promise<NodeVerdict>
  /**
   * Whether the nonce of each sender was used at depth by a transaction with none of its hashes. Nodes that index late may report this too early. All
   * questions take two requests to each node.
   */
  areNoncesLost(questions: readonly SentNonce[]): Promise<readonly NodeVerdict[]>
  /**
   * The hash of a transaction of the account with exactly these calls, at this nonce or another, confirmed by a majority. Hashes that `isOurs`
   * returns are skipped. The transaction was not made before `since`. Undefined when none is found, which proves nothing: nodes without historical
   * state do not find transfers of native coin. `onRemaining` is called when a majority has found nothing and other nodes still search: they have ten minutes
   * more. Throws `chain-unavailable` when no node could search, when a majority does not end its search within an hour, or once `stopped` is aborted.
   */
  findSameCall(
    call: SentCallId,
    options: {
      readonly since: Date
      readonly isOurs: (hashes: readonly Hex[]) => Promise<ReadonlySet<string>>
      readonly stopped?: AbortSignal
      readonly onRemaining?: () => void
    },
  ): Promise<Hex | undefined>
  /**
   * Up to 500 authorizations, in one call to each node, at the payment depth if no finality is given. By EIP-3009 an authorization is void at
   * `validBefore`.
   */
  authorizationStates(ids: readonly AuthorizationId[], finality?: Finality): Promise<readonly NonceState[]>
  /** Up to 500 permits, as `authorizationStates`. In Permit2 a permit is still valid at its deadline. */
  permitStates(ids: readonly PermitId[], finality?: Finality): Promise<readonly NonceState[]>
  /** The transaction that used or canceled an authorization. Throws `chain-unavailable` as `findSameCall` does. */
  findAuthorizationUse(id: Omit<AuthorizationId, 'validBefore'>, search: UseSearch): Promise<AuthorizationUse>
  /** The use of a permit's nonce at depth. */
  findPermit2Use(
    transfer: Permit2Transfer,
    options: UseSearch & { readonly amount: bigint; readonly carrier?: Hex | undefined },
  ): Promise<Permit2Use>
  /** All values as of one block, not above `atMost`. Throws `chain-unavailable` when no quorum agrees on such a block. */
  stateAt(
    questions: readonly StateQuestion[],
    options?: { readonly finality?: Finality; readonly atMost?: bigint },
  ): Promise<StateAt>
  /** The accounts' transaction counts at one block, at the payment depth if no finality is given. Throws `chain-unavailable` while the quorum is undecided. */
  noncesAt(accounts: readonly Address[], finality?: Finality): Promise<readonly bigint[]>
  /**
   * The first nonce of a lane: the quorum's transaction count at depth, provided that a quorum sees no later transaction. Throws
   * `chain-unavailable` until then, since a lane that begins above the chain's count could never send.
   */
  firstNonce(account: Address): Promise<bigint>
  /**
   * The numbers of transactions that accounts have, including pending ones, as far as a majority of the nodes agrees. Throws `chain-unavailable`
   * while the quorum is undecided or too few of its nodes answer.
   */
  pendingNonces(accounts: readonly Address[]): Promise<readonly PendingNonce[]>
  /**
   * Tempo: the logs of a transaction's transfers of a token with a memo to a recipient, at confirmation depth and in their order, however many other logs the
   * transaction has.
   */
  memoTransfers(transfers: MemoTransfers): Promise<readonly Log[] | 'undecided'>
  /** Tempo: whether each transaction can never be mined: a final block is past its expiry, and no block contains it. */
  tempoTransactionsLost(ids: readonly TempoTransactionId[]): Promise<readonly NodeVerdict[]>
}
