import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Paid } from './admission.ts'
import { bufferResponse, type HeaderValues, headerOf } from './buffer-response.ts'
import { conditions } from './conditions.ts'
import { exposeHeaders, isTargetedCaching, privateCacheControl, type ReadableBy } from './headers.ts'
import { isSold } from './sold-status.ts'

/**
 * Buffers what the handler writes to a Node response and sends it after payment. Removes the conditions of the request. Never rejects, because there
 * is no caller to catch it. `before` is as in `bufferResponse`.
 */
export async function sellResponse(
  paid: Paid & { readonly cors: ReadableBy },
  res: ServerResponse,
  before?: HeaderValues,
): Promise<void> {
  for (const name of conditions) delete res.req.headers[name]
  const response = bufferResponse(res, { bodyBytesMax: paid.bodyBytesMax, cors: paid.cors, before })
  if ((await Promise.race([response.finished, leftOf(res)])) === 'left') {
    if (paid.abandon()) return
    if (!(await endsInTime(response.finished))) return paid.unended()
  }
  if ((await response.finished) === 'too-large') return response.replace(paid.tooLarge())
  if (!isSold(response.status())) {
    paid.failed()
    return response.release()
  }
  const own = { status: response.status(), headers: headersOf(res), body: response.body() }
  const conclusion = await paid.conclude()
  if (conclusion.kind === 'withhold') {
    conclusion.keep?.(own)
    return response.replace(conclusion.response)
  }
  if (res.destroyed) return conclusion.undelivered(own)
  for (const [name, value] of conclusion.headers) res.setHeader(name, value)
  res.setHeader('Cache-Control', privateCacheControl(headerOf(res, 'cache-control')))
  for (const name of res.getHeaderNames().filter(isTargetedCaching)) res.removeHeader(name)
  res.setHeader('Access-Control-Expose-Headers', exposeHeaders(headerOf(res, 'access-control-expose-headers')))
  conclusion.keep?.({ status: response.status(), headers: headersOf(res), body: response.body() })
  response.release()
  conclusion.delivered()
}

/**
 * Most milliseconds that an unsafe handler may take to end its response once the connection is closed. A stream that
 * broke off with the connection, and an error page that could not be sent, never end it.
 */
const unendedMsMax = 600_000

/** Whether a handler whose connection is closed ends its response in time. */
function endsInTime(finished: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), unendedMsMax)
    timer.unref()
    finished.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

/** Resolves when the client closes the connection. */
function leftOf(res: ServerResponse): Promise<'left'> {
  return new Promise((resolve) => {
    if (res.destroyed) resolve('left')
    res.once('close', () => resolve('left'))
  })
}

function headersOf(res: ServerResponse): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = {}
  for (const [name, value] of Object.entries(res.getHeaders())) {
    if (value !== undefined) headers[name] = typeof value === 'number' ? String(value) : value
  }
  return headers
}

/**
 * All values of a request header, joined. Node drops every `Authorization` but the first, and two payments must not
 * look like one.
 */
export function headerOfRequest(req: IncomingMessage, name: string): string | undefined {
  const value = req.headers[name]
  if (value === undefined || name !== 'authorization') return Array.isArray(value) ? value.join(', ') : value
  return req.headersDistinct?.[name]?.join(', ') ?? value.toString()
}
