import type { Address, Hex, Permit2Transfer } from '@purser/protocol'
import type { LaneCall } from './lanes/port.ts'
import type { Permit2Use, Receipt } from './port.ts'

/**
 * What a strict majority of a network's configured nodes says. `undecided` means that too few nodes answered, that they contradict each
 * other, or that they are behind: ask again later. Time alone never turns it into an outcome.
 */
export type Verdict = 'yes' | 'no' | 'undecided'

/** How deep a block must be: this many blocks, its own included, or at or below the block that the nodes call by this tag. */
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
 * `used`: the nonce is spent or given up at depth. `expired`: a block at depth is past the end and the nonce is unused there, so that no
 * block can take it any more. `open`: unused at depth and not past its end.
 */
export type NonceState = 'open' | 'used' | 'expired' | 'undecided'

/** `used` and `canceled` name the receipt that the quorum confirmed at depth. `open`: unused at depth. */
export type AuthorizationUse =
  | { readonly outcome: 'used'; readonly receipt: Receipt }
  | { readonly outcome: 'canceled'; readonly receipt: Receipt }
  | { readonly outcome: 'open' }
  | { readonly outcome: 'undecided' }

/**
 * What to read of an account: a token's balance in its smallest unit or the native coin in wei, its transaction count, or whether an EIP-3009 nonce
 * of it is used or canceled (1) or not (0).
 */
export type StateQuestion =
  | { readonly account: Address; readonly asset: Address | 'coin' }
  | { readonly account: Address; readonly count: 'transactions' }
  | { readonly account: Address; readonly token: Address; readonly authorization: Hex }

/** What a transaction of an account calls, in this order, and the nonce at which it should be. */
export interface SentCallId {
  readonly sender: Address
  readonly nonce: bigint
  readonly calls: readonly LaneCall[]
}

/** An amount of the coin, in wei, that an account is to have received in a transaction's block. */
export interface CoinArrival {
  readonly account: Address
  readonly rawLeast: bigint
  readonly hash: Hex
  readonly block: bigint
}

/** The block that the quorum answered for. */
export interface DecisionBlock {
  readonly number: bigint
  readonly hash: Hex
  readonly timestampSeconds: bigint
}

export interface StateAt {
  readonly block: DecisionBlock
  /** The height at which the quorum would have answered without `atMost`. */
  readonly newest: bigint
  /** In the order of the questions; undefined where the contract gives no usable answer or the quorum is undecided. */
  readonly values: readonly (bigint | undefined)[]
}

/** A transaction of Tempo that was handed to the chain; `validBefore` in seconds since 1970. */
export interface TempoTransactionId {
  readonly hash: Hex
  readonly validBefore: bigint
}

/**
 * The questions on which money depends. No node answers them alone where several are configured. Answers are in the order of the questions.
 * Where no finality is given, the network's confirmation depth counts.
 */
export interface QuorumReads {
  /**
   * Whether each receipt is so: these words, in the canonical block of that height, deep enough. `no`: the chain carries no such receipt
   * now; read it again. A block that is not deep enough is `undecided`.
   */
  confirmReceipts(receipts: readonly Receipt[], finality?: Finality): Promise<readonly Verdict[]>
  /**
   * Whether a transaction brought an account so much of the coin, by the payment depth: it sent the coin there itself, or the account has so much
   * more after its block than before it. `undecided` also while nodes no longer have the state of that block.
   */
  confirmCoinArrival(arrival: CoinArrival): Promise<Verdict>
  /** Whether none of these transactions is in a block now. Nodes that are behind may say so too early. */
  isInNoBlock(hashes: readonly Hex[]): Promise<Verdict>
  /** Whether a transaction with none of these hashes used the sender's nonce at depth. Nodes that index late may say so too early. */
  isNonceLost(sender: Address, nonce: bigint, hashes: readonly Hex[]): Promise<Verdict>
  /**
   * The hash of a transaction of the account that makes exactly these calls, at this nonce or another, as a majority says. Those that `isOurs`
   * returns are passed over. `since` is an instant before which it was not made. Undefined where none is found, which proves nothing: nodes
   * without old state do not find what moved nothing but coin. Throws `chain-unavailable` where no node could search.
   */
  findSameCall(
    call: SentCallId,
    options: { readonly since: Date; readonly isOurs: (hashes: readonly Hex[]) => Promise<ReadonlySet<string>> },
  ): Promise<Hex | undefined>
  /** Up to 500 at once, in one call to each node. EIP-3009: void at `validBefore`. */
  authorizationStates(ids: readonly AuthorizationId[]): Promise<readonly NonceState[]>
  /** Up to 500 at once, in one call to each node. Permit2: still good at its deadline. */
  permitStates(ids: readonly PermitId[]): Promise<readonly NonceState[]>
  /**
   * The transaction that used or canceled an authorization. `since` is an instant before which it was unused; it bounds the search and
   * decides nothing.
   */
  findAuthorizationUse(
    id: Omit<AuthorizationId, 'validBefore'>,
    options: { readonly since: Date },
  ): Promise<AuthorizationUse>
  /** What became of a permit's nonce at depth. `since` is an instant before which it was unused. */
  findPermit2Use(
    transfer: Permit2Transfer,
    options: { readonly amount: bigint; readonly since: Date },
  ): Promise<Permit2Use>
  /** All of one block, at most at the height `atMost`. Throws `chain-unavailable` where no quorum knows such a block. */
  stateAt(
    questions: readonly StateQuestion[],
    options?: { readonly finality?: Finality; readonly atMost?: bigint },
  ): Promise<StateAt>
  /** The accounts' transaction counts at one block. Throws `chain-unavailable` while the quorum is undecided. */
  noncesAt(accounts: readonly Address[]): Promise<readonly bigint[]>
  /**
   * The nonce that a lane begins with: what the quorum counts at depth, if as many nodes know of no later transaction. Throws
   * `chain-unavailable` until then, since a lane that begins above the chain's count sends nothing for ever.
   */
  firstNonce(account: Address): Promise<bigint>
  /**
   * The highest transaction counts that any deciding node reports, with what waits there for a block. Throws `chain-unavailable` while the
   * quorum is undecided or one of those nodes does not answer.
   */
  highestNonces(accounts: readonly Address[]): Promise<readonly bigint[]>
  /** Tempo: whether each transaction can never come any more: a final block is past its end, and no block has it. */
  tempoTransactionsLost(ids: readonly TempoTransactionId[]): Promise<readonly Verdict[]>
}
