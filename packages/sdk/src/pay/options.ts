import type { NetworkName, TokenInfo } from '@purser/protocol'
import type { Ledger } from './ledger.ts'
import type { PaymentRecord, ProposedPayment, Protocol } from './payment.ts'
import type { Signer } from './signer.ts'

/** What may be spent. All amounts are decimal dollars. Without `perCall` nothing is paid at all. */
export interface PayLimits {
  /** The most that one call may cost. `"0"` lets through only what is free (zero-amount proofs). */
  readonly perCall?: string | undefined
  /** The most that one host may be paid in a UTC day; ports of one host count together. */
  readonly perHostPerDay?: string | undefined
  /** The most that all hosts together may be paid in a UTC day. */
  readonly perDay?: string | undefined
  /** Above this, `confirm` is asked first. The two come together. */
  readonly confirmAbove?: string | undefined
  /** Whether to pay; the money is reserved while it is awaited. */
  readonly confirm?: ((payment: ProposedPayment) => boolean | Promise<boolean>) | undefined
  /** The only hosts that may be paid (`api.example.com`, or with a port); all when left out. */
  readonly hosts?: readonly string[] | undefined
  /** The only networks to pay on; all that the protocol package knows when left out. */
  readonly networks?: readonly NetworkName[] | undefined
}

/** A dollar stablecoin beside those of the protocol package. Whoever adds one says that a unit of it is a dollar. */
export interface AddedToken extends TokenInfo {
  readonly network: NetworkName
}

/** A protocol, a network, or both; of two offers, the one that fits the earlier preference is taken. */
export type Preference = Protocol | NetworkName | `${Protocol}/${NetworkName}`

export interface PayingFetchOptions {
  readonly signer: Signer
  readonly limits: PayLimits
  /** The order of choice; then the cheapest, then x402 before MPP, then the seller's order. */
  readonly prefer?: readonly Preference[] | undefined
  /** Where spending is counted: `memoryLedger()` of its own when left out. Share one among fetches that share a budget. */
  readonly ledger?: Ledger | undefined
  readonly tokens?: readonly AddedToken[] | undefined
  /** Every payment whose credential was sent, also rejected and unknown ones. A throw goes to `onFault`. */
  readonly onPayment?: ((payment: PaymentRecord) => void) | undefined
  /** What went wrong after a payment without hurting it: `onPayment` threw, or the ledger did not take a `commit` or `release`. */
  readonly onFault?: ((error: unknown) => void) | undefined
  /**
   * Whether a session that a payment bought is shown in the next calls to the same origin, so that they are not paid again; it is when left
   * out. Sessions are kept in memory, and go only to the origin that gave them.
   */
  readonly sessions?: boolean | undefined
  /** Pays over plain HTTP to hosts other than this machine. A credential sent so can be read and used by others. */
  readonly allowInsecure?: boolean | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Milliseconds since 1970. */
  readonly now?: (() => number) | undefined
  /** So many unpredictable bytes. */
  readonly random?: ((bytes: number) => Uint8Array) | undefined
}
