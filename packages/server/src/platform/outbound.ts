import { collectBytes, countChunks } from '@purser/protocol'
import type { Dispatcher } from 'undici'
import { instantOf } from './clock.ts'
import { createFairSemaphore } from './fair-semaphore.ts'
import { parseRedirect } from './parse-url.ts'
import { inClientSpan } from './tracing/spans.ts'
import { Pool, requestWith } from './undici.ts'

/** An outbound request got no response. Its message contains no address: addresses may contain keys. */
export class OutboundError extends Error {
  /** `no-turn`: a large response, while others were read. */
  readonly kind: 'unreachable' | 'timeout' | 'too-large' | 'no-turn' | 'status' | 'not-json'

  constructor(kind: OutboundError['kind'], cause?: unknown) {
    super(`the other side gave no usable response: ${kind}`, { cause })
    this.name = 'OutboundError'
    this.kind = kind
  }
}

export interface PostLimits {
  readonly timeoutMs: number
  readonly bytesMax: number
}

/** Reads a response while it arrives, without its whole text. */
export interface BodyReader {
  /** Throws an `OutboundError` when the response is too large or is no JSON. */
  write(chunk: Uint8Array): void
  /** The whole response as a value. */
  end(): unknown
}

/** The limits and the reader of a response of more than `bytesMax`. Its reader gets all of it. */
interface LargeLimits {
  readonly bytesMax: number
  /** Limit of the whole request. `timeoutMs` is then the limit between two chunks. */
  readonly timeoutMs: number
  readonly createReader: () => BodyReader
}

export interface JsonLimits extends PostLimits {
  /** A response of more than `bytesMax` is an error if omitted. */
  readonly large?: LargeLimits
}

/** One request as it is sent; redirects are not followed. */
export interface OutboundRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** The response, whatever its status. `json` is undefined if the body is not JSON. */
interface OutboundResponse {
  readonly status: number
  readonly json: unknown
}

interface DownloadLimits {
  /** Limit of the whole request. */
  readonly timeoutMs: number
  /** Limit between two chunks. */
  readonly idleMs: number
  readonly bytesMax: number
}

interface Download {
  /** The time of the document's last change, if its server reports it. */
  readonly lastModified: Date | undefined
  readonly body: AsyncIterable<Uint8Array>
}

/** The only way to send requests to hosts that the operator configured (nodes, partners). Connections are kept and shared per origin. */
export interface Outbound {
  postJson(url: string, body: string, limits: JsonLimits): Promise<unknown>
  /** For partners that use the status for their errors. Throws an `OutboundError` unless a response was read completely. */
  exchange(request: OutboundRequest, limits: PostLimits): Promise<OutboundResponse>
  /**
   * Streams a large document. A few redirects are followed, never from HTTPS to plain HTTP. The stream fails with an `OutboundError` if the
   * other side sends too much, too slowly or not all of it.
   */
  download(url: string, limits: DownloadLimits): Promise<Download>
  close(): Promise<void>
}

const connectionsPerOrigin = 32
/** Large responses that are read at once, each of which may take tens of megabytes and half a second of the process; about half of them of one origin. */
const largeAtOnce = 8

export function createOutbound(): Outbound {
  const pools = createPools()
  const largeTurns = createFairSemaphore(largeAtOnce)
  return {
    async postJson(url, body, limits) {
      const { origin, pathname, search, username, password } = new URL(url)
      const headers: Record<string, string> = { 'content-type': 'application/json' }
      if (username !== '')
        headers.authorization = `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`
      const takeTurn = (until: AbortSignal) => largeTurns.take(origin, until)
      const posted = { method: 'POST', origin, path: `${pathname}${search}`, headers, body } as const
      const { status, content } = await send(pools.of(origin), posted, { ...limits, read: readJson(limits, takeTurn) })
      if (status !== 200) throw new OutboundError('status', { status })
      return content
    },
    async exchange(request, limits) {
      const { origin, pathname, search } = new URL(request.url)
      const sent = { ...request, origin, path: `${pathname}${search}` }
      const readText = ({ body }: OpenResponse) => readBounded(body, limits.bytesMax)
      const { status, content: text } = await send(pools.of(origin), sent, { ...limits, read: readText })
      return { status, json: status >= 200 && status < 300 && text !== '' ? parse(text) : parseIfJson(text) }
    },
    download: (url, limits) => download(pools.of, url, limits),
    close: pools.close,
  }
}

/** The connections to each origin. */
function createPools() {
  const pools = new Map<string, Pool>()
  return {
    of(origin: string): Pool {
      const known = pools.get(origin)
      if (known !== undefined) return known
      const pool = new Pool(origin, {
        connections: connectionsPerOrigin,
        pipelining: 1,
        keepAliveTimeout: 10_000,
        connectTimeout: 5_000,
      })
      pools.set(origin, pool)
      return pool
    },
    async close(): Promise<void> {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
    },
  }
}

interface Sent extends Omit<OutboundRequest, 'url'> {
  readonly origin: string
  readonly path: string
}

interface Received<T> {
  readonly status: number
  readonly content: T
}

interface OpenResponse extends Pick<Dispatcher.ResponseData, 'statusCode' | 'body'> {
  /** Is aborted at the limit of the whole request. */
  readonly signal: AbortSignal
  /** Sets that limit anew, from now on. */
  readonly prolong: (timeoutMs: number) => void
}

interface Reading<T> extends Pick<PostLimits, 'timeoutMs'> {
  readonly read: (response: OpenResponse) => Promise<T>
}

function send<T>(pool: Pool, request: Sent, reading: Reading<T>): Promise<Received<T>> {
  const { method, origin, headers } = request
  return inClientSpan(
    { method, url: new URL(origin) },
    (traceHeaders) => sendOnce(pool, { ...request, headers: { ...traceHeaders, ...headers } }, reading),
    ({ status }) => status,
  )
}

async function sendOnce<T>(
  pool: Pool,
  { method, path, headers, body }: Sent,
  { timeoutMs, read }: Reading<T>,
): Promise<Received<T>> {
  const ending = new AbortController()
  const { signal } = ending
  const startTimer = (ms: number) => setTimeout(() => ending.abort(), ms).unref()
  let timer = startTimer(timeoutMs)
  const prolong = (ms: number): void => {
    clearTimeout(timer)
    timer = startTimer(ms)
  }
  try {
    const { statusCode, body: received } = await requestWith(pool, {
      path,
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      signal,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    })
    return { status: statusCode, content: await read({ statusCode, body: received, signal, prolong }) }
  } catch (error) {
    throw asOutboundError(error, signal)
  } finally {
    clearTimeout(timer)
  }
}

const redirectsMax = 5

async function download(poolOf: (origin: string) => Pool, url: string, limits: DownloadLimits): Promise<Download> {
  const signal = AbortSignal.timeout(limits.timeoutMs)
  let at = new URL(url)
  try {
    for (let redirects = 0; redirects <= redirectsMax; redirects++) {
      const { statusCode, headers, body } = await requestWith(poolOf(at.origin), {
        path: `${at.pathname}${at.search}`,
        method: 'GET',
        headers: { 'accept-encoding': 'identity' },
        signal,
        headersTimeout: limits.idleMs,
        bodyTimeout: limits.idleMs,
      })
      if (statusCode === 200) {
        const changed = Date.parse(String(headers['last-modified'] ?? ''))
        const lastModified = Number.isNaN(changed) ? undefined : instantOf(changed)
        return { lastModified, body: bounded(body, limits.bytesMax, signal) }
      }
      await body.dump({ limit: 65_536 })
      at = redirectOf(at, statusCode, headers.location)
    }
    throw new OutboundError('status')
  } catch (error) {
    throw asOutboundError(error, signal)
  }
}

function redirectOf(from: URL, status: number, location: unknown): URL {
  const isRedirect = [301, 302, 303, 307, 308].includes(status) && typeof location === 'string'
  const to = isRedirect ? parseRedirect(location, from) : undefined
  if (to === undefined) throw new OutboundError('status', { status })
  if (to.protocol !== 'https:' && !(to.protocol === 'http:' && from.protocol === 'http:'))
    throw new OutboundError('status', { status })
  return to
}

async function* bounded(
  body: AsyncIterable<Uint8Array> & { destroy(): unknown },
  bytesMax: number,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  let bytes = 0
  try {
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > bytesMax) throw new OutboundError('too-large')
      yield chunk
    }
  } catch (error) {
    throw asOutboundError(error, signal)
  } finally {
    body.destroy()
  }
}

function asOutboundError(error: unknown, signal: AbortSignal): OutboundError {
  if (error instanceof OutboundError) return error
  return new OutboundError(signal.aborted ? 'timeout' : 'unreachable', error)
}

async function readBounded(body: OpenResponse['body'], bytesMax: number): Promise<string> {
  const collected = collectBytes({ bytesMax, tinyChunksMax })
  for await (const chunk of limited(body, { bytesMax })) collected.take(chunk)
  return textOf(collected.bytes())
}

function textOf({ buffer, byteOffset, length }: Uint8Array<ArrayBuffer>): string {
  return Buffer.from(buffer, byteOffset, length).toString('utf8')
}

/** Most chunks of a response with fewer than 64 bytes on average. */
const tinyChunksMax = 16_384

/** The chunks of a body; destroys it and throws after `bytesMax`, or if it has too many tiny chunks. One that may be large is too large also where it breaks off. */
async function* limited(
  body: OpenResponse['body'],
  { bytesMax, large }: { readonly bytesMax: number; readonly large?: LargeLimits | undefined },
): AsyncGenerator<Uint8Array> {
  const count = countChunks(tinyChunksMax)
  let bytes = 0
  try {
    for await (const chunk of body) {
      bytes += chunk.length
      if (!count.take(chunk.length)) throw new OutboundError('not-json', new Error('too many chunks'))
      if (bytes > (large?.bytesMax ?? bytesMax)) throw new OutboundError('too-large')
      yield chunk
    }
  } catch (error) {
    // A response of that length that does not arrive completely or in time can be requested in parts.
    throw large !== undefined && bytes > slowBytes ? new OutboundError('too-large', error) : error
  } finally {
    body.destroy()
  }
}

/** Bytes after which a response that breaks off counts as too large. */
const slowBytes = 1_048_576

/** Waits for a turn to read a large response; returns what ends it. Throws once the signal is aborted. */
type TakeTurn = (until: AbortSignal) => Promise<() => void>

/**
 * Reads a body of JSON: at once, or by the reader for large bodies when it is its turn. The body of an error status is read and dropped. A large body whose turn
 * does not come in time is not read.
 */
function readJson({ bytesMax, large }: JsonLimits, takeTurn: TakeTurn): (response: OpenResponse) => Promise<unknown> {
  return async ({ statusCode, body, signal, prolong }) => {
    if (statusCode !== 200) return readBounded(body, bytesMax)
    const collected = collectBytes({ bytesMax, tinyChunksMax })
    let bytes = 0
    let reader: BodyReader | undefined
    let endTurn: (() => void) | undefined
    try {
      for await (const chunk of limited(body, { bytesMax, large })) {
        bytes += chunk.length
        if (large !== undefined && reader === undefined && bytes > bytesMax) {
          endTurn = await takeTurn(signal).catch((error: unknown) => {
            throw new OutboundError('no-turn', error)
          })
          prolong(large.timeoutMs)
          reader = large.createReader()
          reader.write(collected.bytes())
        }
        if (reader === undefined) collected.take(chunk)
        else reader.write(chunk)
      }
      return reader === undefined ? parse(textOf(collected.bytes())) : reader.end()
    } finally {
      endTurn?.()
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new OutboundError('not-json', error)
  }
}

/** Undefined if the body is not JSON: an error status often has an HTML page of a proxy. */
function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
