import { mustKnow } from '../check.ts'
import { attachPaid } from './attach.ts'
import { checkPayOptions, payOptions, walletOptions } from './check-options.ts'
import { type RequestClass, withoutConditions } from './conditions.ts'
import { admit } from './core.ts'
import { type DiscoveryConfig, markSold, openDiscovery } from './discovery.ts'
import type { PayOptions, WalletOptions } from './options.ts'
import { createSeller, type Seller } from './seller.ts'
import { ownResponse, readableResponse, soldResponse } from './web-response.ts'

export type { VerifiedPayment } from '../payments.ts'
export type { Session } from '../sessions.ts'
export { paymentOf, sessionOf, vaultOf } from './attach.ts'
export type { DiscoveredRoute, DiscoveryConfig } from './discovery.ts'
export type { Fault, Undelivered } from './faults.ts'
export type { PaymentProtocol, PayOptions, WalletOptions } from './options.ts'
export type { CorsOptions } from './preflight.ts'
export type { PaidVault } from './vault.ts'

type RouteHandler<R extends Request, C> = (request: R, context: C) => Response | Promise<Response>

/**
 * Sells a route handler of Next's App Router: `export const GET = withPayment(options, handler)`. The handler runs
 * after Purser has verified the payment, and its response is sent after settlement. If the handler throws or returns
 * any status but 2xx, the payer is not charged. Invalid options are thrown at the first request, because `next build`
 * loads routes without secrets. `paymentOf` takes the request.
 *
 * @example
 * import { paymentOf, withPayment } from '@purser/sdk/next'
 *
 * const wallet = {
 *   apiKey: process.env.PURSER_API_KEY ?? '',
 *   baseUrl: 'https://pay.example.com',
 *   walletId: 'byw_01h455vb4pex5vsknk084sn02q',
 *   publicUrl: 'https://api.example.com',
 * }
 * export const GET = withPayment({ ...wallet, price: '0.01' }, (request: Request) =>
 *   Response.json({ sky: 'clear', paidBy: paymentOf(request)?.payer }),
 * )
 */
export function withPayment<R extends Request, C>(
  options: WalletOptions & PayOptions<R>,
  handler: RouteHandler<R, C>,
): (request: R, context: C) => Promise<Response> {
  let made: Seller | undefined
  const seller = (): Seller => {
    if (made !== undefined) return made
    mustKnow(options, { ...walletOptions, ...payOptions })
    checkPayOptions(options)
    made = createSeller(options)
    return made
  }
  const sold = async (request: R, context: C): Promise<Response> => {
    const { protocol, host, pathname, search } = new URL(request.url)
    const admission = await admit(seller(), options, {
      method: request.method,
      // Next puts its own listening address into the URL, not the requested one.
      origin: `${protocol}//${request.headers.get('host') ?? host}`,
      target: pathname + search,
      header: (name) => request.headers.get(name) ?? undefined,
      own: request,
      look: () => ({ headerNames: [...request.headers.keys()] }),
    })
    const readable = (response: Response) => readableResponse(response, admission.cors)
    if (admission.kind === 'free') return readable(await handler(request, context))
    if (admission.kind === 'refused') {
      if (request.signal.aborted) admission.undelivered?.()
      return readable(ownResponse(admission.response))
    }
    const run = () => {
      const bare = withoutConditions(request, request.constructor as RequestClass<R>)
      attachPaid(bare, admission)
      return handler(bare, context)
    }
    return readable(await soldResponse(admission, run, request.signal))
  }
  return markSold(sold, { options, seller })
}

/**
 * Serves `GET /openapi.json`, an OpenAPI document of paid routes: `export const GET = discovery(config)` in `app/openapi.json/route.ts`; see `DiscoveryConfig`. `handler` of a
 * route is the value of `withPayment`.
 *
 * @example
 * import { discovery, withPayment } from '@purser/sdk/next'
 *
 * const wallet = {
 *   apiKey: process.env.PURSER_API_KEY ?? '',
 *   baseUrl: 'https://pay.example.com',
 *   walletId: 'byw_01h455vb4pex5vsknk084sn02q',
 *   publicUrl: 'https://api.example.com',
 * }
 * const forecast = withPayment({ ...wallet, price: '0.01' }, () => Response.json({ sky: 'clear' }))
 * export const GET = discovery({ routes: [{ method: 'GET', path: '/forecast', handler: forecast }] })
 */
export function discovery(config: DiscoveryConfig): (request: Request) => Promise<Response> {
  const discover = openDiscovery(config)
  return async (request) => ownResponse(await discover(undefined, new URL(request.url).origin))
}
