import type { Context, MiddlewareHandler } from 'hono'
import type { OwnAnswer } from './answers.ts'
import { attachPayment, attachTill, tillOf } from './attach.ts'
import { admit } from './core.ts'
import { exposeHeaders, privateCacheControl } from './headers.ts'
import { openTill, type PayOptions, type WalletOptions } from './options.ts'
import { readBounded } from './read-bounded.ts'

export type { VerifiedPayment } from '../payments.ts'
export { paymentOf } from './attach.ts'
export type { Fault, PayOptions, WalletOptions } from './options.ts'

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
    if (admission.kind === 'refused') {
      const { body, status, headers } = admission.answer
      c.res = c.newResponse(body, status, headers)
      return expose(c)
    }
    attachPayment(c, admission.payment)
    await next()
    if (c.error !== undefined || c.res.status >= 400) return

    const body = await readBounded(c.res, admission.bodyBytesMax)
    if (body === 'too-large') return replace(c, admission.tooLarge())
    const conclusion = await admission.conclude()
    if (conclusion.kind === 'withhold') return replace(c, conclusion.answer)
    const { status, statusText, headers } = c.res
    const sold = new Response(body, { status, statusText, headers })
    sold.headers.set(...conclusion.receipt)
    sold.headers.set('Cache-Control', privateCacheControl(headers.get('cache-control')))
    c.res = undefined
    c.res = sold
    expose(c)
  }
}

/** Throws the handler's answer away with its headers; those by which a browser may read the new one stay. */
function replace(c: Context, answer: OwnAnswer): void {
  const kept = [...c.res.headers].filter(([name]) => name === 'vary' || name.startsWith('access-control-'))
  c.res = undefined
  c.res = new Response(answer.body, {
    status: answer.status,
    headers: { ...Object.fromEntries(kept), ...answer.headers },
  })
  expose(c)
}

function expose(c: Context): void {
  c.res.headers.set('Access-Control-Expose-Headers', exposeHeaders(c.res.headers.get('access-control-expose-headers')))
}
