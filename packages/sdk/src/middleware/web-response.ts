import { readBytes } from '../pay/bounded.ts'
import type { Paid } from './admission.ts'
import { exposeHeaders, isTargetedCaching, privateCacheControl, type ReadableBy, readingHeaders } from './headers.ts'
import type { OwnResponse } from './responses.ts'
import { isSold } from './sold-status.ts'

/**
 * Returns the response to send: the handler's unchanged if it failed, the handler's with the receipt if it was paid
 * for, or one of the middleware. The handler's response is read completely first, so nothing is sent early. Rethrows
 * what the handler throws.
 */
export async function soldResponse(
  paid: Paid,
  handler: () => Response | Promise<Response>,
  left: AbortSignal,
): Promise<Response> {
  const { response, body } = await completeResponseOf(paid, handler)
  if (!isSold(response.status)) return response
  if (left.aborted && paid.abandon()) return new Response(null, { status: 499 })
  if (body === 'too-large') return ownResponse(paid.tooLarge(), readableBy(response.headers))
  const { status, statusText, headers } = response
  const own = { status, headers: recordOf(headers), body }
  const conclusion = await paid.conclude()
  if (conclusion.kind === 'withhold') {
    conclusion.keep?.(own)
    return ownResponse(conclusion.response, readableBy(headers))
  }
  const sold = new Response(body, { status, statusText, headers })
  for (const [name, value] of conclusion.headers) sold.headers.set(name, value)
  sold.headers.set('Cache-Control', privateCacheControl(headers.get('cache-control')))
  for (const name of [...headers.keys()].filter(isTargetedCaching)) sold.headers.delete(name)
  expose(sold.headers)
  if (left.aborted) conclusion.undelivered(own)
  else {
    conclusion.keep?.({ status, headers: recordOf(sold.headers), body })
    conclusion.delivered()
  }
  return sold
}

async function completeResponseOf(paid: Paid, handler: () => Response | Promise<Response>) {
  try {
    const response = await handler()
    if (isSold(response.status)) {
      const limits = { bytesMax: paid.bodyBytesMax, tinyChunksMax: Number.POSITIVE_INFINITY }
      return { response, body: response.body === null ? null : await readBytes(response.body, limits) }
    }
    paid.failed()
    return { response, body: null }
  } catch (error) {
    paid.failed()
    throw error
  }
}

/** A response of the middleware as a `Response`, with the headers in `before` that it does not set itself. */
export function ownResponse({ status, headers, body }: OwnResponse, before?: Headers): Response {
  const response = new Response(body, { status, ...(before !== undefined && { headers: before }) })
  for (const [name, value] of Object.entries(headers)) {
    response.headers.delete(name)
    for (const one of typeof value === 'string' ? [value] : value) response.headers.append(name, one)
  }
  expose(response.headers)
  return response
}

/** A copy of the response with the CORS headers. The original's headers may be immutable. */
export function readableResponse(response: Response, cors: ReadableBy): Response {
  const reading = readingHeaders(cors, (name) => response.headers.get(name))
  if (reading.length === 0) return response
  const { status, statusText, headers, body } = response
  const made = new Response(body, { status, statusText, headers })
  for (const [name, value] of reading) made.headers.set(name, value)
  return made
}

/** The CORS-related headers of the handler's response, which a replacing response keeps. */
function readableBy(headers: Headers): Headers {
  const kept = [...headers].filter(([name]) => name === 'vary' || name.startsWith('access-control-'))
  return new Headers(kept)
}

function expose(headers: Headers): void {
  headers.set('Access-Control-Expose-Headers', exposeHeaders(headers.get('access-control-expose-headers')))
}

/** `Set-Cookie` is the only header whose values must not be comma-joined. */
function recordOf(headers: Headers): Record<string, string | readonly string[]> {
  const cookies = headers.getSetCookie()
  return { ...Object.fromEntries(headers), ...(cookies.length > 0 && { 'set-cookie': cookies }) }
}
