import { readBytes } from './bounded.ts'
import { UnreplayableBodyError } from './errors.ts'

/** The most of a body that came as a stream (or inside a `Request`) that is kept for a second sending. */
export const streamBytesMax = 4 * 1024 * 1024

/** A request that can be sent any number of times, each time with the same bytes. */
export interface Call {
  readonly url: URL
  readonly headers: Headers
  readonly method: string
  /** Of the caller: ends this call. */
  readonly signal: AbortSignal | undefined
  readonly send: (fetch: typeof globalThis.fetch, changes?: RequestInit) => Promise<Response>
}

/**
 * Takes a request apart so that it can be sent again byte for byte (a form would otherwise get new boundaries each time, and no longer
 * have the digest that a challenge is bound to). Throws `UnreplayableBodyError` for a longer stream; nothing was sent by then.
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

/** A Blob does not change and may be a file larger than memory, so it is kept as it is; all else becomes bytes. */
async function bodyOf(request: Request, body: BodyInit | null | undefined): Promise<BodyInit | undefined> {
  if (request.body === null) return undefined
  if (body instanceof Blob) return body
  const isStream = body == null || body instanceof ReadableStream || isAsyncIterable(body)
  const bytes = await readBytes(request.body, isStream ? streamBytesMax : Number.POSITIVE_INFINITY)
  if (bytes === 'too-large') throw new UnreplayableBodyError(streamBytesMax)
  return bytes
}

function isAsyncIterable(body: object | string): boolean {
  return typeof body === 'object' && Symbol.asyncIterator in body
}

/** Node asks for this beside a stream; no other engine minds it. */
function halfDuplex(init: RequestInit): object {
  return init.body == null ? {} : { duplex: 'half' }
}

/** What a `Request` says beside what is read from it anyway. */
function inherited(input: RequestInfo | URL): RequestInit {
  if (!(input instanceof Request)) return {}
  const { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy } = input
  return { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy }
}

const credentialHeaders = ['payment-signature', 'x-payment', 'payment-authorization']

/** Whether the caller pays by itself: a 402 is for its own payment then, and is not paid a second time from here. */
export function carriesCredential(headers: Headers): boolean {
  const authorization = headers.get('authorization') ?? ''
  return /(?:^|,)\s*payment\s/i.test(authorization) || credentialHeaders.some((name) => headers.has(name))
}
