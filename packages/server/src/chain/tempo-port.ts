import type { Address, Hex } from '@purser/protocol'

/** Reads Tempo's own transactions. */
export interface TempoTransactions {
  /** Never throws, whatever it is given: a fault is a sentence without any of the sender's text. */
  decode(raw: Hex): Promise<TempoDecoded>
}

export type TempoDecoded =
  | { readonly ok: true; readonly transaction: TempoTransaction }
  | { readonly ok: false; readonly fault: string }

/**
 * A transaction of Tempo's type 0x76 that an ordinary account (secp256k1) signed, without access lists, delegations and access
 * keys. The sender is recovered from the signature and from nothing else.
 */
export interface TempoTransaction {
  /** Written anew from the fields below: what they say is all that is in it. Final where the sender pays the fee. */
  readonly raw: Hex
  /** Of the final bytes; of a transaction that waits for a sponsor there is none yet. */
  readonly hash: Hex | undefined
  readonly sender: Address
  readonly chainId: number
  readonly calls: readonly TempoCall[]
  /** 2^256 - 1 is an expiring nonce (TIP-1009), 0 the account's ordinary one. */
  readonly nonceKey: bigint
  readonly nonce: bigint
  /** Unix seconds; a block of that time or later does not take it. */
  readonly validBefore: bigint | undefined
  /** Unix seconds; a block of that time or earlier does not take it. */
  readonly validAfter: bigint | undefined
  readonly gasLimit: bigint
  /** In attodollars (1e-18 USD) per gas. */
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
  readonly feeToken: Address | undefined
  readonly feePaidBy: 'sender' | 'sponsor'
}

/** A Tempo transaction before its account signs it. One that is `feePaidBy` a sponsor names no fee token: the sponsor does. */
export type TempoFields = Omit<TempoTransaction, 'raw' | 'hash' | 'sender'>

export interface TempoCall {
  readonly to: Address | undefined
  readonly value: bigint
  readonly data: Hex
}

/** Why the latest block would not take a transaction: the token said no, the sender holds too little, or the transaction cannot run. */
export type TempoRefusal =
  | 'insufficient-balance'
  | 'insufficient-fee'
  | 'out-of-gas'
  | 'expired'
  | 'nonce-too-high'
  | 'reverted'
export type TempoTrial = { readonly ok: true } | { readonly ok: false; readonly reason: TempoRefusal }

/**
 * `refused`: this node will not have it as things stand. It is no proof that it is in no block, since another node may have
 * taken it a moment before. `sent` also when nobody can tell what became of it.
 */
export type TempoSendAnswer =
  | { readonly outcome: 'sent' }
  | { readonly outcome: 'refused'; readonly reason: TempoRefusal | 'malformed' }
