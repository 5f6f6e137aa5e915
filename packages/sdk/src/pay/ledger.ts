import type { ProposedPayment } from './payment.ts'

/** The limits that accumulate over time. */
export type CountedLimit = 'perHostPerDay' | 'perDay'

/** A payment whose amount is to be reserved before it is signed. */
export interface ReservationRequest {
  /** Unique id of the reservation, for the later steps. */
  readonly id: string
  /** The purchase by the name that the caller gave it, or the id. A budget has one payment for each purchase. */
  readonly purchase: string
  /** The UTC day of the payment, such as `2026-11-21`. */
  readonly day: string
  readonly payment: ProposedPayment
  /** Decimal dollars. */
  readonly limits: { readonly [limit in CountedLimit]?: string | undefined }
}

/** The header that pays. Its bearer can spend it until `validBeforeSeconds`. */
export interface SignedCredential {
  readonly header: string
  readonly value: string
  /** Seconds since 1970. `undefined` if the money moved when it was signed. */
  readonly validBeforeSeconds?: number | undefined
}

/** A payment of a budget. */
export interface LedgerEntry {
  readonly id: string
  readonly purchase: string
  readonly day: string
  readonly payment: ProposedPayment
  /**
   * `reserved`: a signature may have been made, and was not sent. `signed`: the credential may have been sent. `spent`:
   * the seller delivered for it.
   */
  readonly state: 'reserved' | 'signed' | 'spent'
  /** Present from `signed` on. */
  readonly credential?: SignedCredential | undefined
}

/**
 * `spentUsd` is the amount already counted towards the exceeded limit. `earlier` is the payment that the budget has for
 * this purchase.
 */
export type ReservationVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly limit: CountedLimit; readonly spentUsd: string }
  | { readonly ok: false; readonly earlier: LedgerEntry }

/**
 * Counts the spending of one budget, and records each payment before its next step, so that a process that ends at any
 * moment neither forgets an amount nor signs a second time for a purchase. `reserve`, `signed` and `release` must each be
 * atomic over all processes that share the budget.
 */
export interface Ledger {
  /**
   * Counts the amount if no limit would be exceeded and the purchase is new; otherwise counts nothing. A throw refuses
   * the payment.
   */
  reserve(request: ReservationRequest): Promise<ReservationVerdict>
  /** Stores the credential of a reserved payment before it is sent. Throws if the reservation was released. */
  signed(id: string, credential: SignedCredential): Promise<void>
  /** Marks a signed payment as delivered. */
  spent(id: string): Promise<void>
  /**
   * Removes a payment that can no longer be charged, and its amount. Its purchase can then be made again. Unknown ids
   * and delivered payments are left alone.
   */
  release(id: string): Promise<void>
  /** The payment for a purchase. */
  find(purchase: string): Promise<LedgerEntry | undefined>
  /** The payments that were reserved or signed and not delivered, oldest first. */
  unfinished(): Promise<readonly LedgerEntry[]>
}
