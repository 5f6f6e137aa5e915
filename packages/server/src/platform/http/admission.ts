import { hash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { Clock } from '../clock.ts'
import { failPlatform } from '../errors.ts'
import { type Admission, createLimiter, type RateLimit, rateLimitHeaders } from './limits.ts'

export interface AdmissionLimits {
  readonly keyLimit: RateLimit
  readonly addressLimit: RateLimit
  /** For all callers of an organization together, and of the organizations that one account has on the free plan; no limit if undefined. */
  readonly organisationLimit?: RateLimit | undefined
}

/** The response to a request that is admitted, or refused. */
interface Headed {
  headers(values: Record<string, string>): unknown
}

/** Counts requests against the limits of their callers. Each function throws 429 beyond a limit. */
export interface Admit {
  /** Counts a request of an identified caller. */
  caller(caller: { readonly id: string; readonly placeOwner: string }, reply: Headed): void
  /** Counts what a request costs beyond the one that admitted it. */
  cost(caller: { readonly id: string; readonly placeOwner: string }, cost: number, reply: Headed): void
  /** Counts what an answered request turned out to cost: it is not refused, and the caller's next requests wait. */
  owe(caller: { readonly id: string; readonly placeOwner: string }, cost: number): void
  /** As `owe`, for a request without a key of its own. */
  oweAddress(ip: string, cost: number): void
  /** Counts a request without a valid credential. */
  address(ip: string, reply: Headed): void
  /**
   * Counts a look-up of a credential that this process does not know as valid: beyond the address's limit, guessed credentials do not reach
   * the database.
   */
  lookup(ip: string, credential: string, reply: Headed): void
  /** Records whether a credential was valid. */
  found(credential: string, isValid: boolean): void
}

/** Most credentials that a process remembers as valid. */
const knownMax = 100_000

/** Creates the limits of one server. They are kept in this process's memory. */
export function createAdmission(limits: AdmissionLimits, clock: Clock): Admit {
  const { keyLimit, addressLimit, organisationLimit } = limits
  const byKey = createLimiter(keyLimit, clock)
  const byAddress = createLimiter(addressLimit, clock)
  const lookups = createLimiter(addressLimit, clock)
  const byOrganisation = organisationLimit === undefined ? undefined : createLimiter(organisationLimit, clock)
  const known = new Set<string>()
  const check = (limit: RateLimit, admission: Admission, reply: Headed): void => {
    reply.headers(rateLimitHeaders(limit, admission))
    if (!admission.admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: admission.resetSeconds })
  }
  const count: Admit['cost'] = ({ id, placeOwner }, cost, reply) => {
    check(keyLimit, byKey(id, cost), reply)
    if (organisationLimit === undefined || byOrganisation === undefined) return
    const admission = byOrganisation(placeOwner, cost)
    if (!admission.admitted) check(organisationLimit, admission, reply)
  }
  return {
    caller: (caller, reply) => count(caller, 1, reply),
    cost: count,
    owe({ id, placeOwner }, cost) {
      byKey.owe(id, cost)
      byOrganisation?.owe(placeOwner, cost)
    },
    oweAddress: (ip, cost) => byAddress.owe(addressBlock(ip), cost),
    address: (ip, reply) => check(addressLimit, byAddress(addressBlock(ip)), reply),
    lookup(ip, credential, reply) {
      if (known.has(nameOf(credential))) return
      const admission = lookups(addressBlock(ip))
      if (!admission.admitted) check(addressLimit, admission, reply)
    },
    found(credential, isValid) {
      const name = nameOf(credential)
      known.delete(name)
      if (!isValid) return
      if (known.size >= knownMax) known.delete(known.values().next().value ?? '')
      known.add(name)
    },
  }
}

/** A credential is remembered by its hash, never as text. */
function nameOf(credential: string): string {
  return hash('sha256', credential, 'base64url')
}

/**
 * Returns what a limit per address counts: an IPv4 address, or the /64 of an IPv6 address, which one host has to itself. An IPv4 address
 * that is mapped into IPv6 is the IPv4 address. Some proxies forward the port too, which is another one for each connection.
 */
export function addressBlock(forwarded: string): string {
  const ip = /^\[([^\]]*)\](?::\d+)?$/.exec(forwarded)?.[1] ?? /^([\d.]+):\d+$/.exec(forwarded)?.[1] ?? forwarded
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(ip)) return ip
  const [head = '', tail] = (ip.split('%')[0] ?? '').split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last].slice(0, 4)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}
