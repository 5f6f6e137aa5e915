import type { Request, RequestHandler, Response } from 'express'
import { attachPayment, attachTill, tillOf } from './attach.ts'
import { admit, type Paid } from './core.ts'
import { exposeHeaders, privateCacheControl } from './headers.ts'
import { headerOf, holdResponse, setAnswerHead } from './hold-response.ts'
import { openTill, type PayOptions, type WalletOptions } from './options.ts'

export type { VerifiedPayment } from '../payments.ts'
export { paymentOf } from './attach.ts'
export type { Fault, PayOptions, WalletOptions } from './options.ts'

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
        header: (name) => req.get(name),
        own: req,
      })
      if (admission.kind === 'free') return next()
      if (admission.kind === 'refused') {
        setAnswerHead(res, admission.answer)
        return void res.end(admission.answer.body)
      }
      attachPayment(req, admission.payment)
      sell(admission, res)
      next()
    } catch (error) {
      next(error)
    }
  }
}

/** Holds the answer of the handler that is about to run. Never rejects: nobody is there any more to catch it. */
async function sell(paid: Paid, res: Response): Promise<void> {
  const response = holdResponse(res, paid.bodyBytesMax)
  if ((await response.held) === 'too-large') return response.replace(paid.tooLarge())
  if (response.status() >= 400) return response.release()
  const conclusion = await paid.conclude()
  if (conclusion.kind === 'withhold') return response.replace(conclusion.answer)
  res.setHeader(...conclusion.receipt)
  res.setHeader('Cache-Control', privateCacheControl(headerOf(res, 'cache-control')))
  res.setHeader('Access-Control-Expose-Headers', exposeHeaders(headerOf(res, 'access-control-expose-headers')))
  response.release()
}
