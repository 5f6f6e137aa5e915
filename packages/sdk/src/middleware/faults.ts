import { PurserError } from '../errors.ts'
import type { Settlement, VerifiedPayment } from '../payments.ts'

/** A fault that is reported to the provider, not to the payer. */
export interface Fault {
  readonly stage: 'challenge' | 'verify' | 'handler' | 'settle' | 'delivery' | 'release' | 'session' | 'registry'
  readonly error: unknown
  readonly payment?: VerifiedPayment | undefined
  /** Settles the payment. Safe to repeat. Present if the outcome of the settlement is unknown. */
  readonly settleAgain?: (() => Promise<Settlement>) | undefined
}

/** A payment that was or may have been settled but whose response did not reach the payer. */
export interface Undelivered {
  readonly payment: VerifiedPayment
  /**
   * Whether the response is kept for the same credential. If false, it was dropped: refund the payment
   * (`payments.refund`) unless the handler runs again for it.
   */
  readonly isKept: boolean
}

/**
 * Returns a callback that prints its errors instead of throwing them: a failing callback must not change the outcome of
 * a payment.
 */
export function quietly<T>(name: string, listener: (event: T) => void): (event: T) => void {
  return (event) => {
    try {
      listener(event)
    } catch {
      console.error(`purser: ${name} threw`)
    }
  }
}

const remedies: { readonly [code: string]: string } = {
  unauthorized: ' Check apiKey: the service does not know it.',
  'wallet-not-found': " Check walletId: the key's organisation and environment have no such wallet.",
  'amount-below-minimum': ' Raise the price: settling costs more than it brings.',
}

/** Returns how the provider can correct a fault of configuration; empty for other faults. */
function remedyOf(error: unknown): string {
  return error instanceof PurserError ? (remedies[error.code] ?? '') : ''
}

/** Prints a fault in one line. */
export function printFault({ stage, error, payment }: Fault): void {
  const description =
    error instanceof Error ? `${error.name}: ${error.message}` : 'a value that is not an Error was thrown'
  const requestId = error instanceof Object && 'requestId' in error ? ` ${error.requestId}` : ''
  console.error(
    `purser: ${stage} failed${payment === undefined ? '' : ` for ${payment.paymentId}`}: ${description}${remedyOf(error)}${requestId}`,
  )
}
