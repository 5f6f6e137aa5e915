import type { Context, Handler, MiddlewareHandler } from 'hono'
import { mustKnow } from '../check.ts'
import { attachPaid, attachSeller, findVault, sellerOf } from './attach.ts'
import { checkPayOptions, payOptions, walletOptions } from './check-options.ts'
import { withoutConditions } from './conditions.ts'
import { admit } from './core.ts'
import { type DiscoveryConfig, markSold, openDiscovery } from './discovery.ts'
import type { PayOptions, WalletOptions } from './options.ts'
import { createSeller } from './seller.ts'
import type { PaidVault } from './vault.ts'
import { ownResponse, readableResponse, soldResponse } from './web-response.ts'

export type { VerifiedPayment } from '../payments.ts'
export type { Session } from '../sessions.ts'
export { paymentOf, sessionOf, vaultOf } from './attach.ts'
export type { DiscoveredRoute, DiscoveryConfig } from './discovery.ts'
export type { Fault, Undelivered } from './faults.ts'
export type { PaymentProtocol, PayOptions, WalletOptions } from './options.ts'
export type { CorsOptions } from './preflight.ts'
export type { PaidVault } from './vault.ts'

/**
 * Configures the wallet and the API key for all paid routes after it.
 *
 * @example
 * import { payMiddleware, paymentOf, walletMiddleware } from '@purser/sdk/hono'
 * import { Hono } from 'hono'
 *
 * const app = new Hono()
 * app.use(
 *   walletMiddleware({
 *     apiKey: process.env.PURSER_API_KEY ?? '',
 *     baseUrl: 'https://pay.example.com',
 *     walletId: 'byw_01h455vb4pex5vsknk084sn02q',
 *     publicUrl: 'https://api.example.com',
 *   }),
 * )
 * app.get('/forecast', payMiddleware({ price: '0.01' }), (c) => c.json({ sky: 'clear', paidBy: paymentOf(c)?.payer }))
 */
export function walletMiddleware(options: WalletOptions): MiddlewareHandler {
  mustKnow(options, walletOptions)
  const seller = createSeller(options)
  return async (c, next) => {
    attachSeller(c, seller)
    await next()
  }
}

/**
 * Sells a route. The handler runs after Purser has verified the payment, and its response is sent after settlement.
 * If the handler throws or returns any status but 2xx, the payer is not charged. `paymentOf` takes the context.
 *
 * @example
 * import { payMiddleware } from '@purser/sdk/hono'
 * import { Hono } from 'hono'
 *
 * const app = new Hono()
 * app.get('/report', payMiddleware({ price: '0.10', protocols: ['mpp'] }), (c) => c.json({ pages: 3 }))
 */
export function payMiddleware(options: PayOptions<Context>): MiddlewareHandler {
  // Throws for an invalid option at start-up, not at the first payment.
  mustKnow(options, payOptions)
  checkPayOptions(options)
  const handler: MiddlewareHandler = async (c, next) => {
    const { origin, pathname, search } = new URL(c.req.url)
    const target = pathname + search
    const header = (name: string) => c.req.header(name)
    const look = () => ({ headerNames: Object.keys(c.req.header()) })
    const admission = await admit(sellerOf(c), options, { method: c.req.method, origin, target, header, own: c, look })
    const own = (response: Response) => replace(c, readableResponse(response, admission.cors))
    if (admission.kind === 'refused') {
      if (c.req.raw.signal.aborted) admission.undelivered?.()
      // `c.res` includes the headers that other middleware has set so far.
      return own(ownResponse(admission.response, c.res.headers))
    }
    if (admission.kind === 'free') {
      await next()
      return own(c.res)
    }
    try {
      attachPaid(c, admission)
      c.req.raw = withoutConditions(c.req.raw, Request)
      await next()
    } catch (error) {
      admission.failed()
      throw error
    }
    if (c.error === undefined) return own(await soldResponse(admission, () => c.res, c.req.raw.signal))
    admission.failed()
    own(c.res)
  }
  return markSold(handler, { options })
}

/**
 * Serves `GET /openapi.json`, an OpenAPI document of paid routes; see `DiscoveryConfig`. `handler` of a
 * route is the value of `payMiddleware`.
 *
 * @example
 * import { discovery, payMiddleware } from '@purser/sdk/hono'
 * import { Hono } from 'hono'
 *
 * const app = new Hono()
 * const pay = payMiddleware({ price: '0.01', description: 'The weather of a city' })
 * app.get('/forecast', pay, (c) => c.json({ sky: 'clear' }))
 * app.get('/openapi.json', discovery({ routes: [{ method: 'GET', path: '/forecast', handler: pay }] }))
 */
export function discovery(config: DiscoveryConfig): Handler {
  const discover = openDiscovery(config)
  return async (c) => ownResponse(await discover(sellerOf(c), new URL(c.req.url).origin))
}

/** Clears the response first: otherwise Hono merges the headers of both. */
function replace(c: Context, response: Response): void {
  c.res = undefined
  c.res = response
}

declare module 'hono' {
  interface ContextVariableMap {
    /** The vault of a paid request. Set by `vaultMiddleware`. */
    vault: PaidVault | undefined
  }
}

/**
 * Sets `c.get('vault')` on a paid request. The vault is created on first use.
 *
 * @example
 * import { payMiddleware, vaultMiddleware, vaultOf } from '@purser/sdk/hono'
 * import { Hono } from 'hono'
 *
 * const app = new Hono()
 * app.post('/research', payMiddleware({ price: '0.50' }), vaultMiddleware(), async (c) =>
 *   c.json({ vaultId: await vaultOf(c).id() }),
 * )
 */
export function vaultMiddleware(): MiddlewareHandler {
  return async (c, next) => {
    c.set('vault', findVault(c))
    await next()
  }
}
