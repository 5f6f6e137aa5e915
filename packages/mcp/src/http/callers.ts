import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, type McpServer, type Server } from '@modelcontextprotocol/server'
import { addressBlock, addressSite, parseApiKey } from '@purser/protocol'
import { createPurser, PurserError } from '@purser/sdk'
import type { Waiting } from '../call.ts'
import { openKeys } from '../keys.ts'
import type { RequestContext, Served } from '../server.ts'
import { followCalls } from './followed-calls.ts'
import { messageBytesMax } from './message.ts'

/** The state that all callers share. */
export interface HandlerOptions {
  readonly baseUrl: string
  /** The server for one request. `waitingOf` follows a call of a tool. */
  readonly serverOf: (deps: CallerDeps, waitingOf: (request: RequestContext) => Waiting) => Server | McpServer
  readonly onError: (error: Error) => void
}

/** The state of one API key. */
type CallerDeps = Pick<Served, 'purser' | 'environment' | 'keys'>

/** A request that a server received: it has a method and a URL. */
export type RequestMessage = IncomingMessage & { readonly method: string; readonly url: string }

/** A request whose body was read. */
type ReadRequest = Pick<RequestMessage, 'method' | 'url' | 'headers'> & AsyncIterable<Buffer>

/** The owner of an API key that the service knows. */
export interface Caller {
  readonly handle: (req: ReadRequest, res: ServerResponse) => Promise<void>
  /** The owner of the share to which the key's use counts, which each response to it names, whatever its scopes. */
  shareOwner: string
  /** The number of requests that are not answered yet. */
  running: number
  /** The time at which the service last confirmed the key, in milliseconds of the server's clock. */
  checkedAt: number
}

/**
 * The reason why a key is not served: the service does not know it, too many unknown keys were sent, or it cannot be
 * checked.
 */
export type Refused = 'unknown' | 'too-many' | 'unavailable'

const callersMax = 1_000
/** The owner of keys whose service reports none. They share the limits of one. */
const unnamed = 'unnamed'
/**
 * Limits for API keys that the service does not know, per minute: from one network address, and from all. A site (`addressSite`) has half of what the
 * others leave, because it may have any number of addresses. When the total is reached, each site gets an equal share, at least one. The service
 * limits this server's address to 900, so these limits must stay below.
 */
const unknownPerAddressMax = 60
const unknownPerMinuteMax = 600
const minuteMs = 60_000

/**
 * Most streams of one key, half of its requests: each occupies a connection for as long as its client likes, and the clients of a team that share
 * a key open one each.
 */
const maxSubscriptions = 16

/**
 * Finds the caller of each API key. A key is checked with the service when it is first used, and again when its last check is older than a minute: many
 * messages call nothing of the service, which would refuse a revoked key. A known key stays known while the service cannot check it. Keys are in memory
 * alone, by their digest. `address` is the caller's network address.
 */
export function openCallers(
  options: HandlerOptions,
  now: () => number = () => performance.now(),
): (apiKey: string, address: string) => Promise<Caller | Refused> {
  const known = new Map<string, Caller>()
  /** Open calls of all keys. They outlast the callers, so a key that was forgotten finds its own again. */
  const keysOf = openKeys(now, () => `mcp-${randomUUID()}`)
  const unknown = new Map<string, UnknownKey>()
  const checking = new Map<string, Promise<Caller | Refused>>()
  const tried = triedKeys()

  async function check(apiKey: string, name: string, environment: 'test' | 'live'): Promise<Caller | Refused> {
    const found = await ownerOf(apiKey, options.baseUrl)
    if (typeof found === 'string') return found
    if (!hasCapacity(known)) return 'unavailable'
    const purser = createPurser({ apiKey, baseUrl: options.baseUrl })
    const deps = { purser, environment, keys: keysOf({ name, ...found }) }
    const caller = { ...callerOf(options, deps), ...found, running: 0, checkedAt: now() }
    known.set(name, caller)
    return caller
  }

  async function checkAgain(apiKey: string, name: string, caller: Caller): Promise<Caller | Refused> {
    const found = await ownerOf(apiKey, options.baseUrl)
    if (found === 'unknown') {
      known.delete(name)
      unknown.set(name, { at: now(), forget: () => undefined })
      return 'unknown'
    }
    if (typeof found === 'object') caller.shareOwner = found.shareOwner
    caller.checkedAt = now()
    return caller
  }

  /** Several requests with one key share its check. */
  function once(name: string, check: () => Promise<Caller | Refused>): Promise<Caller | Refused> {
    const checked = checking.get(name) ?? check().finally(() => checking.delete(name))
    checking.set(name, checked)
    return checked
  }

  return async (apiKey, address) => {
    const environment = parseApiKey(apiKey)?.environment
    if (environment === undefined) return 'unknown'
    const name = createHash('sha256').update(apiKey).digest('base64')
    const caller = known.get(name)
    if (caller !== undefined) {
      known.delete(name)
      known.set(name, caller)
      if (now() - caller.checkedAt < minuteMs) return caller
      return once(name, () => checkAgain(apiKey, name, caller))
    }
    forgetEarlier(unknown, now() - minuteMs)
    if (unknown.has(name)) return 'unknown'
    const pending = checking.get(name)
    if (pending !== undefined) return pending
    const forget = tried.take(address)
    if (forget === undefined) return 'too-many'
    try {
      const found = await once(name, () => check(apiKey, name, environment))
      if (found !== 'unknown') forget()
      else unknown.set(name, { at: now(), forget })
      return found
    } catch (error) {
      forget()
      throw error
    }
  }
}

interface UnknownKey {
  readonly at: number
  readonly forget: () => void
}

/** Forgets keys that were unknown before this time. They are in the order of their times. */
function forgetEarlier(unknown: Map<string, UnknownKey>, since: number): void {
  for (const [name, { at, forget }] of unknown) {
    if (at > since) break
    forget()
    unknown.delete(name)
  }
}

/** Returns the owner of a key's share, or why there is none. A service of an earlier version names the organisation alone. */
async function ownerOf(
  apiKey: string,
  baseUrl: HandlerOptions['baseUrl'],
): Promise<{ readonly shareOwner: string } | Refused> {
  let shareOwner = unnamed
  const naming: typeof fetch = async (...request) => {
    const response = await fetch(...request)
    const { headers } = response
    shareOwner = headers.get('x-service-share') ?? headers.get('x-service-organisation') ?? unnamed
    return response
  }
  try {
    await createPurser({ apiKey, baseUrl, fetch: naming }).request('GET', '/organisations/current')
  } catch (error) {
    if (!(error instanceof PurserError)) throw error
    if (error.status === 401) return 'unknown'
    // Any other refusal (4xx) proves that the service knows the key.
    if (error.status !== 403) return 'unavailable'
  }
  return { shareOwner }
}

/**
 * Counts the keys that are checked or were unknown, by the addresses and sites that sent them. `take` returns the function that forgets one, or undefined
 * if its address or its site has sent too many, so that invented keys of some do not block others. Its time does not depend on their number.
 */
function triedKeys() {
  const ofBlocks = new Map<string, number>()
  const ofSites = new Map<string, number>()
  let all = 0
  const add = (counts: Map<string, number>, name: string, more: 1 | -1): void => {
    const count = (counts.get(name) ?? 0) + more
    if (count === 0) counts.delete(name)
    else counts.set(name, count)
  }
  return {
    take(address: string): (() => void) | undefined {
      const [block, site] = [addressBlock(address), addressSite(address)]
      const own = ofSites.get(site) ?? 0
      const left = unknownPerMinuteMax - (all - own)
      const share = own > 0 && all >= unknownPerMinuteMax ? unknownPerMinuteMax / ofSites.size : Math.max(1, left / 2)
      if (own >= share || (ofBlocks.get(block) ?? 0) >= unknownPerAddressMax) return undefined
      const count = (more: 1 | -1): void => {
        add(ofBlocks, block, more)
        add(ofSites, site, more)
        all += more
      }
      count(1)
      return () => count(-1)
    },
  }
}

/** Forgets the least recently seen caller that has no running request. */
function hasCapacity(known: Map<string, Caller>): boolean {
  if (known.size < callersMax) return true
  for (const [name, { running }] of known) {
    if (running > 0) continue
    known.delete(name)
    return true
  }
  return false
}

/** Each request gets its own MCP server, so consecutive requests of a client may reach different processes. */
function callerOf({ serverOf, onError }: HandlerOptions, deps: CallerDeps): Pick<Caller, 'handle'> {
  const calls = followCalls()
  const connections = new AsyncLocalStorage<AbortSignal>()
  const handler = createMcpHandler(
    ({ era }) => {
      const connection = connections.getStore()
      const served = serverOf(deps, (request) => calls.follow(request, connection))
      const server = 'server' in served ? served.server : served
      if (era === 'legacy')
        server.setNotificationHandler('notifications/cancelled', ({ params: { requestId } }) => {
          if (requestId !== undefined) calls.cancel(requestId)
        })
      return served
    },
    { onerror: onError, maxRequestBodySize: messageBytesMax, maxSubscriptions },
  )
  const handle = toNodeHandler(handler, { onerror: onError, maxRequestBodySize: messageBytesMax })
  return {
    handle: (req, res) => connections.run(closedBeforeEnd(res), () => handle(req, res)),
  }
}

/**
 * A signal that aborts if the connection closes before the response was sent. The signal of the request that the handler
 * passes on does not always abort: it is a clone's, and follows an original that Node may have collected.
 */
function closedBeforeEnd(res: ServerResponse): AbortSignal {
  const closing = new AbortController()
  res.once('close', () => {
    if (!res.writableFinished) closing.abort()
  })
  if (res.destroyed) closing.abort()
  return closing.signal
}
