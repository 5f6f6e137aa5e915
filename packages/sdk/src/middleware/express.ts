import type { Request, RequestHandler } from 'express'
import { attachPaid, attachTill, findVault, tillOf } from './attach.ts'
import { checkPayOptions } from './check-options.ts'
import { admit } from './core.ts'
import { setAnswerHead, setReadable } from './hold-response.ts'
import { openTill, type PayOptions, type WalletOptions } from './options.ts'
import { headerOfRequest, sellResponse } from './sell-response.ts'
import type { PaidVault } from './vault.ts'

export type { VerifiedPayment } from '../payments.ts'
export type { Session } from '../sessions.ts'
export { paymentOf, sessionOf, vaultOf } from './attach.ts'
export type { Fault, PaymentProtocol, PayOptions, Undelivered, WalletOptions } from './options.ts'
export type { CorsOptions } from './preflight.ts'
export type { PaidVault } from './vault.ts'

/** Says who is paid, and with which key, for all paid routes after it. */
export function walletMiddleware(options: WalletOptions): RequestHandler {
  const till = openTill(options)
  return (req, _res, next) => {
    attachTill(req, till)
    next()
  }
}

/**
 * Sells a route: its handler runs when Purser says that the payment is good, and its answer leaves when the payment is
 * settled. A handler that fails or sells nothing (any status but 2xx, or a throw) costs the payer nothing. Works with Express 4.21
 * and 5.
 */
export function payMiddleware(options: PayOptions<Request>): RequestHandler {
  // A wrong option is thrown when the server starts, not at the first payer.
  checkPayOptions(options)
  return async (req, res, next) => {
    try {
      const admission = await admit(tillOf(req), options, {
        method: req.method,
        origin: `${req.protocol}://${req.headers.host ?? ''}`,
        target: req.originalUrl,
        header: (name) => headerOfRequest(req, name),
        own: req,
        look: () => ({ route: patternOf(req), headerNames: Object.keys(req.headers), body: req.body }),
      })
      if (admission.kind !== 'paid') setReadable(res, admission.cors)
      if (admission.kind === 'free') return next()
      if (admission.kind === 'refused') {
        if (res.destroyed) return admission.undelivered?.()
        setAnswerHead(res, admission.answer)
        return void res.end(admission.answer.body ?? '')
      }
      attachPaid(req, admission)
      sellResponse(admission, res)
      next()
    } catch (error) {
      next(error)
    }
  }
}

/** Known once a router has found the handler, so that it is asked for when the answer is there. */
function patternOf({ baseUrl, route }: Request): string | undefined {
  const path: unknown = route?.path
  return typeof path === 'string' ? baseUrl + path : undefined
}

declare global {
  namespace Express {
    interface Request {
      /** Of a request that is paid for, after `vaultMiddleware`. */
      vault?: PaidVault
    }
  }
}

/** Puts the vault of a paid request on it, as `req.vault`; a vault that the handler does not use is not made. */
export function vaultMiddleware(): RequestHandler {
  return (req, _res, next) => {
    const vault = findVault(req)
    if (vault !== undefined) req.vault = vault
    next()
  }
}
