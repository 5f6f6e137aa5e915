import type { Address, Hex } from '@purser/protocol'
import type { TempoTransaction } from './tempo/port.ts'

/** An account whose key never leaves custody. */
export interface Signer extends FeeSponsor {
  signTransaction(fields: TransactionFields): Promise<SignedTransaction>
}

/** An account that pays the fees of other accounts' Tempo transactions. */
export interface FeeSponsor {
  readonly address: Address
  /**
   * Completes a sponsored transaction: sets the fee token and signs for the fee. Throws for a transaction of its own account and for one that does
   * not need a sponsor. The caller must bound the cost.
   */
  signTempoFeePayer(transaction: TempoTransaction, feeToken: Address): Promise<SignedTransaction>
}

/** An EIP-1559 transaction before it is signed; fees in wei per gas. A recipient of null creates a contract. */
export interface TransactionFields {
  readonly chainId: number
  readonly nonce: bigint
  readonly maxPriorityFeePerGas: bigint
  readonly maxFeePerGas: bigint
  readonly gasLimit: bigint
  readonly to: Address | null
  readonly value: bigint
  readonly data: Hex
}

export interface SignedTransaction {
  readonly raw: Hex
  readonly hash: Hex
}

/**
 * `used`: this transaction settled the permit. If `logIndexes` is set, it settled that many identical permits of the payer, and this may be one of them:
 * they are the indexes of the proxy's logs in its receipt. `elsewhere`: no settling transaction was found, so the nonce was invalidated or spent otherwise.
 * `open`: not deep enough yet; query again later and decide nothing.
 */
export type Permit2Use =
  | { readonly outcome: 'used'; readonly transactionHash: Hex; readonly logIndexes?: readonly number[] }
  | { readonly outcome: 'elsewhere' }
  | { readonly outcome: 'open' }

export interface Receipt {
  readonly transactionHash: Hex
  readonly status: 'success' | 'reverted'
  readonly blockNumber: bigint
  readonly blockHash: Hex
  readonly gasUsed: bigint
  readonly effectiveGasPrice: bigint
  /** Wei charged in addition to gas for the L1 data fee and the operator fee; 0 on networks without them. */
  readonly l1Fee: bigint
  /** Part of `gasUsed` that the bytes of the transaction took; only on Arbitrum (`gasUsedForL1`). */
  readonly dataGas?: bigint
  readonly logs: readonly Log[]
}

export interface Log {
  readonly address: Address
  readonly topics: readonly Hex[]
  readonly data: Hex
}

export interface Head {
  readonly number: bigint
  readonly timestampSeconds: bigint
  /** In wei; 0 where blocks have no base fee. */
  readonly baseFee: bigint
}
