/**
 * The headers that request a response only if it has or has not changed (RFC 9110, section 13.1). A handler does not receive them with a payment: a
 * 304 is not charged, and its `ETag` is a digest of the goods.
 */
export const conditions = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'] as const

/** The class of a request, such as `Request` or that of Next. */
export type RequestClass<R> = new (...of: ConstructorParameters<typeof Request>) => R

/**
 * Returns the request without conditions. It is the same object, unless it has one and its headers are immutable, as in
 * Cloudflare Workers. A new request of a body that was read has a body that was read.
 */
export function withoutConditions<R extends Request>(request: R, Kind: RequestClass<R>): R {
  const present = conditions.filter((name) => request.headers.has(name))
  try {
    for (const name of present) request.headers.delete(name)
    return request
  } catch {
    const headers = new Headers(request.headers)
    for (const name of present) headers.delete(name)
    return withHeaders(request, headers, Kind)
  }
}

function withHeaders<R extends Request>(request: R, headers: Headers, Kind: RequestClass<R>): R {
  const { url, method, signal, bodyUsed, body } = request
  if (!bodyUsed && body?.locked !== true) return new Kind(request, { headers })
  // `cf` is what Cloudflare Workers know of the client.
  const made = new Kind(url, { method, headers, signal, body: '', ...('cf' in request && { cf: request.cf }) })
  void made.text()
  return made
}
