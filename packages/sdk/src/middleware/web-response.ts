import type { OwnAnswer } from './answers.ts'
import type { Paid } from './core.ts'
import { exposeHeaders, privateCacheControl, readingHeaders } from './headers.ts'
import type { ReadableBy } from './preflight.ts'
import { readBounded } from './read-bounded.ts'
import { isSold } from './sold-status.ts'

/**
 * What leaves in the place of what the handler answers: its answer as it is when the handler failed, with the receipt
 * when it was paid for, or one of our own. The answer is read to its end first, so nothing of it leaves early. Throws
 * what the handler throws.
 */
export async function soldResponse(
  paid: Paid,
  handler: () => Response | Promise<Response>,
  left: AbortSignal,
): Promise<Response> {
  const { response, body } = await held(paid, handler)
  if (!isSold(response.status)) return response
  if (left.aborted && paid.abandon()) return new Response(null, { status: 499 })
  if (body === 'too-large') return ownResponse(paid.tooLarge(), readableBy(response.headers))
  const { status, statusText, headers } = response
  const answer = { status, headers: recordOf(headers), body }
  const conclusion = await paid.conclude()
  if (conclusion.kind === 'withhold') {
    conclusion.keep?.(answer)
    return ownResponse(conclusion.answer, readableBy(headers))
  }
  const sold = new Response(body, { status, statusText, headers })
  for (const [name, value] of conclusion.headers) sold.headers.set(name, value)
  sold.headers.set('Cache-Control', privateCacheControl(headers.get('cache-control')))
  expose(sold.headers)
  if (left.aborted) conclusion.undelivered(answer)
  else {
    conclusion.keep?.({ status, headers: recordOf(sold.headers), body })
    conclusion.delivered()
  }
  return sold
}

async function held(paid: Paid, handler: () => Response | Promise<Response>) {
  try {
    const response = await handler()
    if (isSold(response.status)) return { response, body: await readBounded(response, paid.bodyBytesMax) }
    paid.failed()
    return { response, body: null }
  } catch (error) {
    paid.failed()
    throw error
  }
}

/** An answer of our own as a `Response`, with the headers in `before` where it has none of that name. */
export function ownResponse({ status, headers, body }: OwnAnswer, before?: Headers): Response {
  const response = new Response(body, { status, ...(before !== undefined && { headers: before }) })
  for (const [name, value] of Object.entries(headers)) {
    response.headers.delete(name)
    for (const one of typeof value === 'string' ? [value] : value) response.headers.append(name, one)
  }
  expose(response.headers)
  return response
}

/** The same response, readable by scripts of allowed origins. Its own headers may be immutable, so it is made anew. */
export function readableResponse(response: Response, cors: ReadableBy): Response {
  const reading = readingHeaders(cors, (name) => response.headers.get(name))
  if (reading.length === 0) return response
  const { status, statusText, headers, body } = response
  const made = new Response(body, { status, statusText, headers })
  for (const [name, value] of reading) made.headers.set(name, value)
  return made
}

/** Of a handler's headers, those by which a browser may read the answer that takes its place. */
function readableBy(headers: Headers): Headers {
  const kept = [...headers].filter(([name]) => name === 'vary' || name.startsWith('access-control-'))
  return new Headers(kept)
}

function expose(headers: Headers): void {
  headers.set('Access-Control-Expose-Headers', exposeHeaders(headers.get('access-control-expose-headers')))
}

/** Cookies alone must not be joined with commas. */
function recordOf(headers: Headers): Record<string, string | readonly string[]> {
  const cookies = headers.getSetCookie()
  return { ...Object.fromEntries(headers), ...(cookies.length > 0 && { 'set-cookie': cookies }) }
}
