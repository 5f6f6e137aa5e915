import type { Request, RequestHandler } from 'express'
import { mustKnow } from '../check.ts'
import { attachPaid, attachSeller, findVault, sellerOf } from './attach.ts'
import { setReadable, setResponseHead } from './buffer-response.ts'
import { checkPayOptions, payOptions, walletOptions } from './check-options.ts'
import { admit } from './core.ts'
import { type DiscoveryConfig, markSold, openDiscovery } from './discovery.ts'
import type { PayOptions, WalletOptions } from './options.ts'
import { headerOfRequest, sellResponse } from './sell-response.ts'
import { createSeller } from './seller.ts'
import type { PaidVault } from './vault.ts'

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
 * import { payMiddleware, paymentOf, walletMiddleware } from '@purser/sdk/express'
 * import express from 'express'
 *
 * const app = express()
 * app.use(
 *   walletMiddleware({
 *     apiKey: process.env.PURSER_API_KEY ?? '',
 *     baseUrl: 'https://pay.example.com',
 *     walletId: 'byw_01h455vb4pex5vsknk084sn02q',
 *     publicUrl: 'https://api.example.com',
 *   }),
 * )
 * app.get('/forecast', payMiddleware({ price: '0.01' }), (req, res) => {
 *   res.json({ sky: 'clear', paidBy: paymentOf(req)?.payer })
 * })
 */
export function walletMiddleware(options: WalletOptions): RequestHandler {
  mustKnow(options, walletOptions)
  const seller = createSeller(options)
  return (req, _res, next) => {
    attachSeller(req, seller)
    next()
  }
}

/**
 * Sells a route. The handler runs after Purser has verified the payment, and its response is sent after settlement.
 * If the handler throws or returns any status but 2xx, the payer is not charged. Works with Express 4.21 and 5.
 *
 * @example
 * import { payMiddleware } from '@purser/sdk/express'
 * import { Router } from 'express'
 *
 * const router = Router()
 * router.get('/report/:size', payMiddleware({ price: (req) => (req.params.size === 'large' ? '0.10' : '0.01') }), (_req, res) => {
 *   res.json({ pages: 3 })
 * })
 */
export function payMiddleware(options: PayOptions<Request>): RequestHandler {
  // Throws for an invalid option at start-up, not at the first payment.
  mustKnow(options, payOptions)
  checkPayOptions(options)
  const handler: RequestHandler = async (req, res, next) => {
    try {
      const admission = await admit(sellerOf(req), options, {
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
        setResponseHead(res, admission.response)
        return void res.end(admission.response.body ?? '')
      }
      attachPaid(req, admission)
      sellResponse(admission, res)
      next()
    } catch (error) {
      next(error)
    }
  }
  return markSold(handler, { options })
}

/**
 * Serves `GET /openapi.json`, an OpenAPI document of paid routes; see `DiscoveryConfig`. `handler` of a
 * route is the value of `payMiddleware`.
 *
 * @example
 * import { discovery, payMiddleware } from '@purser/sdk/express'
 * import { Router } from 'express'
 *
 * const router = Router()
 * const pay = payMiddleware({ price: '0.01', description: 'The weather of a city' })
 * router.get('/forecast', pay, (_req, res) => void res.json({ sky: 'clear' }))
 * router.get('/openapi.json', discovery({ routes: [{ method: 'GET', path: '/forecast', handler: pay }] }))
 */
export function discovery(config: DiscoveryConfig): RequestHandler {
  const discover = openDiscovery(config)
  return async (req, res, next) => {
    try {
      const response = await discover(sellerOf(req), `${req.protocol}://${req.headers.host ?? ''}`)
      setResponseHead(res, response)
      res.end(response.body ?? '')
    } catch (error) {
      next(error)
    }
  }
}

/** The router sets it when it finds the handler, so it is read after the response. */
function patternOf({ baseUrl, route }: Request): string | undefined {
  const path: unknown = route?.path
  return typeof path === 'string' ? baseUrl + path : undefined
}

declare global {
  namespace Express {
    interface Request {
      /** The vault of a paid request. Set by `vaultMiddleware`. */
      vault?: PaidVault
    }
  }
}

/**
 * Sets `req.vault` on a paid request. The vault is created on first use.
 *
 * @example
 * import { payMiddleware, vaultMiddleware, vaultOf } from '@purser/sdk/express'
 * import { Router } from 'express'
 *
 * const router = Router()
 * router.post('/research', payMiddleware({ price: '0.50' }), vaultMiddleware(), async (req, res) => {
 *   res.json({ vaultId: await vaultOf(req).id() })
 * })
 */
export function vaultMiddleware(): RequestHandler {
  return (req, _res, next) => {
    const vault = findVault(req)
    if (vault !== undefined) req.vault = vault
    next()
  }
}
