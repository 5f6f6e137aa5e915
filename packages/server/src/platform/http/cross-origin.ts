import type { Operation } from '../operation.ts'
import type { RawResponse } from './call.ts'

/**
 * Headers of responses that pages of any origin may read: those that need a token, a link or a public address. None depends on a cookie, so
 * no credentials are allowed, and a browser sends none.
 */
const crossOriginHeaders = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': '*',
} as const

interface Headed {
  hasHeader(name: string): boolean
  headers(values: Record<string, string>): unknown
}

/** Lets pages of any origin read the response. Set first, so that they can read errors too. */
export async function allowCrossOrigin(_request: unknown, reply: Headed): Promise<void> {
  if (!reply.hasHeader('access-control-allow-origin')) reply.headers(crossOriginHeaders)
}

const readable = [
  'Content-Range',
  'ETag',
  'Idempotency-Replayed',
  'Link',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Request-Id',
  'X-Service-Version',
]

/** CORS headers for a dashboard on another host of the same site: it may read responses and send its cookie. */
export function dashboardHeaders(origin: string): Readonly<Record<string, string>> {
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': readable.join(', '),
    vary: 'Origin',
  }
}

/** `Vary` of a response with the dashboard's headers: the existing names, and `Origin`. */
export function varyOf(before: unknown, { vary }: Readonly<Record<string, string>>): { readonly vary?: string } {
  return typeof before === 'string' && vary !== undefined ? { vary: `${vary}, ${before}` } : {}
}

/** The longest that any browser caches the response to a preflight. */
const preflightSeconds = 86_400

/** The response to a preflight of the dashboard; with credentials no wildcard counts (Fetch, section 3.2.5). */
export const dashboardPreflight: RawResponse = {
  status: 204,
  headers: {
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers':
      'Content-Type, Idempotency-Key, Last-Event-ID, Range, X-Service-Environment, X-Service-Organisation',
    'access-control-max-age': '7200',
  },
  body: '',
}

/** The response to a preflight. `Authorization` is listed, because the wildcard does not include it (Fetch, section 3.3.3). */
export function preflightResponse(methods: readonly string[]): RawResponse {
  return {
    status: 204,
    headers: {
      'access-control-allow-methods': methods.join(', '),
      'access-control-allow-headers': '*, Authorization',
      'access-control-max-age': String(preflightSeconds),
    },
    body: '',
  }
}

/** The paths that pages of any origin may call, with their methods: public pages, and operations that accept guests. */
export function crossOriginMethods({
  pages,
  operations,
}: {
  readonly pages: readonly { readonly path: string; readonly crossOrigin?: true }[]
  readonly operations: readonly Operation[]
}): ReadonlyMap<string, readonly string[]> {
  const methods = new Map<string, string[]>(
    pages.filter(({ crossOrigin }) => crossOrigin).map(({ path }) => [path, ['GET']]),
  )
  for (const { guests, path, method } of operations)
    if (guests !== undefined) methods.set(path, [...(methods.get(path) ?? []), method])
  return methods
}
