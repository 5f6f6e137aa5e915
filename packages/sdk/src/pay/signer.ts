import type { Address, Hex } from '@purser/protocol'

/** EIP-712 data, in the form of viem's `signTypedData`. Integers are bigints. */
export interface TypedData {
  readonly domain: {
    readonly name?: string | undefined
    readonly version?: string | undefined
    readonly chainId?: number | undefined
    readonly verifyingContract?: Address | undefined
  }
  readonly types: { readonly [name: string]: readonly { readonly name: string; readonly type: string }[] }
  readonly primaryType: string
  readonly message: { readonly [field: string]: unknown }
}

/** One call of a Tempo transaction. It has no value, because Tempo has no native coin. */
export interface TempoCall {
  readonly to: Address
  readonly data: Hex
}

/** The transaction to sign for a pull payment: type 0x76, broadcast by the seller. */
export interface TempoTransactionRequest {
  readonly chainId: number
  readonly calls: readonly TempoCall[]
  /** Whether the seller pays the fee. If so, sign with the fee payer placeholder and without a fee token. */
  readonly feePayer: boolean
  /** Seconds since 1970; at most 25 ahead. The nonce must be an expiring one (TIP-1009). */
  readonly validBeforeSeconds: number
}

/**
 * The payer's signer. The key stays with the caller. A viem `LocalAccount` is a signer. The last two members are for
 * Tempo; without them, only zero-amount proofs are possible there.
 */
export interface Signer {
  readonly address: Address
  signTypedData(typedData: TypedData): Promise<Hex>
  /**
   * Sends one call to the chain and returns the transaction hash (MPP `push`). The money moves before the second
   * request to the seller.
   */
  sendTransaction?(request: { readonly chainId: number; readonly to: Address; readonly data: Hex }): Promise<Hex>
  /** Signs without sending (MPP `pull`). Preferred over `sendTransaction` if the seller accepts both. */
  signTempoTransaction?(request: TempoTransactionRequest): Promise<Hex>
}
