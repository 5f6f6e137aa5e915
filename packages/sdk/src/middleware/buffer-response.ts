import type { ServerResponse } from 'node:http'
import { exposeHeaders, type ReadableBy, readingHeaders } from './headers.ts'
import type { OwnResponse } from './responses.ts'

/** A response that is buffered in memory, so that nothing is sent before it is paid for. */
export interface BufferedResponse {
  /** Resolves when the handler has ended the response, or has exceeded the buffer limit. */
  readonly finished: Promise<'ended' | 'too-large'>
  /** The handler's status. */
  readonly status: () => number
  /** The whole body that the handler wrote. */
  readonly body: () => Uint8Array<ArrayBuffer>
  /** Sends the handler's response unchanged. */
  readonly release: () => void
  /**
   * Discards the handler's response, including its headers, and sends another. Later writes of the handler are
   * dropped.
   */
  readonly replace: (response: OwnResponse) => void
}

/** Headers by name, as in Node and Fastify. */
export type HeaderValues = Readonly<Record<string, number | string | string[] | undefined>>

export interface BufferOptions {
  readonly bodyBytesMax: number
  /** The CORS rules for the response. */
  readonly cors: ReadableBy
  /** Headers that the framework adds later. A replacing response includes them. */
  readonly before?: HeaderValues | undefined
}

type Chunk = readonly [data: string | Uint8Array, encoding: BufferEncoding]

/**
 * Replaces `write`, `end`, `writeHead` and `flushHeaders` of a Node response. The handler sees an ordinary response:
 * `headersSent` and `writableEnded` reflect its calls, so an error page is never appended to a partial response.
 */
export function bufferResponse(
  res: ServerResponse,
  { bodyBytesMax, cors, before = {} }: BufferOptions,
): BufferedResponse {
  const { write, end, writeHead, flushHeaders } = res
  const headersBefore = { ...res.getHeaders(), ...before }
  const chunks: Chunk[] = []
  const state = { bytes: 0, status: res.statusCode, begun: false, ended: false, dropping: false }
  let report: (how: 'ended' | 'too-large') => void = () => {}
  const finished = new Promise<'ended' | 'too-large'>((resolve) => {
    report = resolve
  })

  const begin = () => {
    if (!state.begun) state.status = res.statusCode
    state.begun = true
  }
  const take = (data: unknown, encoding: unknown) => {
    begin()
    const chunk = chunkOf(data, encoding)
    if (chunk === undefined || state.ended || state.dropping) return
    state.bytes += chunk[0].length
    if (state.bytes <= bodyBytesMax) return void chunks.push(chunk)
    state.dropping = true
    chunks.length = 0
    report('too-large')
  }

  res.write = (data: unknown, encoding?: unknown, callback?: unknown) => {
    take(data, encoding)
    soon(typeof encoding === 'function' ? encoding : callback)
    return true
  }
  res.end = (data?: unknown, encoding?: unknown, callback?: unknown) => {
    take(data, encoding)
    for (const given of [data, encoding, callback]) if (isCallback(given)) res.once('finish', given)
    state.ended = true
    report('ended')
    return res
  }
  res.writeHead = (status: number, reason?: unknown, headers?: unknown) => {
    if (!state.begun) applyHead(res, status, reason, headers)
    begin()
    return res
  }
  res.flushHeaders = begin
  Object.defineProperty(res, 'headersSent', { configurable: true, get: () => state.begun })
  Object.defineProperty(res, 'writableEnded', { configurable: true, get: () => state.ended })

  const restoreHead = () => {
    Object.assign(res, { writeHead, flushHeaders })
    Reflect.deleteProperty(res, 'headersSent')
    Reflect.deleteProperty(res, 'writableEnded')
  }
  return {
    finished,
    status: () => state.status,
    body: () => joined(chunks),
    release: () => {
      restoreHead()
      Object.assign(res, { write, end, statusCode: state.status })
      setReadable(res, cors)
      const last = chunks.pop()
      for (const [data, encoding] of chunks) res.write(data, encoding)
      if (last === undefined) res.end()
      else res.end(last[0], last[1])
    },
    replace: (response) => {
      restoreHead()
      state.dropping = true
      for (const name of res.getHeaderNames()) res.removeHeader(name)
      for (const [name, value] of Object.entries(headersBefore)) if (value !== undefined) res.setHeader(name, value)
      setResponseHead(res, response)
      setReadable(res, cors)
      end.call(res, response.body ?? '', 'utf8')
    },
  }
}

/** Sets the CORS headers for allowed origins, whatever the handler has set. */
export function setReadable(res: ServerResponse, cors: ReadableBy): void {
  for (const [name, value] of readingHeaders(cors, (header) => headerOf(res, header))) res.setHeader(name, value)
}

/** Sets status and headers of a response by the middleware. */
export function setResponseHead(res: ServerResponse, response: OwnResponse): void {
  res.statusCode = response.status
  res.statusMessage = ''
  for (const [name, value] of Object.entries(response.headers)) res.setHeader(name, value)
  res.setHeader('Access-Control-Expose-Headers', exposeHeaders(headerOf(res, 'access-control-expose-headers')))
}

/** A response header as one string. */
export function headerOf(res: ServerResponse, name: string): string | undefined {
  const value = res.getHeader(name)
  return Array.isArray(value) ? value.join(', ') : value?.toString()
}

/** Copies the bytes, because the handler may reuse its buffer after the write callback. */
function chunkOf(data: unknown, encoding: unknown): Chunk | undefined {
  if (data instanceof Uint8Array) return [new Uint8Array(data), 'utf8']
  if (typeof data !== 'string') return undefined
  if (isEncoding(encoding)) return [data, encoding]
  return [new TextEncoder().encode(data), 'utf8']
}

function joined(chunks: readonly Chunk[]): Uint8Array<ArrayBuffer> {
  const parts = chunks.map(([data, encoding]) => (typeof data === 'string' ? Buffer.from(data, encoding) : data))
  return new Uint8Array(Buffer.concat(parts))
}

function isEncoding(encoding: unknown): encoding is BufferEncoding {
  const known = ['latin1', 'binary', 'hex', 'base64', 'base64url', 'ascii', 'ucs2', 'ucs-2', 'utf16le', 'utf-16le']
  return typeof encoding === 'string' && known.includes(encoding.toLowerCase())
}

function applyHead(res: ServerResponse, status: number, reason: unknown, headers: unknown): void {
  res.statusCode = status
  if (typeof reason === 'string') res.statusMessage = reason
  const given = typeof reason === 'string' ? headers : (reason ?? headers)
  for (const [name, value] of pairsOf(given)) {
    if (typeof value === 'string' || typeof value === 'number' || Array.isArray(value)) res.setHeader(name, value)
  }
}

/** `writeHead` takes an object, a flat array of names and values, or an array of pairs. */
function pairsOf(headers: unknown): [string, unknown][] {
  if (typeof headers !== 'object' || headers === null) return []
  if (!Array.isArray(headers)) return Object.entries(headers)
  const flat: unknown[] = headers.flat()
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[String(name), flat[index + 1]]] : []))
}

type Callback = () => void

function isCallback(value: unknown): value is Callback {
  return typeof value === 'function'
}

function soon(callback: unknown): void {
  if (isCallback(callback)) queueMicrotask(callback)
}
