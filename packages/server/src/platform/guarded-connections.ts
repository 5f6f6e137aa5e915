import { buildConnector, type Dispatcher, errors, Pool } from 'undici'

/** Where a request goes: the origin that the URL names, at the address that was checked for it. */
export interface Destination {
  /** Whose connections these are: one group's are never another's. */
  readonly group: string
  readonly url: URL
  readonly address: string
}

export interface ConnectionLimits {
  readonly connectMs: number
  /** Connections that one group holds to one address; further requests wait for one. */
  readonly connectionsPerGroup: number
  /** Groups whose connections are kept; those not used for longest are closed first. */
  readonly groupsMax: number
  readonly headerBytesMax: number
}

/** Connections to customers' servers, each made to an address that was checked, and kept a while for the next request. */
export interface Connections {
  /** Rejects where no status came; an answer that broke off after its status is one. */
  post(to: Destination, request: PostParts): Promise<PostAnswer>
  /** Whether a connection is open already. */
  isOpen(to: Destination): boolean
  close(): Promise<void>
}

export interface PostParts {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly signal: AbortSignal
  /** How much of an answer is read; the connection of a longer one is closed. */
  readonly answerBytesMax: number
}

export interface PostAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The beginning of the body, as much as was wanted. */
  readonly bytes: Buffer
  /** False where the body went on, or the receiver stopped in the middle of it. */
  readonly isWhole: boolean
}

/** No connection came to be, so not a byte of the request was sent. */
export class ConnectFailure extends Error {
  readonly failure: 'unreachable' | 'tls-failed' | 'timeout'

  constructor(cause: Error) {
    super('no connection to the receiver', { cause })
    this.name = 'ConnectFailure'
    this.failure = connectFailureOf('code' in cause && typeof cause.code === 'string' ? cause.code : '')
  }
}

/** What became of an exchange that ended in an error. Its text is not shown: it may hold what the receiver sent. */
export function failureOf(error: unknown): ConnectFailure['failure'] | 'connection-lost' | 'answer-malformed' {
  if (error instanceof ConnectFailure) return error.failure
  return answerFaults.some((Fault) => error instanceof Fault) ? 'answer-malformed' : 'connection-lost'
}

const answerFaults = [errors.HTTPParserError, errors.HeadersOverflowError, errors.ResponseContentLengthMismatchError]

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
    post: (to, parts) => exchange(poolOf(to), to.url, parts),
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
 * One request and the beginning of its answer, without the streams that undici's own `request` makes of it: they cost more than all
 * else here. The time limits are the signal's alone: it covers everything, the look-up included.
 */
function exchange(pool: Pool, { pathname, search }: URL, parts: PostParts): Promise<PostAnswer> {
  const { signal, headers, body } = parts
  return new Promise((resolve, reject) => {
    const reading = createReading(parts.answerBytesMax)
    let controller: Dispatcher.DispatchController | undefined
    const settle = (isWhole: boolean, error: unknown): void => {
      signal.removeEventListener('abort', end)
      const answer = reading.answer(isWhole)
      if (answer === undefined) reject(error)
      else resolve(answer)
    }
    const end = (): void => {
      settle(false, signal.reason)
      controller?.abort(new Error('the time is over'))
    }
    signal.addEventListener('abort', end, { once: true })
    const options = { method: 'POST', path: pathname + search, headers: { ...headers }, body } as const
    pool.dispatch(options, {
      onRequestStart(started) {
        controller = started
        if (signal.aborted) started.abort(new Error('the time was over before it began'))
      },
      onResponseStart: (_, status, answered) => reading.begin(status, answered),
      onResponseData(reader, chunk) {
        if (reading.take(chunk)) return
        settle(false, undefined)
        reader.abort(new Error('the answer is longer than is read'))
      },
      onResponseEnd: () => settle(true, new Error('an answer ended that never began')),
      onResponseError: (_, error) => settle(false, error),
    })
  })
}

/** What has come of an answer so far. */
function createReading(bytesMax: number) {
  let head: Pick<PostAnswer, 'status' | 'headers'> | undefined
  const chunks: Buffer[] = []
  let left = bytesMax
  return {
    /** What comes before the answer itself (1xx) is none. */
    begin(status: number, headers: PostAnswer['headers']): void {
      if (status >= 200) head = { status, headers }
    },
    /** False where that is more than is wanted. */
    take(chunk: Buffer): boolean {
      chunks.push(chunk.subarray(0, left))
      left = Math.max(-1, left - chunk.length)
      return left >= 0
    },
    answer: (isWhole: boolean): PostAnswer | undefined => head && { ...head, bytes: Buffer.concat(chunks), isWhole },
  }
}

/** HTTP/1.1 alone, so that one request has one connection, and to close it ends whatever the receiver had in mind. */
function openPool({ url, address }: Destination, limits: ConnectionLimits, connect: buildConnector.connector): Pool {
  return new Pool(url.origin, {
    connect: connectTo(address, connect),
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

/** Connects to the address and to nothing that the name may mean by now; the certificate must be the name's all the same. */
function connectTo(address: string, connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    connect({ ...options, hostname: address }, (...[error, socket]) => {
      if (error === null) callback(null, socket)
      else callback(new ConnectFailure(error), null)
    })
  }
}

/** Requests that still run on the connections end first. */
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
