import type { ReadableBy } from './headers.ts'
import type { OwnResponse } from './responses.ts'

/** The origins whose scripts may call the paid routes. */
export interface CorsOptions {
  /** `*`, or a list of origins such as `https://app.example.com`. */
  readonly origins: '*' | readonly string[]
  /** Default: `GET, HEAD, POST, PUT, PATCH, DELETE`. */
  readonly methods?: readonly string[] | undefined
  /** Allowed request headers in addition to payment headers. Default: those that the preflight requests. */
  readonly headers?: readonly string[] | undefined
  /** Seconds for which browsers cache the preflight. Default: 600. */
  readonly maxAgeSeconds?: number | undefined
}

type Header = (name: string) => string | undefined

const paymentHeaders = [
  'PAYMENT-SIGNATURE',
  'X-PAYMENT',
  'Authorization',
  'Payment-Authorization',
  'Accept-Payment',
  'X-Service-Session-Id',
  'X-Service-Redemption',
]
const methodsUsual = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * The response to `OPTIONS` on a paid route. The handler never runs for it, because a handler mounted for all methods
 * would then be free. Without CORS options it is empty, with the headers that earlier middleware has set.
 */
export function optionsResponse(cors: CorsOptions | undefined, header: Header): OwnResponse {
  if (cors === undefined || readableBy(cors, header).allowOrigin === undefined)
    return { status: 204, headers: {}, body: null }
  const named = cors.headers ?? [header('access-control-request-headers') ?? '']
  return {
    status: 204,
    headers: {
      'Access-Control-Allow-Methods': (cors.methods ?? methodsUsual).join(', '),
      'Access-Control-Allow-Headers': [...paymentHeaders, ...named].filter((name) => name !== '').join(', '),
      'Access-Control-Max-Age': String(cors.maxAgeSeconds ?? 600),
    },
    body: null,
  }
}

/** The CORS rules for this request. For a preflight they also depend on the requested method and headers. */
export function readableBy(cors: CorsOptions | undefined, header: Header, method?: string): ReadableBy {
  if (cors === undefined) return { allowOrigin: undefined, varies: [] }
  const requested = method === 'OPTIONS' && cors.headers === undefined ? ['Access-Control-Request-Headers'] : []
  if (cors.origins === '*') return { allowOrigin: '*', varies: requested }
  const origin = header('origin')
  const isAllowed = origin !== undefined && cors.origins.includes(origin)
  return { allowOrigin: isAllowed ? origin : undefined, varies: ['Origin', ...requested] }
}
