import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { attachPaid, attachTill, findVault, tillOf } from './attach.ts'
import { checkPayOptions } from './check-options.ts'
import { admit } from './core.ts'
import { exposeHeaders, readingHeaders } from './headers.ts'
import { openTill, type PayOptions, type WalletOptions } from './options.ts'
import { headerOfRequest, sellResponse } from './sell-response.ts'
import type { PaidVault } from './vault.ts'

export type { VerifiedPayment } from '../payments.ts'
export type { Session } from '../sessions.ts'
export { paymentOf, sessionOf, vaultOf } from './attach.ts'
export type { Fault, PaymentProtocol, PayOptions, Undelivered, WalletOptions } from './options.ts'
export type { CorsOptions } from './preflight.ts'
export type { PaidVault } from './vault.ts'

const openWallet: FastifyPluginAsync<WalletOptions> = async (app, options) => {
  const till = openTill(options)
  app.addHook('onRequest', async (request) => attachTill(request, till))
}

/** Says who is paid, and with which key, for all paid routes of the instance that it is registered with. */
export const walletPlugin = Object.assign(openWallet, { [Symbol.for('skip-override')]: true })

/**
 * Sells a route, as its `onRequest` or `preHandler` hook: its handler runs when Purser says that the payment is good,
 * and its answer leaves when the payment is settled, by whatever way the handler gives it (a value, `send`, a stream,
 * `hijack` with `raw`). A handler that fails or sells nothing (any status but 2xx, or a throw) costs the payer nothing.
 */
export function payHook(
  options: PayOptions<FastifyRequest>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined> {
  // A wrong option is thrown when the server starts, not at the first payer.
  checkPayOptions(options)
  return async (request, reply) => {
    const admission = await admit(tillOf(request), options, {
      method: request.method,
      origin: `${request.protocol}://${request.host}`,
      target: request.originalUrl,
      header: (name) => headerOfRequest(request.raw, name),
      own: request,
      look: () => ({
        route: request.routeOptions.url,
        headerNames: Object.keys(request.headers),
        body: request.body,
      }),
    })
    const reading = readingHeaders(admission.cors, (header) => reply.getHeader(header)?.toString())
    if (admission.kind !== 'paid') reply.headers(Object.fromEntries(reading))
    if (admission.kind === 'free') return undefined
    if (admission.kind === 'refused') {
      if (reply.raw.destroyed) admission.undelivered?.()
      const { status, headers, body } = admission.answer
      const exposed = reply.getHeader('access-control-expose-headers')?.toString()
      reply.code(status).headers({ ...headers, 'Access-Control-Expose-Headers': exposeHeaders(exposed) })
      return reply.send(body)
    }
    attachPaid(request, admission)
    // Headers that other hooks have set stand in the reply and not yet in the response.
    sellResponse(admission, reply.raw, reply.getHeaders())
    return undefined
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a request that is paid for, after `vaultHook`. */
    vault?: PaidVault
  }
}

/** Puts the vault of a paid request on it, as `request.vault`, in a hook after `payHook`; a vault that is not used is not made. */
export function vaultHook(): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    const vault = findVault(request)
    if (vault !== undefined) request.vault = vault
  }
}
