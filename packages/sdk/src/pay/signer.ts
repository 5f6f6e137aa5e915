import type { Address, Hex } from '@purser/protocol'

/** What is signed by EIP-712, in the shape that viem's `signTypedData` takes. Integers are bigints. */
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

/** One call of a transaction on Tempo; it moves no coin, since Tempo has none. */
export interface TempoCall {
  readonly to: Address
  readonly data: Hex
}

/** What a signer is asked for a payment by pull: a signed transaction of type 0x76 that the seller will broadcast. */
export interface TempoTransactionRequest {
  readonly chainId: number
  readonly calls: readonly TempoCall[]
  /** The seller pays the fee: sign with the fee payer's placeholder and without a fee token. */
  readonly feePayer: boolean
  /** Seconds since 1970; at most 25 ahead. The nonce must be an expiring one (TIP-1009). */
  readonly validBeforeSeconds: number
}

/**
 * The key that pays, kept by the caller: it is asked for signatures and never shown to this library. A viem `LocalAccount` is one
 * as it is. The last two are for Tempo; without them, only zero-amount proofs are paid there.
 */
export interface Signer {
  readonly address: Address
  signTypedData(typedData: TypedData): Promise<Hex>
  /** Sends one call to the chain and answers the transaction's hash (MPP `push`). Money moves here, before the seller is asked again. */
  sendTransaction?(request: { readonly chainId: number; readonly to: Address; readonly data: Hex }): Promise<Hex>
  /** Signs and does not send (MPP `pull`). Preferred over `sendTransaction` where a seller takes both. */
  signTempoTransaction?(request: TempoTransactionRequest): Promise<Hex>
}
