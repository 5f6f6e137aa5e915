import type { Context, MiddlewareHandler } from 'hono'
import { attachPaid, attachTill, findVault, tillOf } from './attach.ts'
import { checkPayOptions } from './check-options.ts'
import { admit } from './core.ts'
import { openTill, type PayOptions, type WalletOptions } from './options.ts'
import type { PaidVault } from './vault.ts'
import { ownResponse, readableResponse, soldResponse } from './web-response.ts'

export type { VerifiedPayment } from '../payments.ts'
export type { Session } from '../sessions.ts'
export { paymentOf, sessionOf, vaultOf } from './attach.ts'
export type { Fault, PaymentProtocol, PayOptions, Undelivered, WalletOptions } from './options.ts'
export type { CorsOptions } from './preflight.ts'
export type { PaidVault } from './vault.ts'

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
 * settled. A handler that fails or sells nothing (any status but 2xx, or a throw) costs the payer nothing. `paymentOf` takes the
 * context.
 */
export function payMiddleware(options: PayOptions<Context>): MiddlewareHandler {
  // A wrong option is thrown when the server starts, not at the first payer.
  checkPayOptions(options)
  return async (c, next) => {
    const { origin, pathname, search } = new URL(c.req.url)
    const target = pathname + search
    const header = (name: string) => c.req.header(name)
    const look = () => ({ headerNames: Object.keys(c.req.header()) })
    const admission = await admit(tillOf(c), options, { method: c.req.method, origin, target, header, own: c, look })
    const answer = (response: Response) => replace(c, readableResponse(response, admission.cors))
    if (admission.kind === 'refused') {
      if (c.req.raw.signal.aborted) admission.undelivered?.()
      // Headers that other middlewares have set so far are among those of `c.res`.
      return answer(ownResponse(admission.answer, c.res.headers))
    }
    if (admission.kind === 'paid') attachPaid(c, admission)
    await next()
    if (admission.kind === 'free') return answer(c.res)
    if (c.error === undefined) return answer(await soldResponse(admission, () => c.res, c.req.raw.signal))
    admission.failed()
    answer(c.res)
  }
}

/** Set over another, a response would have the headers of both. */
function replace(c: Context, response: Response): void {
  c.res = undefined
  c.res = response
}

declare module 'hono' {
  interface ContextVariableMap {
    /** Of a request that is paid for, after `vaultMiddleware`. */
    vault: PaidVault | undefined
  }
}

/** Puts the vault of a paid request into the context, for `c.get('vault')`; a vault that the handler does not use is not made. */
export function vaultMiddleware(): MiddlewareHandler {
  return async (c, next) => {
    c.set('vault', findVault(c))
    await next()
  }
}
