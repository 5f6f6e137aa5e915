import { connect, type Socket } from 'node:net'

/** The response to one request. Status 0 if there was none. */
export interface LoadResponse {
  readonly status: number
  readonly body: string
  readonly ms: number
}

export type Keep = (response: Buffer, headEnd: number) => string

export interface Load {
  readonly port: number
  readonly connections: number
  /** Whole HTTP/1.1 requests, each sent once. */
  readonly requests: readonly Buffer[]
  /** No request is begun after this time. */
  readonly msMax: number
  /** Returns the part of a response that is kept instead of its body, from the bytes up to the end of the headers. */
  readonly keep?: Keep | undefined
}

export interface LoadResult {
  /** In the order of the requests. Shorter if the time limit was reached first. */
  readonly responses: readonly LoadResponse[]
  readonly elapsedMs: number
}

const responseMsMax = 30_000

/**
 * Sends requests over keep-alive connections, one at a time on each, and keeps every response. Uses raw sockets,
 * because the generator shares the machine with what it measures: an HTTP client would cost as much CPU as the
 * cheaper service.
 */
export async function runLoad({ port, connections, requests, msMax, keep }: Load): Promise<LoadResult> {
  const responses: LoadResponse[] = []
  const began = performance.now()
  let next = 0
  const take = () => (next < requests.length && performance.now() - began < msMax ? next++ : undefined)
  const lanes = Array.from({ length: Math.min(connections, requests.length) }, async () => {
    const wire = await openWire(port, keep)
    for (let index = take(); index !== undefined; index = take()) {
      const request = requests[index]
      if (request === undefined) break
      const sentAt = performance.now()
      const { status, body } = await wire.ask(request)
      responses[index] = { status, body, ms: performance.now() - sentAt }
      if (status === 0) break
    }
    wire.close()
  })
  await Promise.all(lanes)
  return { responses, elapsedMs: performance.now() - began }
}

/** A POST with a JSON body as bytes on the wire. */
export function postRequest(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  return request(
    'POST',
    path,
    { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)), ...headers },
    body,
  )
}

/** A GET as bytes on the wire. */
export function getRequest(path: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  return request('GET', path, headers, '')
}

/** A DELETE as bytes on the wire. */
export function deleteRequest(path: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  return request('DELETE', path, headers, '')
}

function request(method: string, path: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const lines = Object.entries({ host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

interface Wire {
  /** Status 0 when the connection ended first or nothing came in time. */
  ask(request: Buffer): Promise<{ status: number; body: string }>
  close(): void
}

async function openWire(port: number, keep: Load['keep']): Promise<Wire> {
  const socket = await dial(port)
  let received: Buffer = Buffer.alloc(0)
  let waiting: ((response: { status: number; body: string }) => void) | undefined
  const response = (found: { status: number; body: string }) => {
    const resolve = waiting
    waiting = undefined
    resolve?.(found)
  }
  const lost = () => response({ status: 0, body: '' })
  socket.setTimeout(responseMsMax, () => socket.destroy())
  socket.on('error', () => {}).on('close', lost)
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const found = readResponse(received, keep)
    if (found === undefined) return
    received = received.subarray(found.length)
    response(found)
  })
  return {
    ask(bytes) {
      return new Promise((resolve) => {
        waiting = resolve
        if (socket.destroyed) lost()
        else socket.write(bytes)
      })
    },
    close: () => socket.destroy(),
  }
}

const headEndMark = Buffer.from('\r\n\r\n')
/**
 * As written by Node and its frameworks. Searches bytes, because a regular expression over kilobytes of headers costs
 * more than the response.
 */
const lengthMarks = ['\r\nContent-Length: ', '\r\ncontent-length: '].map((mark) => Buffer.from(mark))
const chunkedMark = /\r\ntransfer-encoding: *chunked/i

/** The first HTTP response in these bytes, or undefined while it is incomplete. Status 0 if its length is unknown. */
export function readResponse(
  bytes: Buffer,
  keep?: Load['keep'],
): { status: number; body: string; length: number } | undefined {
  const headEnd = bytes.indexOf(headEndMark)
  if (headEnd < 0) return undefined
  const status = Number(bytes.toString('latin1', 9, 12))
  const content = status === 204 ? emptyAt(headEnd) : contentOf(bytes, headEnd)
  if (content === 'unknown') {
    return { status: 0, body: `no length: ${bytes.toString('latin1', 0, headEnd)}`, length: bytes.length }
  }
  if (content === undefined) return undefined
  const body = keep === undefined ? content.body() : keep(bytes, headEnd)
  return { status, body, length: content.length }
}

interface Content {
  readonly body: () => string
  readonly length: number
}

/** A response without content has no length (RFC 9112, section 6.3). */
function emptyAt(headEnd: number): Content {
  return { body: () => '', length: headEnd + headEndMark.length }
}

function contentOf(bytes: Buffer, headEnd: number): Content | 'unknown' | undefined {
  const from = headEnd + headEndMark.length
  const stated = headerIn(bytes, headEnd, lengthMarks)
  if (stated !== undefined) {
    const length = from + Number(stated)
    return bytes.length < length ? undefined : { body: () => bytes.toString('utf8', from, length), length }
  }
  return chunkedMark.test(bytes.toString('latin1', 0, headEnd)) ? chunksOf(bytes, from) : 'unknown'
}

/** The value of a header under any spelling of its name, or undefined. */
export function headerIn(bytes: Buffer, headEnd: number, marks: readonly Buffer[]): string | undefined {
  for (const mark of marks) {
    const at = bytes.indexOf(mark)
    if (at < 0 || at > headEnd) continue
    return bytes.toString('latin1', at + mark.length, bytes.indexOf('\r\n', at + mark.length))
  }
  return undefined
}

function chunksOf(bytes: Buffer, from: number): Content | undefined {
  const chunks: Buffer[] = []
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + size + 2
    if (!(size >= 0) || bytes.length < end) return undefined
    if (size === 0) return { body: () => Buffer.concat(chunks).toString('utf8'), length: end }
    chunks.push(bytes.subarray(lineEnd + 2, end - 2))
    at = end
  }
}

function dial(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
