import { isIP } from 'node:net'
import { hostOf, isReachable, parseCustomerUrl, type Reach, type UrlRefusal } from './customer-url.ts'
import {
  ConnectFailure,
  type ConnectionLimits,
  type Connections,
  createConnections,
  failureOf,
  type PostAnswer,
} from './guarded-connections.ts'
import { createPublicLookup, type NameLookup, systemLookup } from './name-lookup.ts'

/** Why a customer's server was not asked, or gave no answer. */
export type PostFailure =
  | UrlRefusal
  | 'header-refused'
  | 'body-too-large'
  | 'name-unknown'
  | ReturnType<typeof failureOf>

/** What came of a request. Text of a stranger stands in an answer, and nothing of the URL in a failure. */
export type PostOutcome =
  | {
      readonly kind: 'answered'
      readonly status: number
      /** The body's beginning as text that a database takes: what is not UTF-8, and U+0000, became U+FFFD. */
      readonly body: string
      /** False where the body went on, or the receiver stopped in the middle of it. */
      readonly isBodyWhole: boolean
      /** The `Retry-After` header as it stood, unless it was long or stood there twice. */
      readonly retryAfter: string | undefined
    }
  | { readonly kind: 'failed'; readonly failure: PostFailure }

export interface GuardedPost {
  readonly url: string
  /** Connections are kept for the requests of one group (an endpoint's id), never shared with another's. */
  readonly group: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export interface GuardedLimits extends ConnectionLimits {
  /** From the look-up of the name to the last byte that is read. */
  readonly totalMs: number
  readonly requestBytesMax: number
  /** How much of an answer is read; the connection of a longer one is closed. */
  readonly answerBytesMax: number
}

export interface GuardedOptions {
  readonly reach: Reach
  readonly lookup?: NameLookup | undefined
  readonly limits?: Partial<GuardedLimits> | undefined
  /** Further roots to trust besides the usual ones, in PEM. */
  readonly ca?: string | undefined
}

/** The one door to the network for URLs that customers gave. */
export interface GuardedFetch {
  post(request: GuardedPost): Promise<PostOutcome>
  close(): Promise<void>
}

const limitsDefault: GuardedLimits = {
  connectMs: 3_000,
  totalMs: 10_000,
  requestBytesMax: 1_048_576,
  answerBytesMax: 1_024,
  headerBytesMax: 16_384,
  connectionsPerGroup: 32,
  groupsMax: 1_024,
}

/** How many of a name's addresses are tried; with `connectMs` for each it stays within `totalMs`. */
const addressesTriedMax = 3

/** The headers that say how a message is carried are the client's own business. */
const carrierHeaders =
  /^(?:host|connection|content-length|transfer-encoding|expect|upgrade|te|trailer|keep-alive|proxy-.*)$/i
const retryAfterLengthMax = 64

interface Door {
  readonly reach: Reach
  readonly lookup: NameLookup
  readonly limits: GuardedLimits
  readonly connections: Connections
}

/**
 * Makes requests that a customer cannot lead astray (server-side request forgery): the URL is judged as it is written; its name is
 * looked up once for each request and every answer must be a public host's; the connection goes to an address of that answer, while
 * the certificate must be the name's; no redirect is followed, no more is read than is asked for, and everything ends in time. A
 * refusal or a fault is an outcome, not a throw.
 */
export function createGuardedFetch(options: GuardedOptions): GuardedFetch {
  const { reach, ca } = options
  const limits = { ...limitsDefault, ...options.limits }
  const lookup = options.lookup ?? (reach === 'public' ? createPublicLookup() : systemLookup)
  const connections = createConnections(limits, ca)
  return {
    post: (request) => post({ reach, lookup, limits, connections }, request),
    close: () => connections.close(),
  }
}

async function post(door: Door, request: GuardedPost): Promise<PostOutcome> {
  const url = parseCustomerUrl(request.url, door.reach)
  if (typeof url === 'string') return failed(url)
  if (request.body.length > door.limits.requestBytesMax) return failed('body-too-large')
  if (!Object.entries(request.headers).every(isSendable)) return failed('header-refused')

  const end = new AbortController()
  const timer = setTimeout(() => end.abort(), door.limits.totalMs)
  try {
    return await postInTime(door, { ...request, url, signal: end.signal })
  } finally {
    clearTimeout(timer)
  }
}

type Sending = Omit<GuardedPost, 'url'> & { readonly url: URL; readonly signal: AbortSignal }

async function postInTime(door: Door, sending: Sending): Promise<PostOutcome> {
  const addresses = await checkedAddresses(door, sending)
  return typeof addresses === 'string' ? failed(addresses) : postToOneOf(door, addresses, sending)
}

function isSendable([name, value]: readonly [string, string]): boolean {
  return /^[a-z0-9-]{1,128}$/i.test(name) && !carrierHeaders.test(name) && /^[\x20-\x7e]{1,8192}$/.test(value)
}

/** A literal address was judged with the URL; of a name, one address that may not be asked rules out all of them. */
async function checkedAddresses(
  { lookup, reach }: Door,
  { url, signal }: Sending,
): Promise<readonly string[] | 'name-unknown' | 'address-refused' | 'timeout'> {
  const host = hostOf(url)
  if (isIP(host) !== 0) return [host]
  try {
    const found = await Promise.race([lookup(host), rejectionOf(signal)])
    if (found.length === 0) return 'name-unknown'
    return found.every((address) => isReachable(address, reach)) ? found : 'address-refused'
  } catch {
    return signal.aborted ? 'timeout' : 'name-unknown'
  }
}

function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** Goes on to the next address only while nothing was sent, so that one attempt is at most one delivery. */
async function postToOneOf(door: Door, addresses: readonly string[], sending: Sending): Promise<PostOutcome> {
  const { group, url } = sending
  const destinations = addresses.map((address) => ({ group, url, address }))
  const isOpen = (to: (typeof destinations)[number]) => Number(door.connections.isOpen(to))
  let failure: PostFailure = 'unreachable'
  for (const to of destinations.sort((left, right) => isOpen(right) - isOpen(left)).slice(0, addressesTriedMax)) {
    try {
      return read(await door.connections.post(to, { ...sending, answerBytesMax: door.limits.answerBytesMax }))
    } catch (error) {
      failure = sending.signal.aborted ? 'timeout' : failureOf(error)
      if (!(error instanceof ConnectFailure)) break
    }
  }
  return failed(failure)
}

function read({ status, headers, bytes, isWhole }: PostAnswer): PostOutcome {
  const retryAfter = headers['retry-after']
  return {
    kind: 'answered',
    status,
    body: bytes.toString('utf8').replaceAll('\u0000', '\ufffd'),
    isBodyWhole: isWhole,
    retryAfter: typeof retryAfter === 'string' && retryAfter.length <= retryAfterLengthMax ? retryAfter : undefined,
  }
}

function failed(failure: PostFailure): PostOutcome {
  return { kind: 'failed', failure }
}
