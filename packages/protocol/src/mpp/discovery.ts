type Json = Readonly<Record<string, unknown>>

/**
 * An offer of payment. `amount` is in the smallest unit of the currency, or null if it depends on the request. `currency` of a chain is
 * the address of its token. Source: draft-payment-discovery-00, "Payment Offer Object".
 */
export interface PaymentOffer {
  readonly intent: string
  readonly method: string
  readonly amount: string | null
  readonly currency?: string | undefined
  readonly description?: string | undefined
}

/** A paid route, as a discovery document describes it. */
export interface SoldRoute {
  readonly method: string
  /** Path, with a parameter as `{name}`, `:name` or `[name]`. */
  readonly path: string
  readonly summary?: string | undefined
  /** Parameters as OpenAPI has them. Those of the path may be left out. */
  readonly parameters?: readonly Json[] | undefined
  /** The body, as OpenAPI has it. */
  readonly requestBody?: Json | undefined
  /** The offers of MPP; none if only x402 is accepted. */
  readonly offers: readonly PaymentOffer[]
  /** Decimal US dollars; null if the price depends on the request. */
  readonly price: string | null
}

/** A discovery document before its routes. */
export interface DiscoveryHead {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string | undefined }
  /** The origin of the routes, with a path before all of them if there is one. */
  readonly server?: string | undefined
  /** Categories and documentation of the service, for `x-service-info`. */
  readonly serviceInfo?: Json | undefined
}

/** An OpenAPI document of paid routes. */
export interface DiscoveryDocument extends Json {
  readonly openapi: '3.1.0'
  readonly info: DiscoveryHead['info']
  /** Operations by path and method. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>
}

/**
 * Returns the OpenAPI 3.1 document that describes paid routes before a request: each operation has a 402 and `x-payment-info`. A route with
 * offers of MPP has these. One that only x402 pays has the price and the protocol in the form that x402 indexes read, since an offer is
 * an alternative among MPP challenges. The 402 of the route decides. Source: draft-payment-discovery-00; mppx 0.11 `discovery`.
 *
 * @example
 * const route = { method: 'GET', path: '/users/:id', price: '0.01', offers: [{ intent: 'charge', method: 'tempo', amount: '10000' }] }
 * Object.keys(discoveryDocument({ info: { title: 'Users', version: '1' } }, [route]).paths) // ['/users/{id}']
 */
export function discoveryDocument(
  { info, server, serviceInfo }: DiscoveryHead,
  routes: readonly SoldRoute[],
): DiscoveryDocument {
  const paths: Record<string, Record<string, Json>> = {}
  for (const route of routes) {
    const { path, parameters } = templateOf(route.path)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, parameters) }
  }
  return {
    openapi: '3.1.0',
    info,
    ...(server === undefined ? {} : { servers: [{ url: server }] }),
    ...(serviceInfo === undefined ? {} : { 'x-service-info': serviceInfo }),
    paths,
  }
}

function operationOf({ summary, requestBody, price, offers, ...route }: SoldRoute, ofPath: readonly Json[]): Json {
  const given = route.parameters ?? []
  const isGiven = ({ name }: Json): boolean => given.some((one) => one.in === 'path' && one.name === name)
  const parameters = [...ofPath.filter((one) => !isGiven(one)), ...given]
  return {
    ...(summary === undefined ? {} : { summary }),
    'x-payment-info': offers.length > 0 ? { offers: offers.map(present) } : pricedOf(price),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: { 200: { description: 'The paid response.' }, 402: { description: 'Payment Required' } },
  }
}

/** The price of a route that only x402 pays, as indexes of x402 services read it. */
function pricedOf(price: string | null): Json {
  const priced =
    price === null ? { mode: 'dynamic', currency: 'USD' } : { mode: 'fixed', currency: 'USD', amount: price }
  return { price: priced, protocols: [{ x402: {} }] }
}

function present(offer: PaymentOffer): Json {
  return Object.fromEntries(Object.entries(offer).filter(([, value]) => value !== undefined))
}

/** The path as OpenAPI writes it, and its parameters. Two of one name get different ones. */
function templateOf(written: string): { readonly path: string; readonly parameters: readonly Json[] } {
  const names: string[] = []
  const path = written.replaceAll(
    /:(\w+)\??|\[(?:\.\.\.)?(\w+)\]|\{\*?(\w+)\}/g,
    (_, ...found: (string | undefined)[]) => {
      const name = found.slice(0, 3).find((one) => one !== undefined) ?? 'id'
      const free = names.includes(name) ? `${name}${names.length + 1}` : name
      names.push(free)
      return `{${free}}`
    },
  )
  const parameters = names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
  return { path, parameters }
}
