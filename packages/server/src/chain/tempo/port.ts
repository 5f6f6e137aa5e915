import type { Address, Hex } from '@purser/protocol'

/** Decodes Tempo transactions. */
export interface TempoTransactions {
  /** Never throws. `fault` is a sentence that contains none of the input. */
  decode(raw: Hex): Promise<TempoDecoded>
}

export type TempoDecoded =
  | { readonly ok: true; readonly transaction: TempoTransaction }
  | { readonly ok: false; readonly fault: string }

/**
 * A Tempo transaction (type 0x76) signed by an ordinary account (secp256k1), without access lists, delegations or access keys. The sender is always
 * recovered from the signature.
 */
export interface TempoTransaction {
  /** Re-encoded from the fields below, so it contains nothing else. Final when the sender pays the fee. */
  readonly raw: Hex
  /** Hash of the final bytes; undefined while the transaction waits for a sponsor. */
  readonly hash: Hex | undefined
  readonly sender: Address
  readonly chainId: number
  readonly calls: readonly TempoCall[]
  /** 2^256 - 1 is an expiring nonce (TIP-1009), 0 the account's regular nonce. */
  readonly nonceKey: bigint
  readonly nonce: bigint
  /** Unix seconds; not valid in a block of that time or later. */
  readonly validBefore: bigint | undefined
  /** Unix seconds; not valid in a block of that time or earlier. */
  readonly validAfter: bigint | undefined
  readonly gasLimit: bigint
  /** In attodollars (1e-18 USD) per gas. */
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
  readonly feeToken: Address | undefined
  readonly feePaidBy: 'sender' | 'sponsor'
}

/** A Tempo transaction before its account signs it. With `feePaidBy: 'sponsor'` it has no fee token; the sponsor chooses it. */
export type TempoFields = Omit<TempoTransaction, 'raw' | 'hash' | 'sender'>

export interface TempoCall {
  readonly to: Address | undefined
  readonly value: bigint
  readonly data: Hex
}

/**
 * The reason why the latest block would not include a transaction: the token refused, the sender's balance is too low, or the transaction cannot run.
 */
export type TempoRefusal =
  | 'insufficient-balance'
  | 'insufficient-fee'
  | 'out-of-gas'
  | 'expired'
  | 'nonce-too-high'
  | 'nonce-too-low'
  | 'reverted'
export type TempoTrial = { readonly ok: true } | { readonly ok: false; readonly reason: TempoRefusal }

/**
 * `refused`: the nodes refuse it now. This does not prove that it is unmined, since another node may have accepted it before. `sent` is also
 * returned when the outcome is unknown.
 */
export type TempoSendResponse =
  | { readonly outcome: 'sent' }
  | { readonly outcome: 'refused'; readonly reason: TempoRefusal | 'malformed' }
