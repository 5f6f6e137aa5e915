import type { PayerSignature } from './payer-signature.ts'
import type { OwnResponse } from './responses.ts'

/** `release` with the receipt headers, or the response to send instead of the handler's. */
export type Conclusion = Release | Withhold

export interface Release {
  readonly kind: 'release'
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** If set, call it with the response that is sent. A repeat of the same purchase gets this response. */
  readonly keep: ((response: OwnResponse) => void) | undefined
  /** Call when the response was written to the payer's connection. */
  readonly delivered: () => void
  /**
   * Call instead with the handler's response if the payer has disconnected. The response is kept for the same
   * credential, and a finished redemption is reverted.
   */
  readonly undelivered: (response: OwnResponse) => void
}

export interface Withhold {
  readonly kind: 'withhold'
  readonly response: OwnResponse
  /** If set, call it with the handler's response: the payment may still be settled or served. */
  readonly keep: ((response: OwnResponse) => void) | undefined
  /** The redemption that may have been finished for the response. */
  readonly redemptionToken?: string | undefined
}

/** The payer has sent the credential again, so the response requires a redemption. */
export interface Again {
  readonly signature: PayerSignature | undefined
  /** The token of the redemption whose response was not sent. */
  readonly redemptionToken: string | undefined
}
