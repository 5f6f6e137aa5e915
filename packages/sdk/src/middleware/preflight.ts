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

type Header = (name: string) => string | undefined

const paymentHeaders = [
  'PAYMENT-SIGNATURE',
  'X-PAYMENT',
  'Authorization',
  'Payment-Authorization',
  'X-Service-Session-Id',
]
const methodsUsual = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * The answer to `OPTIONS` on a paid route. The handler never runs for it: a handler that is mounted for every method would
 * give away what it sells. Without CORS options it is empty, with the headers that earlier middleware has set.
 */
export function optionsAnswer(cors: CorsOptions | undefined, header: Header): OwnAnswer {
  const headers = corsHeaders(cors, header)
  if (cors === undefined || headers['Access-Control-Allow-Origin'] === undefined)
    return { status: 204, headers, body: null }
  const named = cors.headers ?? [header('access-control-request-headers') ?? '']
  return {
    status: 204,
    headers: {
      ...headers,
      'Access-Control-Allow-Methods': (cors.methods ?? methodsUsual).join(', '),
      'Access-Control-Allow-Headers': [...paymentHeaders, ...named].filter((name) => name !== '').join(', '),
      'Access-Control-Max-Age': String(cors.maxAgeSeconds ?? 600),
    },
    body: null,
  }
}

/** What lets a script of the caller's origin read an answer; nothing where the origin is not allowed. */
export function corsHeaders(cors: CorsOptions | undefined, header: Header): Record<string, string> {
  if (cors === undefined) return {}
  if (cors.origins === '*') return { 'Access-Control-Allow-Origin': '*' }
  const origin = header('origin')
  const allowed = origin !== undefined && cors.origins.includes(origin)
  return { Vary: 'Origin', ...(allowed && { 'Access-Control-Allow-Origin': origin }) }
}
