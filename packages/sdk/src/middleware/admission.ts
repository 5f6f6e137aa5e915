import type { VerifiedPayment } from '../payments.ts'
import type { Session } from '../sessions.ts'
import type { Conclusion } from './conclusion.ts'
import type { ReadableBy } from './headers.ts'
import type { OwnResponse } from './responses.ts'
import type { PaidVault } from './vault.ts'

/** A response sent instead of the handler's. */
export interface Served {
  readonly response: OwnResponse
  /** Call instead of sending it if the payer has disconnected. */
  readonly undelivered?: (() => void) | undefined
}

/**
 * The decision about a request: pass it for free, respond instead of the handler, or run the handler and then
 * conclude the payment.
 */
export type Admission =
  | { readonly kind: 'free' }
  | ({ readonly kind: 'refused' } & Served)
  | ({ readonly kind: 'paid' } & Paid)

/** An admission, with the CORS rules for the response. */
export type ReadableAdmission = Admission & { readonly cors: ReadableBy }

/** A request that was paid for, now or by a session, and whose handler has not finished. */
export interface Paid {
  /** The verified payment. Undefined for a request with a session. */
  readonly payment: VerifiedPayment | undefined
  readonly session: Session | undefined
  readonly vault: PaidVault
  readonly bodyBytesMax: number
  /** Call once when the handler succeeded. Settles the payment and returns whether the response may be sent. */
  readonly conclude: () => Promise<Conclusion>
  /** The response if the handler's response exceeds the buffer limit. The payment is not settled. */
  readonly tooLarge: () => OwnResponse
  /** Call when the handler failed. Nothing is settled, and the payment identifier can be used again. */
  readonly failed: () => void
  /**
   * Call when the client disconnected before the handler ended. Returns whether that cancels the payment. It does for
   * a safe method: the payment is not settled. An unsafe handler has done its work and is paid if it succeeds.
   */
  readonly abandon: () => boolean
  /**
   * Call when the client disconnected and an unsafe handler has not ended its response in time. The payment is not
   * settled, and the run counts as abandoned; where its money has moved already, that is a fault.
   */
  readonly unended: () => void
}
