import { attachPaid } from './attach.ts'
import { checkPayOptions } from './check-options.ts'
import { admit } from './core.ts'
import { openTill, type PayOptions, type Till, type WalletOptions } from './options.ts'
import { ownResponse, readableResponse, soldResponse } from './web-response.ts'

export type { VerifiedPayment } from '../payments.ts'
export type { Session } from '../sessions.ts'
export { paymentOf, sessionOf, vaultOf } from './attach.ts'
export type { Fault, PaymentProtocol, PayOptions, Undelivered, WalletOptions } from './options.ts'
export type { CorsOptions } from './preflight.ts'
export type { PaidVault } from './vault.ts'

type RouteHandler<R extends Request, C> = (request: R, context: C) => Response | Promise<Response>

/**
 * Sells a route handler of Next's App Router: `export const GET = withPayment(options, handler)`. The handler runs when
 * Purser says that the payment is good, and its answer leaves when the payment is settled. A handler that fails or
 * sells nothing (any status but 2xx, or a throw) costs the payer nothing. Wrong options are thrown at the first request and not
 * before: `next build` loads the routes where there are no secrets. `paymentOf` takes the request.
 */
export function withPayment<R extends Request, C>(
  options: WalletOptions & PayOptions<R>,
  handler: RouteHandler<R, C>,
): (request: R, context: C) => Promise<Response> {
  let till: Till | undefined
  return async (request, context) => {
    if (till === undefined) checkPayOptions(options)
    till ??= openTill(options)
    const { protocol, host, pathname, search } = new URL(request.url)
    const admission = await admit(till, options, {
      method: request.method,
      // Next writes into the address where it listens, not what the caller asked for.
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
      return readable(ownResponse(admission.answer))
    }
    attachPaid(request, admission)
    return readable(await soldResponse(admission, () => handler(request, context), request.signal))
  }
}
