import type { OwnAnswer } from './answers.ts'

/** Which scripts of other origins may call the paid routes. */
export interface CorsOptions {
  /** `*`, or the origins themselves, such as `https://app.example.com`. */
  readonly origins: '*' | readonly string[]
  /** `GET, HEAD, POST, PUT, PATCH, DELETE` when left out. */
  readonly methods?: readonly string[] | undefined
  /** Request headers beside those of payments; what the preflight names when left out. */
  readonly headers?: readonly string[] | undefined
  /** How long a browser keeps the answer; 600 s when left out. */
  readonly maxAgeSeconds?: number | undefined
}

/** What lets a script of the caller's origin read an answer, whatever the answer is. Empty without CORS options. */
export interface ReadableBy {
  /** `Access-Control-Allow-Origin`; undefined where the origin is not allowed. */
  readonly allowOrigin: string | undefined
  /** The request headers on which that depends, for `Vary`. */
  readonly varies: readonly string[]
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
 * The answer to `OPTIONS` on a paid route. The handler never runs for it: a handler that is mounted for every method would
 * give away what it sells. Without CORS options it is empty, with the headers that earlier middleware has set.
 */
export function optionsAnswer(cors: CorsOptions | undefined, header: Header): OwnAnswer {
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

/** Who may read the answer to this request. A preflight depends on what it requests, too. */
export function readableBy(cors: CorsOptions | undefined, header: Header, isPreflight = false): ReadableBy {
  if (cors === undefined) return { allowOrigin: undefined, varies: [] }
  const requested = isPreflight && cors.headers === undefined ? ['Access-Control-Request-Headers'] : []
  if (cors.origins === '*') return { allowOrigin: '*', varies: requested }
  const origin = header('origin')
  const isAllowed = origin !== undefined && cors.origins.includes(origin)
  return { allowOrigin: isAllowed ? origin : undefined, varies: ['Origin', ...requested] }
}
