import type { Context, MiddlewareHandler } from 'hono'
import { attachPayment, attachTill, tillOf } from './attach.ts'
import { admit } from './core.ts'
import { openTill, type PayOptions, type WalletOptions } from './options.ts'
import { ownResponse, soldResponse } from './web-response.ts'

export type { VerifiedPayment } from '../payments.ts'
export { paymentOf } from './attach.ts'
export type { Fault, PaymentProtocol, PayOptions, WalletOptions } from './options.ts'

/** Says who is paid, and with which key, for all paid routes after it. */
export function walletMiddleware(options: WalletOptions): MiddlewareHandler {
  const till = openTill(options)
  return async (c, next) => {
    attachTill(c, till)
    await next()
  }
}

/**
 * Sells a route: its handler runs when Purser says that the payment is good, and its answer leaves when the payment is
 * settled. A handler that fails (a status of 400 or more, or a throw) costs the payer nothing. `paymentOf` takes the
 * context.
 */
export function payMiddleware(options: PayOptions<Context>): MiddlewareHandler {
  return async (c, next) => {
    const { origin, pathname, search } = new URL(c.req.url)
    const target = pathname + search
    const header = (name: string) => c.req.header(name)
    const admission = await admit(tillOf(c), options, { method: c.req.method, origin, target, header, own: c })
    if (admission.kind === 'free') return next()
    // Headers that other middlewares have set so far are among those of `c.res`.
    if (admission.kind === 'refused') return replace(c, ownResponse(admission.answer, c.res.headers))
    attachPayment(c, admission.payment)
    await next()
    if (c.error !== undefined) return admission.failed()
    replace(c, await soldResponse(admission, () => c.res))
  }
}

/** Set over another, a response would have the headers of both. */
function replace(c: Context, response: Response): void {
  c.res = undefined
  c.res = response
}
