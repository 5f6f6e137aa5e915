import { formatMppCredential } from '@purser/protocol'
import { afterEach, beforeEach } from 'vitest'
import { encodeHeader } from '../src/middleware/headers.ts'
import { type Doing, type FakePurser, mppOffers, problem, startFakePurser, verification } from './fake-purser.ts'
import { expressShop, fastifyShop, honoShop, nextShop, type Shop, type ShopOptions } from './shops.ts'

/** Every guarantee of the middleware holds for each of these. */
export const frameworks: [string, typeof expressShop][] = [
  ['express', expressShop],
  ['fastify', fastifyShop],
  ['hono', honoShop],
  ['next', nextShop],
]

let serial = 0

/** A fresh payment in version 2 of x402; the fake Purser finds it good once. */
export function v2(): { 'PAYMENT-SIGNATURE': string } {
  const value = encodeHeader({ x402Version: 2, accepted: { network: 'eip155:84532' }, payload: { nonce: ++serial } })
  return { 'PAYMENT-SIGNATURE': value }
}

/** A fresh payment in version 1. */
export function v1(): { 'X-PAYMENT': string } {
  const payment = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: { nonce: ++serial } }
  return { 'X-PAYMENT': encodeHeader(payment) }
}

/** A fresh MPP credential for a challenge on the chain of the method, with the inputs of the challenge. */
export function mpp(
  method: 'tempo' | 'evm' = 'evm',
  requested: Record<string, unknown> = {},
  payload: Record<string, unknown> = { type: 'authorization' },
): string {
  const offers = mppOffers({ resource: 'http://shop.test/paid', price: '0.01', ...requested })
  const challenge = offers.find((offer) => offer.method === method)
  if (challenge === undefined) throw new Error('no such offer')
  return formatMppCredential({ challenge, payload: { ...payload, nonce: ++serial } })
}

/** A fresh payment in version 2 that the payer gave a name. */
export function named(id: string): { 'PAYMENT-SIGNATURE': string } {
  const extensions = { 'payment-identifier': { info: { required: false, id } } }
  const payment = { x402Version: 2, accepted: { network: 'eip155:84532' }, payload: { nonce: ++serial }, extensions }
  return { 'PAYMENT-SIGNATURE': encodeHeader(payment) }
}

/** A header of a response, empty when absent. */
export function header(response: Response, name: string): string {
  return response.headers.get(name) ?? ''
}

/** All the ways in which Purser gives no clear answer. */
export const silences: [string, Doing][] = [
  ['no answer in time', 'hang'],
  ['a broken connection', 'reset'],
  ['500', problem(500, 'internal-error')],
  ['503', problem(503, 'chain-unavailable')],
  ['a used-up plan', problem(429, 'payment-limit-reached', { limit: 100, current: 100, upgradeUrl: 'http://d.test' })],
  ['an HTML page with status 200', { status: 200, text: '<html>welcome</html>' }],
  ['valid: false with status 200', { status: 200, body: verification({ valid: false }) }],
]

/** What Purser refuses because the provider's own configuration is wrong. */
export const misconfigurations: [string, Doing][] = [
  ['a key that is not valid', problem(401, 'unauthorized')],
  ['a wallet that is unknown', problem(422, 'wallet-not-found')],
  ['a price under the minimum', problem(422, 'amount-below-minimum')],
]

interface Stage {
  fake: FakePurser
  shop: Shop
  /** Opens the shop again with other options. */
  readonly open: (options: ShopOptions) => Promise<void>
  readonly buy: (headers: Record<string, string>, path?: string) => Promise<Response>
  /** Opens the shop with a short timeout, but only where Purser keeps silent: on a busy machine a good answer may take its time. */
  readonly impatient: (doing: Doing) => Promise<void>
}

/** For each test of the suite that calls it: a fake Purser, a shop that sells with it, and a way to buy there. */
export function stageOf(openShop: typeof expressShop): Stage {
  const closed: Shop = { url: '', runs: [], sessions: [], faults: [], close: async () => {} }
  const nobody: FakePurser = {
    baseUrl: '',
    seen: [],
    delivered: [],
    released: [],
    calls: () => [],
    script: () => {},
    stop: async () => {},
  }
  const stage: Stage = {
    fake: nobody,
    shop: closed,
    open: async (options) => {
      await stage.shop.close()
      stage.shop = await openShop(stage.fake, options)
    },
    buy: (headers, path = '/paid') => fetch(stage.shop.url + path, { headers }),
    impatient: async (doing) => {
      if (doing === 'hang') await stage.open({ wallet: { timeoutMs: 1_000, maxRetries: 0 } })
    },
  }
  beforeEach(async () => {
    stage.fake = await startFakePurser()
    stage.shop = await openShop(stage.fake)
  })
  afterEach(async () => {
    await stage.shop.close()
    await stage.fake.stop()
  })
  return stage
}
