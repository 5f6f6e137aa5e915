import { isRecord } from '../problem.ts'

/** The CORS rules for a response. Empty without CORS options. */
export interface ReadableBy {
  /** `Access-Control-Allow-Origin`. Undefined if the origin is not allowed. */
  readonly allowOrigin: string | undefined
  /** The request headers that the rule depends on, for `Vary`. */
  readonly varies: readonly string[]
}

/** Headers that browser scripts can read only if the response exposes them. */
const exposed = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'WWW-Authenticate',
  'Payment-Receipt',
  'Payment-Replayed',
  'X-Service-Session-Id',
  'Retry-After',
]
const exposedAlone = exposed.join(', ')

/** Standard base64 of UTF-8 JSON, the format of x402 headers (x402 HTTP transport, versions 1 and 2). */
export function encodeHeader(value: unknown): string {
  let binary = ''
  for (const byte of new TextEncoder().encode(JSON.stringify(value))) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** The object in a base64 JSON header, or undefined if the header is malformed. The input is untrusted. */
export function decodeHeader(value: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0))
    const decoded: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return isRecord(decoded) ? decoded : undefined
  } catch {
    return undefined
  }
}

/**
 * `Cache-Control` for a paid response: the handler's directives, but `private`, so that no shared cache serves it to
 * others.
 */
export function privateCacheControl(existing: string | null | undefined): string {
  const directives = (existing ?? '').split(',').map((directive) => directive.trim())
  const kept = directives.filter((directive) => directive !== '' && !/^(public|private|s-maxage\b.*)$/i.test(directive))
  return [...kept, 'private'].join(', ')
}

/**
 * Whether a header permits caches of one kind to keep a response, whatever `Cache-Control` says: targeted fields (RFC 9213), and those of CDNs and of
 * nginx. A paid response has none.
 */
export function isTargetedCaching(name: string): boolean {
  return /^(?:(?:.+-)?cdn-cache-control|surrogate-control|edge-control|x-accel-expires)$/i.test(name)
}

/** `Access-Control-Expose-Headers` with the payment headers added. */
export function exposeHeaders(existing: string | null | undefined): string {
  if (existing === undefined || existing === null || existing === '') return exposedAlone
  const present = existing.split(',').map((name) => name.trim())
  const lower = new Set(present.map((name) => name.toLowerCase()))
  const added = exposed.filter((name) => !lower.has(name.toLowerCase()))
  return [...present.filter((name) => name !== ''), ...added].join(', ')
}

/** `Vary` with these names added. */
function varyBy(existing: string | null | undefined, names: readonly string[]): string {
  const present = (existing ?? '').split(',').map((name) => name.trim())
  const lower = new Set(present.map((name) => name.toLowerCase()))
  if (lower.has('*')) return '*'
  const added = names.filter((name) => !lower.has(name.toLowerCase()))
  return [...present.filter((name) => name !== ''), ...added].join(', ')
}

/** The CORS headers to add to a response with these headers. Empty without CORS options. */
export function readingHeaders(
  { allowOrigin, varies }: ReadableBy,
  existing: (name: string) => string | null | undefined,
): readonly (readonly [name: string, value: string])[] {
  const vary = varies.length === 0 ? [] : [['Vary', varyBy(existing('vary'), varies)] as const]
  if (allowOrigin === undefined) return vary
  const exposed = exposeHeaders(existing('access-control-expose-headers'))
  return [...vary, ['Access-Control-Allow-Origin', allowOrigin], ['Access-Control-Expose-Headers', exposed]]
}
