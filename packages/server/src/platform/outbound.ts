import { Pool } from 'undici'
import { instantOf } from './clock.ts'
import { inClientSpan } from './tracing/spans.ts'

/** Why an outbound request got no response. Its message contains no address: addresses may contain keys. */
export class OutboundError extends Error {
  readonly kind: 'unreachable' | 'timeout' | 'too-large' | 'status' | 'not-json'

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

/** One request as it is sent; redirects are not followed. */
export interface OutboundRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** The response, whatever its status. `json` is undefined if the body is not JSON. */
interface OutboundAnswer {
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
  /** When the document last changed, if its server reports it. */
  readonly lastModified: Date | undefined
  readonly body: AsyncIterable<Uint8Array>
}

/** The only way to send requests to hosts that the operator configured (nodes, partners). Connections are kept and shared per origin. */
export interface Outbound {
  postJson(url: string, body: string, limits: PostLimits): Promise<unknown>
  /** For partners that use the status for their errors. Throws an `OutboundError` unless a response was read completely. */
  exchange(request: OutboundRequest, limits: PostLimits): Promise<OutboundAnswer>
  /**
   * Streams a large document. A few redirects are followed, never from HTTPS to plain HTTP. The stream fails with an `OutboundError` if the
   * other side sends too much, too slowly or not all of it.
   */
  download(url: string, limits: DownloadLimits): Promise<Download>
  close(): Promise<void>
}

const connectionsPerOrigin = 32

export function createOutbound(): Outbound {
  const pools = new Map<string, Pool>()
  const poolOf = (origin: string): Pool => {
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
  }
  return {
    async postJson(url, body, limits) {
      const { origin, pathname, search, username, password } = new URL(url)
      const headers: Record<string, string> = { 'content-type': 'application/json' }
      if (username !== '')
        headers.authorization = `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`
      return parse(await post(poolOf(origin), { origin, path: `${pathname}${search}`, headers, body }, limits))
    },
    async exchange(request, limits) {
      const { origin, pathname, search } = new URL(request.url)
      const { status, text } = await send(poolOf(origin), { ...request, origin, path: `${pathname}${search}` }, limits)
      return { status, json: status >= 200 && status < 300 && text !== '' ? parse(text) : parseIfJson(text) }
    },
    download: (url, limits) => download(poolOf, url, limits),
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
    },
  }
}

async function post(pool: Pool, posted: Omit<Sent, 'method'>, limits: PostLimits): Promise<string> {
  const { status, text } = await send(pool, { method: 'POST', ...posted }, limits)
  if (status !== 200) throw new OutboundError('status', { status })
  return text
}

interface Sent extends Omit<OutboundRequest, 'url'> {
  readonly origin: string
  readonly path: string
}

interface Received {
  readonly status: number
  readonly text: string
}

function send(pool: Pool, request: Sent, limits: PostLimits): Promise<Received> {
  const { method, origin, headers } = request
  return inClientSpan(
    { method, url: new URL(origin) },
    (traceHeaders) => sendOnce(pool, { ...request, headers: { ...traceHeaders, ...headers } }, limits),
    ({ status }) => status,
  )
}

async function sendOnce(pool: Pool, { method, path, headers, body }: Sent, limits: PostLimits): Promise<Received> {
  const signal = AbortSignal.timeout(limits.timeoutMs)
  try {
    const answer = await pool.request({
      path,
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      signal,
      headersTimeout: limits.timeoutMs,
      bodyTimeout: limits.timeoutMs,
    })
    return { status: answer.statusCode, text: await readBounded(answer.body, limits.bytesMax) }
  } catch (error) {
    throw asOutboundError(error, signal)
  }
}

const redirectsMax = 5

async function download(poolOf: (origin: string) => Pool, url: string, limits: DownloadLimits): Promise<Download> {
  const signal = AbortSignal.timeout(limits.timeoutMs)
  let at = new URL(url)
  try {
    for (let redirects = 0; redirects <= redirectsMax; redirects++) {
      const { statusCode, headers, body } = await poolOf(at.origin).request({
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
  if (![301, 302, 303, 307, 308].includes(status) || typeof location !== 'string' || !URL.canParse(location, from.href))
    throw new OutboundError('status', { status })
  const to = new URL(location, from.href)
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

async function readBounded(
  body: AsyncIterable<Uint8Array> & { destroy(): unknown },
  bytesMax: number,
): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > bytesMax) {
      body.destroy()
      throw new OutboundError('too-large')
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
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
