/**
 * The headers that request a response only if it has or has not changed (RFC 9110, section 13.1). A handler does not receive them with a payment: a
 * 304 is not charged, and its `ETag` is a digest of the goods.
 */
export const conditions = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'] as const

/** Returns the request without conditions. It is the same object, unless its headers are immutable, as in Cloudflare Workers. */
export function withoutConditions(request: Request): Request {
  try {
    for (const name of conditions) request.headers.delete(name)
    return request
  } catch {
    const headers = new Headers(request.headers)
    for (const name of conditions) headers.delete(name)
    return new Request(request, { headers })
  }
}
