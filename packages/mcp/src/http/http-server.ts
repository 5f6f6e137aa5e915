import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { hostHeaderValidation, originValidation } from '@modelcontextprotocol/node'
import { addressBlock } from '@purser/protocol'
import { type HandlerOptions, openCallers, type Refused, type RequestMessage } from './callers.ts'
import { bodyBytesOf, CountedRequest, messageBytesMax, readBody, shapeOf } from './message.ts'
import { messageRates } from './message-rates.ts'

/** The path of the one endpoint. */
export const endpoint = '/mcp'

const loopback = ['localhost', '127.0.0.1', '[::1]']
/** Most connections. Above it, the one that has been without an admitted request for longest is closed. */
const connectionsMax = 1_024
/**
 * Most slots of running requests of all owners; an owner has at most half of those that the others leave. Some more are for those without
 * one. A request takes a slot for its response and up to 64 KiB of its body, and one for each further part, so that slots limit the memory.
 */
const runningMax = 896
const runningFirstMax = 960
const slotBytes = 65_536
/**
 * Most connections of one address, if no proxy is before the server: those of one host that sends nothing leave places for others. This machine's own
 * have no such limit, because a proxy or many agents may run on it.
 */
const connectionsPerAddressMax = 64
/** Addresses by which a machine reaches itself. */
const ownAddress = /^(127\.|::1$|::ffff:127\.)/i
const runningPerKeyMax = 32
/** Most JSON-RPC messages in one request. Current revisions have no batches. */
const batchMax = 8
/** A connection that takes nothing of a response for this long is closed. */
const silentMsMax = 30_000
/** Most requests of one connection whose responses have not ended. Common clients send a request when they have read the response before it. */
const unansweredMax = 8

/** The addresses by which clients reach the server, and what is between them. */
export interface Reachable {
  /** The host names that requests may name besides loopback. */
  readonly hosts: readonly string[]
  /** Number of trusted proxies in front of the server, each of which appends to `X-Forwarded-For`. Default: 0. */
  readonly proxies?: number
  /** Called once, when the first connection of an address is closed because the address has too many. */
  readonly onCrowded?: () => void
  /** A time in milliseconds that never decreases; default: since the start of the process. */
  readonly now?: () => number
}

/**
 * An HTTP server that serves the tools over Streamable HTTP. Each request carries an API key as a bearer token.
 * Requests must have a `Host`, and an `Origin` if they have one, that is loopback or in `hosts`, so that a web page
 * cannot reach a server on the user's machine (DNS rebinding).
 */
export function mcpHttpServer(options: HandlerOptions, reachable: Reachable): Server {
  const { hosts, proxies = 0, onCrowded, now = () => performance.now() } = reachable
  const find = openCallers(options, now)
  const rates = messageRates(now)
  const running = runningRequests()
  const unanswered = limitUnanswered()
  const names = [...loopback, ...hosts]
  const isHost = hostHeaderValidation(names)
  const isOrigin = originValidation(names)
  const respond = async (req: CountedRequest, res: ServerResponse): Promise<void> => {
    if (!isHost(req, res) || !isOrigin(req, res)) return
    if (!isRequest(req) || req.url.split('?', 1)[0] !== endpoint)
      return refuse(res, { status: 404, code: -32_601, message: `Use ${endpoint}.` })
    const token = /^Bearer +(\S{1,256})$/i.exec(req.headers.authorization ?? '')?.[1]
    const caller = token === undefined ? 'unknown' : await find(token, addressOf(req, proxies))
    if (typeof caller === 'string') return refuse(res, refusals[caller])
    if (res.destroyed) return
    const { shareOwner } = caller
    const bytes = bodyBytesOf(req)
    if (bytes > messageBytesMax) return refuse(res, tooLong)
    const slots = Math.max(1, Math.ceil(bytes / slotBytes))
    if (caller.running >= runningPerKeyMax || !running.hasSlots(shareOwner, slots))
      return refuse(res, refusals['too-many'])
    const early = rates.announced(shareOwner, bytes)
    if (early !== undefined) return refuse(res, tooOften(early))
    const ended = [running.begin(shareOwner, slots), connections.begin(req.socket)]
    caller.running += 1
    res.once('close', () => {
      caller.running -= 1
      for (const end of ended) end()
    })
    const body = await readBody(req)
    if (body === 'too-large') return refuse(res, tooLong)
    if (body === 'too-many-chunks') return refuse(res, tooManyChunks)
    const shape = shapeOf(body)
    if (shape.messages > batchMax) return refuse(res, tooManyMessages)
    const late = rates.received(shareOwner, shape)
    if (late !== undefined) return refuse(res, tooOften(late))
    if (shape.messages > 1) {
      if (!running.hasSlots(shareOwner, shape.messages - 1)) return refuse(res, refusals['too-many'])
      ended.push(running.begin(shareOwner, shape.messages - 1))
    }
    const { method, url, headers } = req
    await caller.handle({ method, url, headers, [Symbol.asyncIterator]: () => piecesOf(body) }, res)
  }
  const limits = { IncomingMessage: CountedRequest, headersTimeout: 10_000, requestTimeout: 30_000 }
  const server = createServer(limits, (req, res) => {
    if (!unanswered.begin(req, res)) return
    respond(req, res).catch((error: unknown) => {
      options.onError(error instanceof Error ? error : new Error('a value that is not an Error was thrown'))
      if (!res.headersSent) refuse(res, refusals.unavailable)
      else res.destroy()
    })
  })
  const mayOpen = proxies === 0 ? limitPerAddress(onCrowded) : () => true
  const connections = limitConnections(server, mayOpen)
  // Without a listener Node would close a connection whose request runs for that long.
  server.setTimeout(silentMsMax, (socket) => {
    if (socket.writableLength > 0 || !unanswered.has(socket)) socket.destroy()
  })
  return server
}

async function* piecesOf(body: Buffer): AsyncGenerator<Buffer> {
  yield body
}

/** Counts the requests of each connection until their responses end. */
function limitUnanswered() {
  const unanswered = new WeakMap<Socket, number>()
  return {
    has: (socket: Socket): boolean => (unanswered.get(socket) ?? 0) > 0,
    /** Counts a request. Closes a connection that sends more requests ahead, and then returns `false`: their responses would wait in the memory. */
    begin({ socket }: IncomingMessage, res: ServerResponse): boolean {
      const own = (unanswered.get(socket) ?? 0) + 1
      if (own > unansweredMax) socket.destroy()
      // Node goes on with what it has received of a connection that is closed.
      if (socket.destroyed) return false
      unanswered.set(socket, own)
      res.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1))
      return true
    },
  }
}

/** Counts the slots of the running requests of each owner. */
function runningRequests() {
  const owns = new Map<string, number>()
  let taken = 0
  return {
    hasSlots(owner: string, more: number): boolean {
      const own = owns.get(owner) ?? 0
      return own === 0 ? taken + more <= runningFirstMax : own + more < (runningMax - (taken - own)) / 2 + 1
    },
    begin(owner: string, slots: number): () => void {
      owns.set(owner, (owns.get(owner) ?? 0) + slots)
      taken += slots
      return () => {
        taken -= slots
        const left = (owns.get(owner) ?? slots) - slots
        if (left === 0) owns.delete(owner)
        else owns.set(owner, left)
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

const tooLong: Refusal = {
  status: 413,
  code: -32_000,
  message: `A message has at most ${messageBytesMax} bytes.`,
}

const tooManyChunks: Refusal = {
  status: 400,
  code: -32_600,
  message: 'The body has thousands of chunks of a few bytes. Send it with Content-Length, or in larger chunks.',
}

const tooManyMessages: Refusal = {
  status: 400,
  code: -32_600,
  message: `A batch has at most ${batchMax} messages.`,
}

function tooOften(seconds: number): Refusal {
  const headers = { 'Retry-After': String(seconds) }
  return { status: 429, code: -32_002, message: 'Too many messages of your organisation.', headers }
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
