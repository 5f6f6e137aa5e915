import type { Socket } from 'node:net'
import { type CollectedBytes, collectBytes } from '@purser/protocol'
import type { Dispatcher } from 'undici'
import type { Deadline } from './deadline.ts'
import { buildConnector, type Connector, errors, Pool } from './undici.ts'

/** Destination of a request: the origin in the URL, at the address that was checked for it. */
interface Destination {
  /** The group that the connections belong to; groups never share connections. */
  readonly group: string
  readonly url: URL
  readonly address: string
}

export interface ConnectionLimits {
  readonly connectMs: number
  /** Most connections of one group to one address; further requests wait for one. */
  readonly connectionsPerGroup: number
  /** Most groups whose connections are kept; the least recently used are closed first. */
  readonly groupsMax: number
  readonly headerBytesMax: number
  /** Most bytes of a response that are read; the connection of a longer one, or of one in too many tiny chunks, is closed. */
  readonly responseBytesMax: number
}

export type GuardedMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Connections to customers' servers, each to a checked address, and kept for a while for further requests. */
export interface Connections {
  /** Rejects if no status was received; a response that breaks off after its status resolves. */
  send(to: Destination, request: RequestParts): Promise<RawResponse>
  /** Whether a connection is open already. */
  isOpen(to: Destination): boolean
  close(): Promise<void>
}

interface RequestParts {
  readonly method: GuardedMethod
  readonly headers: Readonly<Record<string, string>>
  /** Undefined if the request has none. */
  readonly body: Uint8Array | undefined
  readonly deadline: Deadline
}

export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The beginning of the body, up to the limit. */
  readonly bytes: Buffer
  /** False if the body was longer, had too many tiny chunks, or the receiver stopped in the middle of it. */
  readonly isWhole: boolean
}

/** No connection was made, so nothing of the request was sent. */
export class ConnectFailure extends Error {
  readonly failure: 'unreachable' | 'tls-failed' | 'timeout'

  constructor(cause: Error) {
    super('no connection to the receiver', { cause })
    this.name = 'ConnectFailure'
    this.failure = connectFailureOf('code' in cause && typeof cause.code === 'string' ? cause.code : '')
  }
}

/** The failure of an exchange that ended in an error. Its text is not shown, since it may contain data from the receiver. */
export function failureOf(error: unknown): ConnectFailure['failure'] | 'connection-lost' | 'answer-malformed' {
  if (error instanceof ConnectFailure) return error.failure
  return responseFaults.some((Fault) => error instanceof Fault) ? 'answer-malformed' : 'connection-lost'
}

/** More arrived for one request than a response within the limits takes. */
class TooMuchReceived extends Error {}

const responseFaults = [
  errors.HTTPParserError,
  errors.HeadersOverflowError,
  errors.ResponseContentLengthMismatchError,
  TooMuchReceived,
]

/** Most chunks of a response with fewer than 64 bytes on average: a text that a model writes may arrive word by word. */
const tinyChunksMax = 16_384

const idleMs = 10_000
const idleMsMax = 30_000

/** `ca` are further roots to trust besides the usual ones, in PEM. */
export function createConnections(limits: ConnectionLimits, ca: string | undefined): Connections {
  const connect = buildConnector({ timeout: limits.connectMs, allowH2: false, ...(ca !== undefined && { ca }) })
  const pools = new Map<string, Pool>()

  const poolOf = (to: Destination): Pool => {
    const key = keyOf(to)
    const pool = pools.get(key) ?? openPool(to, limits, connect)
    pools.delete(key)
    pools.set(key, pool)
    if (pools.size > limits.groupsMax) forgetOldest(pools)
    return pool
  }
  return {
    send: (to, parts) => exchange(poolOf(to), to.url, { ...parts, responseBytesMax: limits.responseBytesMax }),
    isOpen: (to) => (pools.get(keyOf(to))?.stats.connected ?? 0) > 0,
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
    },
  }
}

function keyOf({ group, url, address }: Destination): string {
  return `${group} ${url.origin} ${address}`
}

/**
 * Sends one request and reads the beginning of its response, without the streams of undici's own `request`, which would cost more than
 * everything else here. Only the deadline limits the time: it covers everything, including the look-up.
 */
function exchange(
  pool: Pool,
  { pathname, search }: URL,
  parts: RequestParts & { readonly responseBytesMax: number },
): Promise<RawResponse> {
  const { deadline, method, headers, body = null } = parts
  return new Promise((resolve, reject) => {
    const reading = createReading(parts.responseBytesMax)
    let controller: Dispatcher.DispatchController | undefined
    // An error is created only where it is used, because recording its stack takes 12 µs of each delivery.
    const settle = (end: 'whole' | 'cut', errorOf: () => unknown): void => {
      if (deadline.onOver === stop) deadline.onOver = undefined
      const response = reading.response(end)
      if (response === undefined) reject(errorOf())
      else resolve(response)
    }
    const stop = (): void => {
      const over = new Error('the time limit is over')
      settle('cut', () => over)
      controller?.abort(over)
    }
    deadline.onOver = stop
    const options = { method, path: pathname + search, headers, body }
    pool.dispatch(options, {
      onRequestStart(started) {
        controller = started
        if (deadline.isOver) started.abort(new Error('the time limit was over before the request began'))
      },
      onResponseStart: (_, status, answered) => reading.begin(status, answered),
      onResponseData(reader, chunk) {
        if (reading.take(chunk)) return
        settle('cut', () => undefined)
        reader.abort(new Error('the response is longer than the limit'))
      },
      onResponseEnd: () => settle('whole', () => new Error('a response ended without a beginning')),
      onResponseError: (_, error) => settle('cut', () => error),
    })
  })
}

/** State of a response in progress. */
function createReading(bytesMax: number) {
  let head: Pick<RawResponse, 'status' | 'headers'> | undefined
  let body: CollectedBytes | undefined
  return {
    /** Interim responses (1xx) are ignored. */
    begin(status: number, headers: RawResponse['headers']): void {
      if (status >= 200) head = { status, headers }
    },
    /** False if a limit is reached. */
    take(chunk: Buffer): boolean {
      body ??= collectBytes({ bytesMax, tinyChunksMax }, allocate)
      return body.take(chunk) === 'taken'
    },
    response(end: 'whole' | 'cut'): RawResponse | undefined {
      const isWhole = end === 'whole'
      if (head === undefined) return undefined
      const { status, headers } = head
      if (body === undefined) return { status, headers, bytes: allocate(0), isWhole }
      const { buffer, byteOffset, length } = body.bytes()
      return { status, headers, bytes: Buffer.from(buffer, byteOffset, length), isWhole }
    },
  }
}

function allocate(length: number): Buffer<ArrayBuffer> {
  return Buffer.allocUnsafe(length)
}

/** HTTP/1.1 only, so that one request uses one connection, and closing it ends whatever the receiver sends. */
function openPool({ url, address }: Destination, limits: ConnectionLimits, connect: Connector): Pool {
  return new Pool(url.origin, {
    connect: connectTo(address, connect, receivedBytesMax(limits)),
    connections: limits.connectionsPerGroup,
    allowH2: false,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMsMax,
    maxHeaderSize: limits.headerBytesMax,
  })
}

/** Connects only to the checked address, whatever the name resolves to now; the certificate must still match the name. */
function connectTo(address: string, connect: Connector, bytesMax: number): Connector {
  return (options, callback) => {
    connect({ ...options, hostname: address }, (...[error, socket]) => {
      if (error !== null) return callback(new ConnectFailure(error), null)
      limitReceived(socket, bytesMax)
      callback(null, socket)
    })
  }
}

/** Most bytes for one request: a response within the limits in small chunks, and what is buffered before it is parsed. */
function receivedBytesMax({ headerBytesMax, responseBytesMax }: ConnectionLimits): number {
  return 262_144 + headerBytesMax + 8 * tinyChunksMax + 2 * responseBytesMax
}

/**
 * Closes a connection on which too much arrives for one request. The parser counts neither interim responses (1xx) nor the extensions of
 * chunks: a receiver could send gigabytes of them and occupy a processor until the timeout.
 */
function limitReceived(socket: Socket, bytesMax: number): void {
  let [written, before, received] = [0, 0, 0]
  socket.on('readable', () => {
    // Something was written since: another request has begun.
    if (socket.bytesWritten !== written) before = received
    written = socket.bytesWritten
    received = socket.bytesRead
    if (received - before > bytesMax) socket.destroy(new TooMuchReceived())
  })
}

/** Requests in progress on the connections finish first. */
function forgetOldest(pools: Map<string, Pool>): void {
  for (const [key, pool] of pools) {
    pools.delete(key)
    pool.close().catch(() => {})
    return
  }
}

function connectFailureOf(code: string): ConnectFailure['failure'] {
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') return 'timeout'
  return /^E[A-Z]+$/.test(code) && code !== 'EPROTO' ? 'unreachable' : 'tls-failed'
}
