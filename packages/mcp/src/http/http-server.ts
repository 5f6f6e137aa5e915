import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { hostHeaderValidation, originValidation } from '@modelcontextprotocol/node'
import { addressBlock } from '@purser/protocol'
import { type HandlerOptions, openCallers, type Refused, type RequestMessage } from './callers.ts'

/** The path of the one endpoint. */
export const endpoint = '/mcp'

const loopback = ['localhost', '127.0.0.1', '[::1]']
/** Most connections. Above it, the one that has been without an admitted request for longest is closed. */
const connectionsMax = 1_024
/** Most requests of all organisations at once; an organisation has at most half of those that the others leave. Some more are for those without one. */
const runningMax = 896
const runningFirstMax = 960
/**
 * Most connections of one address, if no proxy is before the server: those of one host that sends nothing leave places for others. This machine's own
 * have no such limit, because a proxy or many agents may run on it.
 */
const connectionsPerAddressMax = 64
/** Addresses by which a machine reaches itself. */
const ownAddress = /^(127\.|::1$|::ffff:127\.)/i
const runningPerKeyMax = 32
/** Most requests of one connection whose responses have not ended. Common clients send a request when they have read the response before it. */
const unansweredMax = 8

/** How clients reach the server. */
export interface Reachable {
  /** The host names that requests may name besides loopback. */
  readonly hosts: readonly string[]
  /** Number of trusted proxies in front of the server, each of which appends to `X-Forwarded-For`. Default: 0. */
  readonly proxies?: number
  /** Called once, when the first connection of an address is closed because the address has too many. */
  readonly onCrowded?: () => void
}

/**
 * An HTTP server that serves the tools over Streamable HTTP. Each request carries an API key as a bearer token.
 * Requests must have a `Host`, and an `Origin` if they have one, that is loopback or in `hosts`, so that a web page
 * cannot reach a server on the user's machine (DNS rebinding).
 */
export function mcpHttpServer(options: HandlerOptions, { hosts, proxies = 0, onCrowded }: Reachable): Server {
  const find = openCallers(options)
  const running = runningRequests()
  const mayAnswer = limitUnanswered()
  const names = [...loopback, ...hosts]
  const isHost = hostHeaderValidation(names)
  const isOrigin = originValidation(names)
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    if (!isHost(req, res) || !isOrigin(req, res)) return
    if (!isRequest(req) || req.url.split('?', 1)[0] !== endpoint)
      return refuse(res, { status: 404, code: -32_601, message: `Use ${endpoint}.` })
    const token = /^Bearer +(\S{1,256})$/i.exec(req.headers.authorization ?? '')?.[1]
    const caller = token === undefined ? 'unknown' : await find(token, addressOf(req, proxies))
    if (typeof caller === 'string') return refuse(res, refusals[caller])
    if (res.destroyed) return
    if (caller.running >= runningPerKeyMax || !running.hasPlace(caller.organisationId))
      return refuse(res, refusals['too-many'])
    const ended = [running.begin(caller.organisationId), connections.begin(req.socket)]
    caller.running += 1
    res.once('close', () => {
      caller.running -= 1
      for (const end of ended) end()
    })
    await caller.handle(req, res)
  }
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000 }, (req, res) => {
    if (!mayAnswer(req, res)) return
    answer(req, res).catch((error: unknown) => {
      options.onError(error instanceof Error ? error : new Error('a value that is not an Error was thrown'))
      if (!res.headersSent) refuse(res, refusals.unavailable)
      else res.destroy()
    })
  })
  const mayOpen = proxies === 0 ? limitPerAddress(onCrowded) : () => true
  const connections = limitConnections(server, mayOpen)
  return server
}

/**
 * Returns the function that counts a request of its connection until its response ends. It closes a connection that sends more requests ahead, and then
 * returns `false`: their responses would wait in the memory for a reader.
 */
function limitUnanswered(): (req: IncomingMessage, res: ServerResponse) => boolean {
  const unanswered = new WeakMap<Socket, number>()
  return ({ socket }, res) => {
    const own = (unanswered.get(socket) ?? 0) + 1
    if (own > unansweredMax) socket.destroy()
    // Node goes on with what it has received of a connection that is closed.
    if (socket.destroyed) return false
    unanswered.set(socket, own)
    res.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1))
    return true
  }
}

/** Counts the running requests of each organisation. */
function runningRequests() {
  const owns = new Map<string, number>()
  let taken = 0
  return {
    hasPlace(organisationId: string): boolean {
      const own = owns.get(organisationId) ?? 0
      return own === 0 ? taken < runningFirstMax : own < (runningMax - (taken - own)) / 2
    },
    begin(organisationId: string): () => void {
      owns.set(organisationId, (owns.get(organisationId) ?? 0) + 1)
      taken += 1
      return () => {
        taken -= 1
        const left = (owns.get(organisationId) ?? 1) - 1
        if (left === 0) owns.delete(organisationId)
        else owns.set(organisationId, left)
      }
    },
  }
}

/** Closes the connection that has been without an admitted request for longest when there are too many, so that a new one always has a place. */
function limitConnections(server: Server, mayOpen: (socket: Socket) => boolean) {
  const waiting = new Set<Socket>()
  /** The connections with admitted requests, and how many they are. */
  const busy = new Map<Socket, number>()
  server.on('connection', (socket) => {
    if (!mayOpen(socket)) return void socket.destroy()
    const [oldest] = waiting
    if (waiting.size + busy.size >= connectionsMax) oldest?.destroy()
    waiting.add(socket)
    socket.once('close', () => {
      waiting.delete(socket)
      busy.delete(socket)
    })
  })
  return {
    /** Notes that a request on the connection was admitted. The function that it returns notes its end. */
    begin(socket: Socket): () => void {
      waiting.delete(socket)
      busy.set(socket, (busy.get(socket) ?? 0) + 1)
      return () => {
        const left = (busy.get(socket) ?? 1) - 1
        if (left > 0) busy.set(socket, left)
        else if (busy.delete(socket) && !socket.destroyed) waiting.add(socket)
      }
    },
  }
}

/** Returns the function that counts a new connection for its address, or returns `false` if the address has too many. */
function limitPerAddress(onCrowded: (() => void) | undefined): (socket: Socket) => boolean {
  const open = new Map<string, number>()
  let isReported = false
  return (socket) => {
    const { remoteAddress = '' } = socket
    if (ownAddress.test(remoteAddress)) return true
    const block = addressBlock(remoteAddress)
    const own = open.get(block) ?? 0
    if (own >= connectionsPerAddressMax) {
      if (!isReported) onCrowded?.()
      isReported = true
      return false
    }
    open.set(block, own + 1)
    socket.once('close', () => {
      const left = (open.get(block) ?? 1) - 1
      if (left === 0) open.delete(block)
      else open.set(block, left)
    })
    return true
  }
}

/**
 * Returns the network address of the caller. Only the last entries of `X-Forwarded-For` are from the trusted proxies;
 * the caller can forge earlier ones.
 */
function addressOf({ headers, socket }: IncomingMessage, proxies: number): string {
  const forwarded = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',')
  const own = proxies === 0 ? undefined : forwarded.at(-proxies)?.trim()
  return own || (socket.remoteAddress ?? '')
}

interface Refusal {
  readonly status: number
  readonly code: number
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

const refusals: Readonly<Record<Refused, Refusal>> = {
  unknown: {
    status: 401,
    code: -32_001,
    message: 'Send an API key of this service: Authorization: Bearer svc_test_sk_….',
    headers: { 'WWW-Authenticate': 'Bearer' },
  },
  'too-many': {
    status: 429,
    code: -32_002,
    message: 'Too many requests at once.',
    headers: { 'Retry-After': '10' },
  },
  unavailable: {
    status: 503,
    code: -32_603,
    message: 'The service does not respond.',
    headers: { 'Retry-After': '5' },
  },
}

/** Refuses the request and closes the connection, because its body is not read. */
function refuse(res: ServerResponse, { status, code, message, headers = {} }: Refusal): void {
  res.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close', ...headers })
  res.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }))
}

/** Type guard: on a server, an incoming message always has a method and a URL. */
function isRequest(message: IncomingMessage): message is RequestMessage {
  return message.method !== undefined && message.url !== undefined
}
