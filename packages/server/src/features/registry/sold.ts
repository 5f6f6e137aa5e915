import {
  type DiscoveryHead,
  discoveryDocument,
  isTempo,
  networkByName,
  type PaymentOffer,
  parseAmount,
  type SoldRoute,
} from '@purser/protocol'
import { z } from 'zod'
import { failPlatform } from '../../platform/errors.ts'
import type { PublicPage } from '../../platform/http/server.ts'
import { id, type PaymentLogId } from '../../platform/ids.ts'
import type { Deps, PaidWith } from './ports.ts'
import { listSoldRoutes, type RouteRow } from './store.ts'

const Place = z.object({
  environment: z.enum(['test', 'live']),
  organisationId: id('org'),
  // As the registry writes it: lower case, punycode, with a port or without.
  host: z
    .string()
    .max(260)
    .regex(/^[\w.:[\]-]+$/),
})

const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'public, max-age=300' }

/**
 * The OpenAPI document of the routes that an organisation has made public at one host, with `x-payment-info` as the MPP discovery draft
 * defines it. It needs no key, and has at most 100 routes and a mebibyte. A host without public routes is unknown, and so is one of a suspended
 * organisation.
 */
export function soldPages(deps: Pick<Deps, 'db' | 'paymentsOfLogs'>): readonly PublicPage[] {
  const respond: PublicPage['respond'] = async (params) => {
    const place = Place.safeParse(params).data
    if (place === undefined) throw failPlatform('not-found')
    const { host, ...tenant } = place
    const routes = await listSoldRoutes(deps.db, tenant, host)
    if (routes.length === 0) throw failPlatform('not-found')
    const logs = routes.flatMap(({ paymentLogId }) => (paymentLogId === null ? [] : [paymentLogId]))
    const paid = await deps.paymentsOfLogs(deps.db, tenant, logs)
    const head = { info: { title: host, version: '1.0.0', description: about }, server: `https://${host}` }
    const document = discoveryDocument(head, soldRoutes(head, routes, paid))
    return { status: 200, headers, body: JSON.stringify(document) }
  }
  return [{ path: '/registry/:environment/:organisationId/:host/openapi.json', crossOrigin: true, cost, respond }]
}

/** It reads up to 1.6 MB of parameters, most of whose bytes are examples that the document leaves out. */
const cost = 8

const about =
  'Paid routes as the seller reported them. Nobody checked that the publisher runs this host: the 402 of a route says whom to pay, and how much.'

/** Most bytes of the routes of one document. */
const documentBytesMax = 1_048_576

/** Returns the routes, in their order, that fit into a document. */
function soldRoutes(
  head: DiscoveryHead,
  routes: readonly RouteRow[],
  paid: ReadonlyMap<PaymentLogId, PaidWith>,
): readonly SoldRoute[] {
  const shown: SoldRoute[] = []
  let bytes = 0
  for (const route of routes) {
    const sold = soldRoute(route, paid)
    bytes += Buffer.byteLength(JSON.stringify(discoveryDocument(head, [sold])))
    if (bytes > documentBytesMax) break
    shown.push(sold)
  }
  return shown
}

function soldRoute(route: RouteRow, paid: ReadonlyMap<PaymentLogId, PaidWith>): SoldRoute {
  const { method, routePattern: path, amount: price } = route
  const payment = route.paymentLogId === null ? undefined : paid.get(route.paymentLogId)
  return { method, path, price, offers: offersOf(route, payment), ...inputOf(route) }
}

/** The offer of MPP in the currency of the last payment that was reported; none if no MPP payment of the route is known. */
function offersOf({ amount, protocols }: RouteRow, payment: PaidWith | undefined): readonly PaymentOffer[] {
  const network = payment && networkByName(payment.network)
  if (payment === undefined || network === undefined || !protocols.includes('mpp')) return []
  const raw = parseAmount(amount, payment.decimals)
  const method = isTempo(network) ? 'tempo' : 'evm'
  const description = `${amount} USD on ${network.name}`
  return [
    {
      intent: 'charge',
      method,
      amount: typeof raw === 'bigint' ? String(raw) : null,
      currency: payment.asset,
      description,
    },
  ]
}

const types: Readonly<Record<string, string>> = {
  string: 'string',
  number: 'number',
  boolean: 'boolean',
  integer: 'integer',
}

/** Header fields that OpenAPI describes in other places. */
const ofOpenApi = /^(?:accept|content-type|authorization)$/i

/** The parameters and the body that were observed: names and types, without examples. */
function inputOf({ headers: fields, queryParams, bodyParams, bodyContentType }: RouteRow) {
  const schemaOf = (type: string) => (types[type] === undefined ? {} : { type: types[type] })
  const inPlace = (place: string) => (param: RouteRow['headers'][number]) => ({
    name: param.name,
    in: place,
    required: param.required,
    schema: schemaOf(param.type),
  })
  const sent = fields.filter(({ name }) => !ofOpenApi.test(name))
  const parameters = [...queryParams.map(inPlace('query')), ...sent.map(inPlace('header'))]
  if (bodyContentType === null && bodyParams.length === 0) return { parameters }
  const schema = {
    type: 'object',
    properties: Object.fromEntries(bodyParams.map(({ name, type }) => [name, schemaOf(type)])),
    required: bodyParams.filter(({ required }) => required).map(({ name }) => name),
  }
  return { parameters, requestBody: { content: { [bodyContentType ?? 'application/json']: { schema } } } }
}
