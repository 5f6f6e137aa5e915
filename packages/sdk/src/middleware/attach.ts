import type { VerifiedPayment } from '../payments.ts'
import type { Session } from '../sessions.ts'
import type { Paid } from './core.ts'
import type { Till } from './options.ts'
import type { PaidVault } from './vault.ts'

const tills = new WeakMap<object, Till>()
type Bought = Pick<Paid, 'payment' | 'session' | 'vault'>
const bought = new WeakMap<object, Bought>()

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

/** Remembers for the handler what the request came with: the payment or the session, and the vault. */
export function attachPaid(request: object, { payment, session, vault }: Bought): void {
  bought.set(request, { payment, session, vault })
}

/**
 * The verified payment of a request; undefined where none was asked for: a free method, an unpaid route, a session that was paid
 * for before.
 */
export function paymentOf(request: object): VerifiedPayment | undefined {
  return bought.get(request)?.payment
}

/** The session that a request came with in place of a payment. */
export function sessionOf(request: object): Session | undefined {
  return bought.get(request)?.session
}

/** The vault of a request that is paid for, now or by a session; throws for one that is not, since nobody bought a vault by it. */
export function vaultOf(request: object): PaidVault {
  const vault = findVault(request)
  if (vault === undefined) throw new Error('Only a request that is paid for has a vault.')
  return vault
}

/** The same, but undefined for a request that is not paid for. */
export function findVault(request: object): PaidVault | undefined {
  return bought.get(request)?.vault
}
