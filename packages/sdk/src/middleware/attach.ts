import type { VerifiedPayment } from '../payments.ts'
import type { Session } from '../sessions.ts'
import type { Paid } from './admission.ts'
import type { Seller } from './seller.ts'
import type { PaidVault } from './vault.ts'

const sellers = new WeakMap<object, Seller>()
type Bought = Pick<Paid, 'payment' | 'session' | 'vault'>
const bought = new WeakMap<object, Bought>()

/**
 * Associates the seller with a request, without adding a property that would show when the request is printed or
 * serialized.
 */
export function attachSeller(request: object, seller: Seller): void {
  sellers.set(request, seller)
}

/**
 * The seller of a request. Throws if `walletMiddleware` did not run first, so that a paid route is never open by
 * mistake.
 */
export function sellerOf(request: object): Seller {
  const seller = sellers.get(request)
  if (seller === undefined) throw new Error('payMiddleware needs walletMiddleware to run before it.')
  return seller
}

/** Stores the payment or session, and the vault, for the handler of the request. */
export function attachPaid(request: object, { payment, session, vault }: Bought): void {
  bought.set(request, { payment, session, vault })
}

/**
 * The verified payment of a request. Undefined if none was required: a free method, an unpaid route, or a session.
 *
 * @example
 * import { payMiddleware, paymentOf } from '@purser/sdk/express'
 * import { Router } from 'express'
 *
 * const router = Router()
 * router.get('/forecast', payMiddleware({ price: '0.01' }), (req, res) => {
 *   res.json({ paidBy: paymentOf(req)?.payer })
 * })
 */
export function paymentOf(request: object): VerifiedPayment | undefined {
  return bought.get(request)?.payment
}

/**
 * The session that a request presented instead of a payment.
 *
 * @example
 * import { payMiddleware, sessionOf } from '@purser/sdk/express'
 * import { Router } from 'express'
 *
 * const router = Router()
 * router.get('/forecast', payMiddleware({ price: '0.01', acceptSessions: true }), (req, res) => {
 *   res.json({ isSession: sessionOf(req) !== undefined })
 * })
 */
export function sessionOf(request: object): Session | undefined {
  return bought.get(request)?.session
}

/**
 * The vault of a request that was paid for, now or by a session. Throws if the request was not paid for.
 *
 * @example
 * import { payMiddleware, vaultOf } from '@purser/sdk/express'
 * import { Router } from 'express'
 *
 * const router = Router()
 * router.post('/research', payMiddleware({ price: '0.50' }), async (req, res) => {
 *   res.json({ vaultId: await vaultOf(req).id() })
 * })
 */
export function vaultOf(request: object): PaidVault {
  const vault = findVault(request)
  if (vault === undefined) throw new Error('Only a paid request has a vault.')
  return vault
}

/** The vault of a paid request, or undefined if the request was not paid for. */
export function findVault(request: object): PaidVault | undefined {
  return bought.get(request)?.vault
}
