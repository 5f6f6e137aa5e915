import type { Request, RequestHandler } from 'express'
import { attachPayment, attachTill, tillOf } from './attach.ts'
import { admit } from './core.ts'
import { setAnswerHead } from './hold-response.ts'
import { openTill, type PayOptions, type WalletOptions } from './options.ts'
import { headerOfRequest, sellResponse } from './sell-response.ts'

export type { VerifiedPayment } from '../payments.ts'
export { paymentOf } from './attach.ts'
export type { Fault, PaymentProtocol, PayOptions, WalletOptions } from './options.ts'

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
 * settled. A handler that fails (a status of 400 or more, or a throw) costs the payer nothing. Works with Express 4.21
 * and 5.
 */
export function payMiddleware(options: PayOptions<Request>): RequestHandler {
  return async (req, res, next) => {
    try {
      const admission = await admit(tillOf(req), options, {
        method: req.method,
        origin: `${req.protocol}://${req.headers.host ?? ''}`,
        target: req.originalUrl,
        header: (name) => headerOfRequest(req, name),
        own: req,
      })
      if (admission.kind === 'free') return next()
      if (admission.kind === 'refused') {
        setAnswerHead(res, admission.answer)
        return void res.end(admission.answer.body ?? '')
      }
      attachPayment(req, admission.payment)
      sellResponse(admission, res)
      next()
    } catch (error) {
      next(error)
    }
  }
}
