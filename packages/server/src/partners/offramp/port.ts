import type { Address, NetworkName } from '@purser/protocol'
import type { Environment } from '../../platform/ctx.ts'

/** Who turns tokens into money at a bank, and the states of it in the service's own words. */
export interface OffRamp {
  readonly name: string
  /** Whether accounts belong to a customer at the partner, of which each organisation has its own. */
  readonly hasCustomers: boolean
  /** Tells the partner of the account. Asked again with the same key within a day, it answers the same account. */
  createAccount(request: NewPayoutAccount): Promise<Agreed<PayoutAccount>>
  /** Makes the partner forget an account; one that it does not know is forgotten. Throws where the partner does not do it now. */
  deleteAccount(account: { readonly customerId: string; readonly accountId: string }): Promise<void>
  /**
   * Agrees on a payout and where its tokens go. Asked again with the same key within a day, it answers the same payout; no money moves
   * until the tokens are there.
   */
  createPayout(request: NewPayout): Promise<Agreed<Payout>>
  /** The payout as it stands. `undefined` when the partner knows none. */
  readPayout(payoutId: string): Promise<Payout | undefined>
}

/** The deployment's partners by environment; `undefined` where none is configured. */
export type OffRamps = Readonly<Record<Environment, OffRamp | undefined>>

declare module '../../platform/ctx.ts' {
  interface Ports {
    readonly offRamps: OffRamps
  }
}

/** What a partner refused for good, in its own code and words; they hold nothing of the account. */
export interface Refusal {
  readonly code: string
  readonly message: string
}

export type Agreed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal }

export type PayoutDestination =
  | { readonly currency: 'GBP'; readonly sortCode: string; readonly accountNumber: string }
  | { readonly currency: 'USD'; readonly routingNumber: string; readonly accountNumber: string }
  | { readonly currency: 'EUR'; readonly iban: string; readonly swiftBic: string }

export interface PostalAddress {
  readonly street: string
  readonly city: string
  readonly state?: string
  readonly postalCode: string
  /** ISO 3166-1 alpha-3. */
  readonly country: string
}

export type AccountOwner =
  | { readonly kind: 'business'; readonly name: string }
  | { readonly kind: 'individual'; readonly firstName: string; readonly lastName: string }

export interface NewPayoutAccount {
  /** Names the request at the partner; the bank account's own id. */
  readonly key: string
  /** The organisation's own customer at the partner; empty where the partner has none. */
  readonly customerId: string
  readonly owner: AccountOwner
  readonly accountName: string
  readonly destination: PayoutDestination
  /** A partner that pays dollars wants it. */
  readonly address?: PostalAddress
}

export interface PayoutAccount {
  readonly accountId: string
  readonly isActive: boolean
}

export interface NewPayout {
  /** Names the request at the partner; the withdrawal's own id. */
  readonly key: string
  /** Of the account; empty where the partner has none. */
  readonly customerId: string
  /** When the withdrawal was stored. With the key it makes a repeat the same request. */
  readonly requestedAt: Date
  readonly accountId: string
  readonly currency: PayoutDestination['currency']
  readonly network: NetworkName
  readonly token: { readonly symbol: string; readonly address: Address; readonly decimals: number }
  readonly rawAmount: bigint
  readonly fromAddress: Address
  /** What the receiver reads on the statement. */
  readonly reference?: string
}

/** The document's states of a withdrawal. */
export type PayoutState = 'pending_conversion' | 'conversion_complete' | 'completed' | 'failed'

export interface Payout {
  readonly payoutId: string
  readonly state: PayoutState
  /** The partner's own word, for support. */
  readonly partnerState: string
  /** Whether the tokens are still to be sent. */
  readonly awaitsDeposit: boolean
  /** Where, and exactly how much; absent where the partner shows it no more. */
  readonly deposit?: { readonly address: Address; readonly rawAmount: bigint }
  /** What reaches the bank and what the partner keeps, in the payout's currency and token, as the partner writes them. */
  readonly receipt?: PayoutReceipt
  /** Of a failed one: why, and whether the tokens come back. */
  readonly failure?: PayoutFailure
}

export interface PayoutReceipt {
  readonly initialAmount: string
  readonly feeAmount: string
  readonly finalAmount?: string
  readonly exchangeRate?: string
}

/** `done`: the partner has sent the tokens back. `expected`: it will. `held`: it will not by itself; the operator must act. `none`: nothing was taken. */
export interface PayoutFailure {
  readonly reason: string
  readonly refund: 'none' | 'expected' | 'done' | 'held'
}
