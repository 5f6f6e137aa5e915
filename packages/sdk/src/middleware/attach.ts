import type { VerifiedPayment } from '../payments.ts'
import type { Till } from './options.ts'

const tills = new WeakMap<object, Till>()
const payments = new WeakMap<object, VerifiedPayment>()

/**
 * Puts the till on a request, beside it and not in it: nothing of it shows when the request is printed or serialised.
 */
export function attachTill(request: object, till: Till): void {
  tills.set(request, till)
}

/**
 * The till of a request; throws when `walletMiddleware` did not run before, so that a paid route is never open by
 * mistake.
 */
export function tillOf(request: object): Till {
  const till = tills.get(request)
  if (till === undefined) throw new Error('payMiddleware needs walletMiddleware to run before it.')
  return till
}

/** Remembers the verified payment for the handler. */
export function attachPayment(request: object, payment: VerifiedPayment): void {
  payments.set(request, payment)
}

/** The verified payment of a request; undefined where none was asked for, as for a free method or an unpaid route. */
export function paymentOf(request: object): VerifiedPayment | undefined {
  return payments.get(request)
}
