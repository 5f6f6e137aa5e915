import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { mustKnow } from '../check.ts'
import { attachPaid, attachSeller, findVault, sellerOf } from './attach.ts'
import { checkPayOptions, payOptions, walletOptions } from './check-options.ts'
import { admit } from './core.ts'
import { type DiscoveryConfig, markSold, openDiscovery } from './discovery.ts'
import { exposeHeaders, readingHeaders } from './headers.ts'
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

const openWallet: FastifyPluginAsync<WalletOptions> = async (app, options) => {
  mustKnow(options, { ...walletOptions, prefix: true, logLevel: true, logSerializers: true })
  const seller = createSeller(options)
  app.addHook('onRequest', async (request) => attachSeller(request, seller))
}

/**
 * Configures the wallet and the API key for all paid routes of the instance that it is registered with.
 *
 * @example
 * import { payHook, paymentOf, walletPlugin } from '@purser/sdk/fastify'
 * import Fastify from 'fastify'
 *
 * const app = Fastify()
 * await app.register(walletPlugin, {
 *   apiKey: process.env.PURSER_API_KEY ?? '',
 *   baseUrl: 'https://pay.example.com',
 *   walletId: 'byw_01h455vb4pex5vsknk084sn02q',
 *   publicUrl: 'https://api.example.com',
 * })
 * app.get('/forecast', { onRequest: payHook({ price: '0.01' }) }, async (request) => ({
 *   sky: 'clear',
 *   paidBy: paymentOf(request)?.payer,
 * }))
 */
export const walletPlugin = Object.assign(openWallet, { [Symbol.for('skip-override')]: true })

/**
 * Sells a route, as its `onRequest` or `preHandler` hook. The handler runs after Purser has verified the payment, and
 * its response is sent after settlement, whether the handler returns a value, calls `send`, streams, or uses `hijack`
 * with `raw`. If the handler throws or returns any status but 2xx, the payer is not charged.
 *
 * @example
 * import { payHook } from '@purser/sdk/fastify'
 * import Fastify from 'fastify'
 *
 * const app = Fastify()
 * app.get('/report', { onRequest: payHook({ price: '0.10' }) }, async () => ({ pages: 3 }))
 */
export function payHook(
  options: PayOptions<FastifyRequest>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined> {
  // Throws for an invalid option at start-up, not at the first payment.
  mustKnow(options, payOptions)
  checkPayOptions(options)
  const hook = async (request: FastifyRequest, reply: FastifyReply) => {
    const admission = await admit(sellerOf(request), options, {
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
      const { status, headers, body } = admission.response
      const exposed = reply.getHeader('access-control-expose-headers')?.toString()
      reply.code(status).headers({ ...headers, 'Access-Control-Expose-Headers': exposeHeaders(exposed) })
      return reply.send(body)
    }
    attachPaid(request, admission)
    // Headers set by other hooks are in the reply, not yet in the response.
    sellResponse(admission, reply.raw, reply.getHeaders())
    return undefined
  }
  return markSold(hook, { options })
}

/**
 * Serves `GET /openapi.json`, an OpenAPI document of paid routes; see `DiscoveryConfig`. `handler` of a
 * route is the value of `payHook`.
 *
 * @example
 * import { discovery, payHook } from '@purser/sdk/fastify'
 * import Fastify from 'fastify'
 *
 * const app = Fastify()
 * const pay = payHook({ price: '0.01', description: 'The weather of a city' })
 * app.get('/forecast', { onRequest: pay }, async () => ({ sky: 'clear' }))
 * app.get('/openapi.json', discovery({ routes: [{ method: 'GET', path: '/forecast', handler: pay }] }))
 */
export function discovery(
  config: DiscoveryConfig,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  const discover = openDiscovery(config)
  return async (request, reply) => {
    const { status, headers, body } = await discover(sellerOf(request), `${request.protocol}://${request.host}`)
    for (const [name, value] of Object.entries(headers)) reply.header(name, value)
    return reply.code(status).send(body)
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The vault of a paid request. Set by `vaultHook`. */
    vault?: PaidVault
  }
}

/**
 * Sets `request.vault` on a paid request. Register the hook after `payHook`. The vault is created on first use.
 *
 * @example
 * import { payHook, vaultHook, vaultOf } from '@purser/sdk/fastify'
 * import Fastify from 'fastify'
 *
 * const app = Fastify()
 * app.post('/research', { onRequest: [payHook({ price: '0.50' }), vaultHook()] }, async (request) => ({
 *   vaultId: await vaultOf(request).id(),
 * }))
 */
export function vaultHook(): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    const vault = findVault(request)
    if (vault !== undefined) request.vault = vault
  }
}
