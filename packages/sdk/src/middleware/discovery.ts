import { decodeMppJson, discoveryDocument, type PaymentOffer, parseChallenges, type SoldRoute } from '@purser/protocol'
import { must, mustKnow, mustOptions, type Named } from '../check.ts'
import { resourceLengthMax } from './core.ts'
import type { PayOptions } from './options.ts'
import { challengeFailed, challengeRequestOf } from './request-payment.ts'
import { type OwnResponse, problemResponse } from './responses.ts'
import { routeOf, type Seller } from './seller.ts'

/** A paid route as a discovery document describes it, apart from its payment. */
export interface DiscoveredRoute {
  /** HTTP method, such as `GET`. */
  readonly method: string
  /** Path of the route, with its parameters as the framework writes them or as `{name}`. */
  readonly path: string
  /** The value that sells the route, of `payMiddleware`, `payHook` or `withPayment`. */
  readonly handler: object
  readonly summary?: string | undefined
  /** Parameters of the route as OpenAPI has them. Those of the path may be left out. */
  readonly parameters?: readonly Readonly<Record<string, unknown>>[] | undefined
  /** The request body, as OpenAPI has it. */
  readonly requestBody?: Readonly<Record<string, unknown>> | undefined
}

/**
 * The paid routes of a service. `discovery` serves `GET /openapi.json`, an OpenAPI document of them, for clients that compare prices before
 * they request. `x-payment-info` of each route has its offers, as the MPP discovery draft defines them. The document is fetched from Purser at the
 * first request and kept for five minutes.
 */
export interface DiscoveryConfig {
  readonly routes: readonly DiscoveredRoute[]
  /** Default: the host of the service as the title, version 1.0.0. */
  readonly info?:
    | {
        readonly title?: string | undefined
        readonly version?: string | undefined
        readonly description?: string | undefined
      }
    | undefined
  /** Categories and addresses of documentation, for `x-service-info`. */
  readonly serviceInfo?:
    | {
        readonly categories?: readonly string[] | undefined
        readonly docs?:
          | {
              readonly apiReference?: string | undefined
              readonly homepage?: string | undefined
              readonly llms?: string | undefined
            }
          | undefined
      }
    | undefined
}

/** The options with which a handler sells its route. */
interface Sale {
  readonly options: PayOptions<never>
  /** The seller of a handler that has its own, as with Next. */
  readonly seller?: () => Seller
}

const sales = new WeakMap<object, Sale>()

/** Records the options with which a handler sells its route, for the discovery document. Returns the handler. */
export function markSold<H extends object>(handler: H, sale: Sale): H {
  sales.set(handler, sale)
  return handler
}

const discoveryNames: Named<DiscoveryConfig> = { routes: true, info: true, serviceInfo: true }
const routeNames: Named<DiscoveredRoute> = {
  method: true,
  path: true,
  handler: true,
  summary: true,
  parameters: true,
  requestBody: true,
}

/** Offers are cached this long, because wallets may be added; a failure is cached for a few seconds. */
const keptMs = 300_000
const failureKeptMs = 5_000

/** The routes with their offers, or the response to a failure. They do not depend on the host that a caller names. */
type Sold = { readonly routes: readonly SoldRoute[] } | { readonly failure: OwnResponse }

interface Made {
  readonly sold: Promise<Sold>
  expiresAt: number
}

/** Returns the response to `GET /openapi.json` of a seller's routes. */
export type Discovery = (seller: Seller | undefined, origin: string) => Promise<OwnResponse>

/**
 * Checks the configuration of a discovery document. Returns the function that responds with the document. Throws a
 * `TypeError` for a route without a paid handler.
 */
export function openDiscovery(config: DiscoveryConfig, now: () => number = Date.now): Discovery {
  mustKnow(config, discoveryNames)
  must(Array.isArray(config.routes) && config.routes.length > 0, 'routes', config.routes, 'List the paid routes.')
  for (const route of config.routes) checkRoute(route)
  const made = new WeakMap<Seller, Made>()
  return async (attached, origin) => {
    const seller = attached ?? config.routes.map(({ handler }) => sales.get(handler)?.seller?.()).find(Boolean)
    if (seller === undefined) throw new Error('discovery needs walletMiddleware to run before it.')
    const base = seller.publicUrl ?? origin
    if (base.length > resourceLengthMax || !URL.canParse(base)) return problemResponse('malformed-request')
    const known = made.get(seller)
    const entry = known !== undefined && known.expiresAt > now() ? known : sell(config, seller, now)
    made.set(seller, entry)
    const sold = await entry.sold
    return 'failure' in sold ? sold.failure : documentOf(config, { seller, base, routes: sold.routes })
  }
}

function sell(config: DiscoveryConfig, seller: Seller, now: () => number): Made {
  const sold = soldBy(config, seller)
  const entry: Made = { sold, expiresAt: now() + keptMs }
  sold.then((result) => {
    if ('failure' in result) entry.expiresAt = now() + failureKeptMs
  })
  return entry
}

function checkRoute(route: DiscoveredRoute): void {
  mustOptions(route, 'routes')
  mustKnow(route, routeNames, 'routes')
  const { method, path, handler } = route
  must(
    typeof method === 'string' && /^[A-Za-z]+$/.test(method),
    'method',
    method,
    'Give an HTTP method, such as "GET".',
  )
  must(
    typeof path === 'string' && path.startsWith('/'),
    'path',
    path,
    'Give the path of the route, such as "/forecast".',
  )
  const isSold =
    (typeof handler === 'function' || typeof handler === 'object') && handler !== null && sales.has(handler)
  const remedy = 'Give the value of payMiddleware, payHook or withPayment that sells this route.'
  must(isSold, 'handler', handler, remedy)
}

async function soldBy({ routes }: DiscoveryConfig, seller: Seller): Promise<Sold> {
  try {
    const offers = offersOf(seller.publicUrl ?? anyBase)
    const sold: SoldRoute[] = []
    for (const route of routes)
      sold.push(await soldRoute(route, sales.get(route.handler)?.seller?.() ?? seller, offers))
    return { routes: sold }
  } catch (error) {
    return { failure: challengeFailed(seller, error) }
  }
}

interface Documented {
  readonly seller: Seller
  readonly base: string
  readonly routes: readonly SoldRoute[]
}

function documentOf({ info, serviceInfo }: DiscoveryConfig, { seller, base, routes }: Documented): OwnResponse {
  const title = info?.title ?? new URL(base).host
  const document = discoveryDocument(
    { info: { ...info, title, version: info?.version ?? '1.0.0' }, server: seller.publicUrl, serviceInfo },
    routes,
  )
  return { status: 200, headers: documentHeaders, body: JSON.stringify(document) }
}

const documentHeaders = {
  'Content-Type': 'application/json',
  'Cache-Control': 'public, max-age=300',
  'Access-Control-Allow-Origin': '*',
}

type OffersOf = (route: DiscoveredRoute, seller: Seller) => Promise<readonly PaymentOffer[]>

async function soldRoute(route: DiscoveredRoute, seller: Seller, offers: OffersOf): Promise<SoldRoute> {
  const { handler, ...described } = route
  const { price, description } = optionsOf(handler)
  const summary = route.summary ?? description
  return { ...described, summary, price: typeof price === 'string' ? price : null, offers: await offers(route, seller) }
}

function optionsOf(handler: object): PayOptions<never> {
  const sale = sales.get(handler)
  if (sale === undefined) throw new Error('this route has no paid handler')
  return sale.options
}

/** The price for which a challenge is fetched where the route's own depends on the request. Only its currency is shown. */
const nominalPrice = '1'

/** The address in challenges for a document, without `publicUrl`. Their offers are the same for each address. */
const anyBase = 'http://localhost'

/** Fetches one challenge from Purser for each different price and kind of offer, since its offers are the same for all routes. */
function offersOf(base: string): OffersOf {
  const known = new Map<Seller, Map<string, Promise<readonly PaymentOffer[]>>>()
  return ({ handler, method, path }, seller) => {
    const options = optionsOf(handler)
    const route = routeOf(seller.defaults, options)
    if (!route.protocols.includes('mpp')) return Promise.resolve([])
    const isFixed = typeof options.price === 'string'
    const price = typeof options.price === 'string' ? options.price : nominalPrice
    const resource = new URL(base + path).href
    const terms = { seller, route, price, resource, method: method.toUpperCase() }
    const request = challengeRequestOf({ ...terms, ip: undefined, digest: undefined, acceptPayment: undefined })
    // With Next, routes may have sellers of their own.
    const ofSeller = known.get(seller) ?? new Map<string, Promise<readonly PaymentOffer[]>>()
    known.set(seller, ofSeller)
    const key = JSON.stringify([isFixed, { ...request, resource: undefined }])
    const found = ofSeller.get(key) ?? fetchOffers(seller, { request, isFixed })
    ofSeller.set(key, found)
    return found
  }
}

async function fetchOffers(
  { purser }: Seller,
  { request, isFixed }: { readonly request: ReturnType<typeof challengeRequestOf>; readonly isFixed: boolean },
): Promise<readonly PaymentOffer[]> {
  const { mpp } = await purser.payments.challenge(request)
  return parseChallenges(mpp ?? '').map(({ intent, method, request: encoded, description }) => {
    const { amount, currency }: { readonly amount?: unknown; readonly currency?: unknown } = Object(
      decodeMppJson(encoded),
    )
    return {
      intent,
      method,
      amount: isFixed && typeof amount === 'string' ? amount : null,
      currency: typeof currency === 'string' ? currency : undefined,
      description,
    }
  })
}
