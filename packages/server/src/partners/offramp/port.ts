import type { Address, NetworkName } from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import type { Environment } from '../../platform/ctx.ts'
import type { Log } from '../../platform/log.ts'
import type { Outbound } from '../../platform/outbound.ts'
import type { SettingsReader } from '../settings.ts'

/** Dependencies of all off-ramps; each takes those that it needs. */
export interface OffRampAdapterDeps {
  readonly outbound: Outbound
  readonly log: Log
  readonly clock: Clock
  /** An account's token balance on a network. */
  balanceOf(network: string, token: Address, account: Address): Promise<bigint>
}

/** All that the deployment knows of an off-ramp before it is opened. `Account`: one optional member with the partner's name. */
export interface OffRampAdapter<Account extends object> {
  /** Stored with withdrawals and bank accounts, and a part of the path of its messages; never changed. */
  readonly name: string
  readonly environment: Environment
  readonly hasCustomers: boolean
  /** Reads the account from the environment and adds its faults. */
  readAccount(reader: SettingsReader): Account
  /** Undefined without an account. */
  open(deps: OffRampAdapterDeps, account: Account): OffRamp | undefined
}

/** A partner that pays out tokens to a bank account. States are mapped to the service's own. */
export interface OffRamp {
  readonly name: string
  /** Whether accounts belong to a customer at the partner, one per organisation. */
  readonly hasCustomers: boolean
  /** Undefined if the partner sends no messages, or the deployment has no key that verifies them. */
  readonly messages?: PartnerMessages | undefined
  /** Returns why the partner never takes this token from this network; undefined if it does. */
  whyNotTaken(sent: Pick<NewPayout, 'network' | 'token'>): NotTaken | undefined
  /** The rule that a reference breaks for a bank payment in the currency; undefined if it fits. */
  whyNotReference(currency: NewPayout['currency'], reference: string): string | undefined
  /** Registers the account at the partner. A repeat with the same key within a day returns the same account. */
  createAccount(request: NewPayoutAccount): Promise<Agreed<PayoutAccount>>
  /** Deletes an account at the partner; an unknown account counts as deleted. Throws when the partner does not delete it now. */
  deleteAccount(account: { readonly customerId: string; readonly accountId: string }): Promise<void>
  /**
   * Creates a payout and returns where its tokens must be sent. A repeat with the same key within a day returns the same payout. No money moves
   * until the tokens arrive.
   */
  createPayout(request: NewPayout): Promise<Agreed<Payout>>
  /**
   * The payout's current state; `undefined` when the partner does not have it. Throws when the partner shows a payout to somebody else than was
   * requested.
   */
  readPayout(payoutId: string, requested: RequestedPayout): Promise<Payout | undefined>
}

/** The messages that a partner posts to the deployment. */
export interface PartnerMessages {
  /** Verifies a message and returns the payout that it is about; no payout if it is about something else. Header names are in lower case. */
  read(message: PartnerMessage, now: Date): PartnerMessageRead
}

interface PartnerMessage {
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The raw body. */
  readonly body: Uint8Array
}

export type PartnerMessageRead =
  | { readonly ok: true; readonly payoutId: string | undefined }
  | { readonly ok: false; readonly fault: 'malformed' | 'too-old' | 'wrong-signature' }

/** The member of a withdrawal that names what the partner never takes, and the rule that it breaks. */
export interface NotTaken {
  readonly member: 'chain' | 'token'
  readonly message: string
}

/** The deployment's partners by environment; `undefined` when none is configured. */
type OffRamps = Readonly<Record<Environment, OffRamp | undefined>>

/** The off-ramp partners, as a dependency. */
export interface OffRampsPort {
  readonly offRamps: OffRamps
}

/** A permanent refusal, with the partner's code and a message without account data. */
export interface PayoutRefusal {
  readonly code: string
  readonly message: string
}

export type Agreed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: PayoutRefusal }

type PayoutDestination =
  | { readonly currency: 'GBP'; readonly sortCode: string; readonly accountNumber: string }
  | { readonly currency: 'USD'; readonly routingNumber: string; readonly accountNumber: string }
  | { readonly currency: 'EUR'; readonly iban: string; readonly swiftBic: string }

interface PostalAddress {
  readonly street: string
  readonly city: string
  readonly state?: string
  readonly postalCode: string
  /** ISO 3166-1 alpha-3. */
  readonly country: string
}

type AccountOwner =
  | { readonly kind: 'business'; readonly name: string }
  | { readonly kind: 'individual'; readonly firstName: string; readonly lastName: string }

export interface NewPayoutAccount {
  /** Idempotency key at the partner: the bank account's id. */
  readonly key: string
  /** The organisation's customer at the partner; empty when the partner has no customers. */
  readonly customerId: string
  readonly owner: AccountOwner
  readonly accountName: string
  readonly destination: PayoutDestination
  /** Required for payouts in dollars. */
  readonly address?: PostalAddress
}

export interface PayoutAccount {
  readonly accountId: string
  readonly isActive: boolean
}

export interface NewPayout {
  /** Idempotency key at the partner: the withdrawal's id. */
  readonly key: string
  /** The account's customer; empty when the partner has no customers. */
  readonly customerId: string
  /** The time at which the withdrawal was stored. Together with the key it makes a repeat identical. */
  readonly requestedAt: Date
  readonly accountId: string
  readonly currency: PayoutDestination['currency']
  readonly network: NetworkName
  readonly token: { readonly symbol: string; readonly address: Address; readonly decimals: number }
  readonly rawAmount: bigint
  readonly fromAddress: Address
  /** Shown on the recipient's bank statement. */
  readonly reference?: string
}

/** The fields that identify a requested payout. `customerId` is undefined when the account's record is gone. */
export type RequestedPayout = Omit<NewPayout, 'customerId' | 'requestedAt' | 'reference'> & {
  readonly customerId: string | undefined
}

/** The public states of a withdrawal. */
export type PayoutState = 'pending_conversion' | 'conversion_complete' | 'completed' | 'failed'

export interface Payout {
  readonly payoutId: string
  readonly state: PayoutState
  /** The partner's own state, for support. */
  readonly partnerState: string
  /** Whether the tokens still have to be sent. */
  readonly awaitsDeposit: boolean
  /** Deposit address and exact amount; absent when the partner no longer returns it, or requests another amount, token or chain than agreed. */
  readonly deposit?: { readonly address: Address; readonly rawAmount: bigint }
  /** Amounts paid out and fees, in the payout's currency and token, as the partner returns them. */
  readonly receipt?: PayoutReceipt
  /** Only for a failed payout: the reason, and whether the tokens are refunded. */
  readonly failure?: PayoutFailure
}

export interface PayoutReceipt {
  readonly initialAmount: string
  readonly feeAmount?: string
  readonly finalAmount?: string
  readonly exchangeRate?: string
}

/**
 * `done`: the partner has refunded the tokens. `expected`: it will refund them. `held`: it keeps them until the operator acts. `none`: it took
 * nothing.
 */
export interface PayoutFailure {
  readonly reason: string
  readonly refund: 'none' | 'expected' | 'done' | 'held'
}
