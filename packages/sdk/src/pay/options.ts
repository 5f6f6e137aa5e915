import type { NetworkName, TokenInfo } from '@purser/protocol'
import type { Ledger } from './ledger.ts'
import type { PaymentRecord, ProposedPayment, Protocol } from './payment.ts'
import type { Signer } from './signer.ts'

/** Spending limits in decimal dollars. */
export interface PayLimits {
  /** The maximum per call. `"0"` allows only free offers (zero-amount proofs). */
  readonly perCall: string
  /** The maximum per host and UTC day. All ports of a host count together. */
  readonly perHostPerDay?: string | undefined
  /** The maximum for all hosts per UTC day. */
  readonly perDay?: string | undefined
  /** Above this amount, `confirm` is called first. Requires `confirm`, and vice versa. */
  readonly confirmAbove?: string | undefined
  /** Returns whether to pay. The amount is reserved in the meantime. */
  readonly confirm?: ((payment: ProposedPayment) => boolean | Promise<boolean>) | undefined
  /** The hosts that may be paid (`api.example.com`, or with a port). Default: all. */
  readonly hosts?: readonly string[] | undefined
  /** The networks that may be paid on. Default: all networks of the protocol package. */
  readonly networks?: readonly NetworkName[] | undefined
}

/** A dollar stablecoin in addition to those of the protocol package. One token counts as one dollar. */
export interface AddedToken extends TokenInfo {
  readonly network: NetworkName
}

/** A protocol, a network, or both. Offers that match an earlier preference come first. */
export type Preference = Protocol | NetworkName | `${Protocol}/${NetworkName}`

export interface PayingFetchOptions {
  readonly signer: Signer
  readonly limits: PayLimits
  /** The order of preference; then the cheapest, then x402 before MPP, then the seller's order. */
  readonly prefer?: readonly Preference[] | undefined
  /**
   * Counts spending. Default: a `memoryLedger()` per fetch. Share one among fetches that share a budget. Those of
   * `@purser/sdk/ledgers` outlive the process and are shared by several.
   */
  readonly ledger?: Ledger | undefined
  readonly tokens?: readonly AddedToken[] | undefined
  /**
   * Called for every payment whose credential was sent, including rejected and unknown ones. A throw goes to
   * `onFault`.
   */
  readonly onPayment?: ((payment: PaymentRecord) => void) | undefined
  /**
   * Called for faults that do not affect a payment: `onPayment` threw, or `spent` or `release` of the ledger failed.
   */
  readonly onFault?: ((error: unknown) => void) | undefined
  /**
   * Whether a session from a payment is sent with later calls to the same origin, so that they are not paid again.
   * Default: true. Sessions are kept in memory and sent only to the origin that issued them.
   */
  readonly sessions?: boolean | undefined
  /**
   * Allows payments over plain HTTP to hosts other than this machine. Others on the network can read and use the
   * credential. The option of the same name of `createPurser` is about the service's own address.
   */
  readonly allowInsecure?: boolean | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Milliseconds since 1970. */
  readonly now?: (() => number) | undefined
  /** Returns this many cryptographically random bytes. */
  readonly random?: ((bytes: number) => Uint8Array) | undefined
}

/** The second argument of a paying fetch. */
export interface PayingRequestInit extends RequestInit {
  /**
   * A name of your own for what this call buys, such as `forecast-paris-2026-11-26`. A repeat with this name, also by
   * another process with the same ledger, sends the credential that was signed for it and signs nothing. With a managed
   * wallet there is no ledger: the name is the `Idempotency-Key` of the payment for a day. A repeat in that day whose 402
   * differs, as each 402 of a Purser seller does, throws `idempotency-key-reused` and pays nothing; a later repeat pays again.
   */
  readonly purchase?: string | undefined
}

/** A `fetch` that pays. It can be used wherever a `fetch` is. */
export type PayingFetch = (input: Parameters<typeof globalThis.fetch>[0], init?: PayingRequestInit) => Promise<Response>
