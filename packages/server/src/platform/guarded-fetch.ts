import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import {
  type CustomerUrls,
  hostOf,
  isReachable,
  parseCustomerUrl,
  type Reach,
  type UrlRefusal,
} from './customer-url.ts'
import { type Deadline, startDeadline } from './deadline.ts'
import {
  ConnectFailure,
  type ConnectionLimits,
  type Connections,
  createConnections,
  failureOf,
  type GuardedMethod,
  type RawResponse,
} from './guarded-connections.ts'
import { inClientSpan } from './tracing/spans.ts'

/** The reason why a customer's server was not called, or gave no response. */
type PostFailure = UrlRefusal | 'header-refused' | 'body-too-large' | 'name-unknown' | ReturnType<typeof failureOf>

/** Result of a request. A response contains untrusted text; a failure contains nothing of the URL. */
export type PostOutcome =
  | {
      readonly kind: 'responded'
      readonly status: number
      /** The beginning of the body as text that a database accepts: bytes that are not UTF-8, and U+0000, are replaced by U+FFFD. */
      readonly body: string
      /** False if the body was longer, or the receiver stopped in the middle of it. */
      readonly isBodyWhole: boolean
      /** The `Retry-After` header, unless it was too long or repeated. */
      readonly retryAfter: string | undefined
    }
  | Failed

interface Failed {
  readonly kind: 'failed'
  readonly failure: PostFailure
}

/** A response as it was received, untrusted in every part. */
export type SendOutcome = ({ readonly kind: 'responded' } & RawResponse) | Failed

interface GuardedRequest {
  readonly method: GuardedMethod
  readonly url: string
  /** Connections are kept per group (an endpoint's id), and never shared with another. */
  readonly group: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
}

export type GuardedPost = Omit<GuardedRequest, 'method' | 'body'> & { readonly body: Uint8Array }

interface GuardedLimits extends ConnectionLimits {
  /** From the look-up of the name to the last byte that is read. */
  readonly totalMs: number
  readonly requestBytesMax: number
  /** Longest value of a header field that is sent. */
  readonly fieldLengthMax: number
}

export interface GuardedOptions extends CustomerUrls {
  readonly lookup?: NameLookup | undefined
  readonly limits?: Partial<GuardedLimits> | undefined
  /** Additional trusted roots, in PEM. */
  readonly ca?: string | undefined
}

/** The only way to send requests to URLs of customers. */
export interface GuardedFetch {
  post(request: GuardedPost): Promise<PostOutcome>
  send(request: GuardedRequest): Promise<SendOutcome>
  close(): Promise<void>
}

const limitsDefault: GuardedLimits = {
  connectMs: 3_000,
  totalMs: 10_000,
  requestBytesMax: 1_048_576,
  fieldLengthMax: 8_192,
  responseBytesMax: 1_024,
  headerBytesMax: 16_384,
  connectionsPerGroup: 32,
  groupsMax: 1_024,
}

/** Most addresses of a name that are tried; with `connectMs` for each it stays within `totalMs`. */
const addressesTriedMax = 3

/** Headers about the transport of a message, which only the client sets. */
const carrierHeaders =
  /^(?:host|connection|content-length|transfer-encoding|expect|upgrade|te|trailer|keep-alive|proxy-.*)$/i
const retryAfterLengthMax = 64

interface FetchContext {
  readonly reach: Reach
  readonly parse: (url: string) => URL | UrlRefusal
  readonly isSendableName: (name: string) => boolean
  readonly lookup: NameLookup
  readonly limits: GuardedLimits
  readonly connections: Connections
}

/**
 * Sends requests that are safe from server-side request forgery: the URL is checked as written; its name is looked up once per request, and
 * every address must be a public host's; the connection goes to one of those addresses, while the certificate must match the name; no
 * redirect is followed, the read is limited, and everything has a timeout. A refusal or a fault is returned, not thrown.
 */
export function createGuardedFetch(options: GuardedOptions): GuardedFetch {
  const { reach, ca } = options
  const limits = { ...limitsDefault, ...options.limits }
  const lookup = options.lookup ?? (reach === 'public' ? createPublicLookup() : systemLookup)
  const connections = createConnections(limits, ca)
  const context: FetchContext = {
    reach,
    parse: createUrlParser(options),
    isSendableName: createNameCheck(),
    lookup,
    limits,
    connections,
  }
  return {
    post: async (request) => read(await send(context, { ...request, method: 'POST' })),
    send: (request) => send(context, request),
    close: () => connections.close(),
  }
}

/** Most URLs whose result is remembered; beyond them all are parsed anew. */
const parsedMax = 1_024

/** Remembers results of `parseCustomerUrl`, which depend on nothing but the text and the deployment: each delivery to an endpoint has the same URL. */
function createUrlParser(urls: CustomerUrls): FetchContext['parse'] {
  const parsed = new Map<string, URL | UrlRefusal>()
  return (text) => {
    const known = parsed.get(text)
    if (known !== undefined) return known
    const url = parseCustomerUrl(text, urls)
    if (parsed.size >= parsedMax) parsed.clear()
    parsed.set(text, url)
    return url
  }
}

/** Most names of header fields whose result is remembered. */
const namesMax = 1_024

/** Remembers results of `isSendableName`: each delivery has the same names. */
function createNameCheck(): FetchContext['isSendableName'] {
  const checked = new Map<string, boolean>()
  return (name) => {
    const known = checked.get(name)
    if (known !== undefined) return known
    const is = isSendableName(name)
    if (checked.size >= namesMax) checked.clear()
    checked.set(name, is)
    return is
  }
}

async function send(context: FetchContext, request: GuardedRequest): Promise<SendOutcome> {
  const url = context.parse(request.url)
  if (typeof url === 'string') return failed(url)
  if ((request.body?.length ?? 0) > context.limits.requestBytesMax) return failed('body-too-large')
  const { isSendableName, limits } = context
  for (const name of Object.keys(request.headers)) {
    const value = request.headers[name] ?? ''
    if (value.length > limits.fieldLengthMax || !isSendableName(name) || !isSendableValue(value))
      return failed('header-refused')
  }

  const deadline = startDeadline(context.limits.totalMs)
  try {
    return await inClientSpan(
      { method: request.method, url },
      (traceHeaders) => {
        const headers = { ...traceHeaders, ...request.headers }
        return sendInTime(context, { ...request, headers, url, deadline })
      },
      (outcome) => (outcome.kind === 'responded' ? outcome.status : undefined),
    )
  } finally {
    deadline.cancel()
  }
}

type Sending = Omit<GuardedRequest, 'url'> & { readonly url: URL; readonly deadline: Deadline }

async function sendInTime(context: FetchContext, sending: Sending): Promise<SendOutcome> {
  const addresses = await checkedAddresses(context, sending)
  return typeof addresses === 'string' ? failed(addresses) : sendToOneOf(context, addresses, sending)
}

/** Whether a header field is printable ASCII that is not empty, and not about the transport. */
export function isSendable([name, value]: readonly [string, string]): boolean {
  return isSendableName(name) && isSendableValue(value)
}

function isSendableName(name: string): boolean {
  return /^[a-z0-9-]{1,128}$/i.test(name) && !carrierHeaders.test(name)
}

function isSendableValue(value: string): boolean {
  return /^[\x20-\x7e]+$/.test(value)
}

/** Most addresses of a name. An answer of name servers may have thousands, whose checks would take 20 ms of each request. */
const addressesMax = 64

/** Returns the addresses to try. A literal address was checked with the URL; one forbidden address of a name rules out all of them, as too many do. */
async function checkedAddresses(
  { lookup, reach }: FetchContext,
  { url, deadline }: Sending,
): Promise<readonly string[] | 'name-unknown' | 'address-refused' | 'timeout'> {
  const host = hostOf(url)
  if (isIP(host) !== 0) return [host]
  try {
    const found = await Promise.race([lookup(host), rejectionOf(deadline)])
    if (found.length === 0) return 'name-unknown'
    if (found.length > addressesMax) return 'address-refused'
    return found.every((address) => isReachable(address, reach)) ? found : 'address-refused'
  } catch {
    return deadline.isOver ? 'timeout' : 'name-unknown'
  }
}

function rejectionOf(deadline: Deadline): Promise<never> {
  return new Promise((_, reject) => {
    deadline.onOver = () => reject(new Error('the time limit is over'))
  })
}

/** Tries the next address only while nothing was sent, so that one attempt is at most one delivery. */
async function sendToOneOf(
  context: FetchContext,
  addresses: readonly string[],
  sending: Sending,
): Promise<SendOutcome> {
  const { group, url } = sending
  const destinations = addresses.map((address) => ({ group, url, address }))
  const isOpen = (to: (typeof destinations)[number]) => Number(context.connections.isOpen(to))
  if (destinations.length > 1) destinations.sort((left, right) => isOpen(right) - isOpen(left))
  let failure: PostFailure = 'unreachable'
  for (const to of destinations.slice(0, addressesTriedMax)) {
    try {
      return { kind: 'responded', ...(await context.connections.send(to, sending)) }
    } catch (error) {
      failure = sending.deadline.isOver ? 'timeout' : failureOf(error)
      if (!(error instanceof ConnectFailure)) break
    }
  }
  return failed(failure)
}

function read(outcome: SendOutcome): PostOutcome {
  if (outcome.kind === 'failed') return outcome
  const { status, headers, bytes, isWhole } = outcome
  const retryAfter = headers['retry-after']
  return {
    kind: 'responded',
    status,
    body: bytes.length === 0 ? '' : bytes.toString('utf8').replaceAll('\u0000', '\ufffd'),
    isBodyWhole: isWhole,
    retryAfter: typeof retryAfter === 'string' && retryAfter.length <= retryAfterLengthMax ? retryAfter : undefined,
  }
}

function failed(failure: PostFailure): Failed {
  return { kind: 'failed', failure }
}

/** All current addresses of a name, as text, IPv4 first. Rejects, or returns none, if there is none. */
export type NameLookup = (name: string) => Promise<readonly string[]>

const attemptMsMax = 2_000
const attemptsMax = 2

/**
 * Queries the name servers directly. The hosts file and search domains are ignored, so that no short name leads into the deployment's own
 * networks. No thread waits, so that slow name servers of one customer do not delay other look-ups (the system's own look-up has four
 * threads for the whole process). `servers` replaces the machine's name servers: addresses with or without a port.
 */
export function createPublicLookup(servers?: readonly string[]): NameLookup {
  const resolver = new Resolver({ timeout: attemptMsMax, tries: attemptsMax })
  if (servers !== undefined) resolver.setServers(servers)
  return async (name) => {
    const responses = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    return responses.flatMap((response) => (response.status === 'fulfilled' ? response.value : []))
  }
}

/** Resolves as other programs of the machine do, including the hosts file: for development, where receivers are called `localhost`. */
export const systemLookup: NameLookup = async (name) => {
  const found = await lookup(name, { all: true, order: 'ipv4first' })
  return found.map(({ address }) => address)
}
