import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { addressBlock } from '@purser/protocol'
import { mayTake, type ReserveMemory } from '../share.ts'
import type { HttpOptions } from './http-options.ts'

export interface ConnectionLimits {
  /** Most open connections of the server. */
  readonly connectionsMax: number
  /** Most open connections of one address that have made no request with a valid credential; undefined behind a proxy. */
  readonly unknownPerAddressMax: number | undefined
}

/**
 * Records that a connection made a request with a valid credential of this share owner; false if the owner has its share of the
 * connections. A connection counts for the owner whose request it carried last.
 */
export type Trust = (socket: Socket, owner: string) => boolean

/**
 * Limits the connections of a server. Connections that only wait are bounded per address, so that one host which opens many and sends
 * nothing leaves places for others. Those of callers with a valid credential are shared between their owners (`mayTake`).
 */
export function limitConnections(server: Server, { connectionsMax, unknownPerAddressMax }: ConnectionLimits): Trust {
  server.maxConnections = connectionsMax
  limitUnanswered(server)
  const unknown = createCounts<Socket>()
  const owned = createCounts<Socket>()
  let open = 0
  server.on('connection', (socket: Socket) => {
    const block = addressBlock(socket.remoteAddress ?? '')
    if (unknownPerAddressMax !== undefined) {
      if (unknown.of(block) >= unknownPerAddressMax) return void socket.destroy()
      unknown.put(socket, block)
    }
    open += 1
    socket.once('close', () => {
      open -= 1
      unknown.remove(socket)
      owned.remove(socket)
    })
  })
  return (socket, owner) => {
    unknown.remove(socket)
    if (owned.nameOf(socket) === owner) return true
    owned.remove(socket)
    // A connection that is closed already is never removed.
    if (socket.destroyed) return true
    if (!mayTake({ own: owned.of(owner), taken: open - 1, max: connectionsMax })) return false
    owned.put(socket, owner)
    return true
  }
}

/** Most requests of one connection whose responses have not ended. Common clients send a request when they have read the response before it. */
const unansweredMax = 8

const unanswered = Symbol('unanswered')

/** A connection with the number of its requests whose responses have not ended. */
type CountedSocket = Socket & { [unanswered]?: number }

/**
 * Closes a connection that sends more requests ahead. Node parses all that it has received and begins each request, and the responses wait for a reader
 * behind the first: 64 KB of short requests would take 12 MB until the connection ends.
 */
function limitUnanswered(server: Server): void {
  const handlers = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const socket: CountedSocket = request.socket
    const own = (socket[unanswered] ?? 0) + 1
    if (own > unansweredMax) socket.destroy()
    // Node goes on with what it has received of a connection that is closed.
    if (socket.destroyed) return
    socket[unanswered] = own
    response.once('close', () => {
      socket[unanswered] = (socket[unanswered] ?? 1) - 1
    })
    for (const handle of handlers) handle.call(server, request, response)
  })
}

/** Counts things by a name; each has at most one. */
function createCounts<T extends object>() {
  const counts = new Map<string, number>()
  const names = new WeakMap<T, string>()
  const add = (name: string, n: number): void => {
    const left = (counts.get(name) ?? 0) + n
    if (left === 0) counts.delete(name)
    else counts.set(name, left)
  }
  return {
    of: (name: string): number => counts.get(name) ?? 0,
    nameOf: (thing: T): string | undefined => names.get(thing),
    put(thing: T, name: string): void {
      names.set(thing, name)
      add(name, 1)
    },
    remove(thing: T): void {
      const name = names.get(thing)
      if (names.delete(thing) && name !== undefined) add(name, -1)
    },
  }
}

/** The library's form: a number is a count of proxies, each of which adds the address that it was called from. */
export function proxiesOf(
  proxies: HttpOptions['trustProxy'],
): boolean | string[] | ((address: string, hop: number) => boolean) {
  if (typeof proxies === 'number') return (_, hop) => hop < proxies
  return proxies === false ? false : [...proxies]
}

/** Turns of the event loop after the last accepted connection, in which the requests that were sent are read, so that none of them is cut. */
const receiveTurns = 3
/** Longest that waiting connections are accepted: under load new ones arrive all the time. */
const receiveMsMax = 1_000

const closeIdleEveryMs = 50

/**
 * Accepts the connections and reads the requests that have arrived. Then closes every connection as it becomes idle, until the server is closed: one
 * whose body still arrives after its response is not idle when the close begins, and would stay open for the keep-alive timeout.
 */
export async function beginClose(server: Server): Promise<void> {
  await receiveArrived(server)
  const timer = setInterval(() => server.closeIdleConnections(), closeIdleEveryMs)
  server.once('close', () => clearInterval(timer))
}

/** libuv accepts one connection in a turn of the event loop, so that the turns continue while connections are waiting. */
async function receiveArrived(server: Server): Promise<void> {
  let turns = 0
  const accepted = (): void => {
    turns = 0
  }
  server.on('connection', accepted)
  const until = performance.now() + receiveMsMax
  for (; turns < receiveTurns && performance.now() < until; turns++)
    await new Promise((resolve) => setImmediate(resolve))
  server.off('connection', accepted)
}

/**
 * Calls `refuse` if a request's body is not complete within `msMax`: a slow sender occupies a connection and the memory of the received
 * part. A request without a body costs nothing.
 */
export function limitBodyTime(request: IncomingMessage, msMax: number, refuse: () => void): void {
  const { headers } = request
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return
  const timer = setTimeout(() => {
    if (!request.complete) refuse()
  }, msMax)
  const stop = (): void => clearTimeout(timer)
  request.once('end', stop).once('close', stop)
}

/**
 * Cuts the connection of a streamed body if nothing of it arrives for `msMax`. The total time is not limited: a gigabyte over a slow
 * connection takes an hour. Once the body has ended, the connection may be silent for `afterMs` (0: for any time).
 */
export function limitBodySilence(request: IncomingMessage, msMax: number, afterMs = 0): void {
  const cut = (): void => void request.destroy()
  request.setTimeout(msMax, cut)
  // The response may take longer than that, and the connection's next request has its own limits.
  request.once('end', () => request.setTimeout(afterMs).off('timeout', cut))
}

/** Milliseconds for which a body may still arrive after its request was answered, so that its sender receives the response and not a reset. */
const lingerMs = 1_000

/** Cuts the connection of a request whose body is not complete soon after the response was sent. */
export function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (request.complete) return
    const timer = setTimeout(() => request.destroy(), lingerMs)
    request.once('close', () => clearTimeout(timer))
  })
}

/** Milliseconds for the whole body of a request to a page, which has a few kilobytes. */
export const pageBodyMsMax = 10_000

/** Reserves memory for the body of a request until its response has ended. Throws as `reserve` does. */
export function reserveBody(
  reserve: ReserveMemory,
  body: {
    readonly request: { readonly headers: Readonly<Record<string, unknown>> }
    readonly reply: { readonly raw: { once(event: 'close', listener: () => void): unknown } }
    readonly bytesMax: number
    readonly owner: string
  },
): void {
  const bytes = bodyBytesOf(body.request.headers, body.bytesMax)
  if (bytes > 0) body.reply.raw.once('close', reserve(body.owner, bytes))
}

/** Returns the bytes that a request's body may take: its announced length, or `bytesMax` if it announces none. */
function bodyBytesOf(headers: Readonly<Record<string, unknown>>, bytesMax: number): number {
  if (headers['transfer-encoding'] !== undefined) return bytesMax
  const length = Number(headers['content-length'] ?? 0)
  return Number.isFinite(length) ? Math.min(Math.max(0, length), bytesMax) : bytesMax
}
