import { readBytes } from './bounded.ts'
import { UnreplayableBodyError } from './errors.ts'

/** The maximum number of bytes of a stream body (or of a `Request` body) that are buffered for a second request. */
export const streamBytesMax = 4 * 1024 * 1024

/** A request that can be sent repeatedly with the same bytes. */
export interface Call {
  readonly url: URL
  readonly headers: Headers
  readonly method: string
  /** The caller's signal, which ends this call. */
  readonly signal: AbortSignal | undefined
  readonly send: (fetch: typeof globalThis.fetch, changes?: RequestInit) => Promise<Response>
}

/**
 * Prepares a request so that it can be sent again byte for byte. A form would otherwise get new boundaries each time,
 * and its digest would no longer match the challenge. Throws `UnreplayableBodyError` for a stream that is too long,
 * before anything is sent.
 */
export async function callOf(input: RequestInfo | URL, init: RequestInit = {}): Promise<Call> {
  const request = new Request(input, { ...init, ...halfDuplex(init) })
  const body = await bodyOf(request, init.body)
  const { method, headers } = request
  const base: RequestInit = { ...inherited(input), ...init, method, headers, body: body ?? null }
  const signal = init.signal ?? (input instanceof Request ? input.signal : undefined)
  return {
    url: new URL(request.url),
    headers,
    method,
    signal,
    send: (fetch, changes = {}) => fetch(request.url, { ...base, signal: signal ?? null, ...changes }),
  }
}

/** A Blob is immutable and may be larger than memory, so it is kept. Everything else becomes bytes. */
async function bodyOf(request: Request, body: BodyInit | null | undefined): Promise<BodyInit | undefined> {
  if (request.body === null) return undefined
  if (body instanceof Blob) return body
  const isStream = body == null || body instanceof ReadableStream || isAsyncIterable(body)
  const bytesMax = isStream ? streamBytesMax : Number.POSITIVE_INFINITY
  const bytes = await readBytes(request.body, { bytesMax, tinyChunksMax: Number.POSITIVE_INFINITY })
  if (bytes === 'too-large') throw new UnreplayableBodyError(streamBytesMax)
  return bytes
}

function isAsyncIterable(body: object | string): boolean {
  return typeof body === 'object' && Symbol.asyncIterator in body
}

/** Node requires this with a stream body. Other engines ignore it. */
function halfDuplex(init: RequestInit): object {
  return init.body == null ? {} : { duplex: 'half' }
}

/** The remaining options of a `Request`. */
function inherited(input: RequestInfo | URL): RequestInit {
  if (!(input instanceof Request)) return {}
  const { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy } = input
  return { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy }
}
