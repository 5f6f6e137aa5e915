import { hash } from 'node:crypto'
import { addressBlock } from '@purser/protocol'
import type { Clock } from '../clock.ts'
import { type Actor, actorId, type Tenant } from '../ctx.ts'
import { failPlatform } from '../errors.ts'
import type { ReplayCharges } from '../event-streams/replay-cost.ts'
import { type Admission, createLimiter, type RateLimit, rateLimitHeaders } from './limits.ts'

export interface AdmissionLimits {
  readonly keyLimit: RateLimit
  readonly addressLimit: RateLimit
  /**
   * For all callers of an organisation in one environment together, and of the organisations that one account has on the free plan, so that test keys cannot
   * stop live keys; no limit if undefined.
   */
  readonly organisationLimit?: RateLimit | undefined
}

/** The response to a request that is admitted, or refused. */
export interface Headed {
  headers(values: Record<string, string>): unknown
}

interface Caller {
  readonly id: string
  /** The share owner in one environment. */
  readonly owner: string
}

/** Counts requests without a credential against a limit of their address. */
interface AdmitAddress {
  /** Counts a request without a valid credential. */
  address(ip: string, reply: Headed, cost?: number): void
  /** Charges the additional cost of a request without a credential after its response. It delays the next requests of the address. */
  oweAddress(ip: string, cost: number): void
}

/** Counts requests against the limits of their callers. Each function throws 429 beyond a limit. */
export interface Admit extends AdmitAddress {
  /** Of files that a page of the dashboard or of the reference requests together. */
  readonly staticFiles: AdmitAddress
  /** Counts a request of an identified caller. */
  caller(caller: Caller, reply: Headed): void
  /** Counts what a request costs beyond the one that admitted it. */
  cost(caller: Caller, cost: number, reply: Headed): void
  /**
   * Charges the additional cost of a request after its response, or while a stream sends it. It delays the caller's next requests. Returns the seconds
   * until half of the caller's limits is left again.
   */
  owe(caller: Caller, cost: number): number
  /** Takes the turn of an overdue page of past events, of which a caller has one in five seconds, and all callers of an owner together one a second. */
  takeOverdue(caller: Caller): boolean
  /** As `cost`, for a guest and all guests of the same owner. */
  guestCost(guest: Caller, cost: number, reply: Headed): void
  /** As `owe`, for a guest and for the expensive requests of all guests of the same owner: other callers of its address do not wait. */
  oweGuest(guest: Caller, cost: number): number
  /** Counts a request of a guest against its address. Refuses it while the guest has a debt. */
  guest(guest: { readonly id: string; readonly ip: string }, reply: Headed): void
  /**
   * Counts a look-up of a credential that this process does not know as valid: beyond the address's limit, guessed credentials do not reach
   * the database. Of a person's known session it takes the person's token, so that sessions beyond their limit do not reach it either.
   */
  lookup(ip: string, credential: string, reply: Headed): LookUp
  /** Records whether the credential was valid, with the person of a session, and returns the token that its look-up took. */
  found(looked: LookUp, found: FoundCredential): void
}

/** Files of an address: the dashboard about 40 times at once, and then 12 MB a second. */
const staticFilesLimit: RateLimit = { perSecond: 200, burst: 3_000 }

/** Overdue pages of past events of one caller, and of all callers of one owner. */
const overdueLimits = { caller: { perSecond: 1 / 5, burst: 1 }, owner: { perSecond: 1, burst: 1 } }

/** Most credentials that a process remembers as valid. */
const knownMax = 100_000

/** A look-up of a credential, which is remembered by its hash, never as text. */
export interface LookUp {
  readonly name: string
  /** The caller whose token the look-up took. */
  readonly takenFrom: string | undefined
}

export interface FoundCredential {
  readonly isValid: boolean
  /** The id of the person whose session it is. */
  readonly personId?: string | undefined
}

/** Returns the functions that charge an admitted request beyond its first token: `charge` before its work is done, `owe` after its response. */
export function chargesOf(
  admit: Admit,
  acting: Acting,
  reply: Headed,
): { charge(cost: number): void; owe(cost: number): number } {
  const caller = callerOf(acting)
  const [charge, owe] = acting.actor.kind === 'guest' ? [admit.guestCost, admit.oweGuest] : [admit.cost, admit.owe]
  return { charge: (cost) => charge(caller, cost, reply), owe: (cost) => owe(caller, cost) }
}

/** Returns what charges a caller while a stream sends past events. It gets no part of the request, which an open stream would keep in memory. */
export function replayChargesOf(admit: Admit, acting: Acting): ReplayCharges {
  const caller = callerOf(acting)
  const owe = acting.actor.kind === 'guest' ? admit.oweGuest : admit.owe
  return { owe: (cost) => owe(caller, cost), takeOverdue: () => admit.takeOverdue(caller) }
}

interface Acting {
  readonly actor: Actor
  readonly shareOwner: string
  readonly tenant: Pick<Tenant, 'environment'>
}

/** Returns the name and the owner under which the limits count a caller. */
export function callerOf({ actor, shareOwner, tenant: { environment } }: Acting): Caller {
  return { id: actor.kind === 'guest' ? actor.guestId : actorId(actor), owner: `${shareOwner}/${environment}` }
}

/** Creates the limits of one server. They are kept in this process's memory. */
export function createAdmission(limits: AdmissionLimits, clock: Clock): Admit {
  const { keyLimit, addressLimit, organisationLimit } = limits
  const byKey = createLimiter(keyLimit, clock)
  const byGuest = createLimiter(addressLimit, clock)
  const guestsLimit = organisationLimit ?? keyLimit
  // The guests of one vault keep those of others waiting for seconds, not minutes; each guest itself owes the rest.
  const byGuestsOf = createLimiter(guestsLimit, clock, 'its-burst')
  const lookups = createLimiter(addressLimit, clock)
  // One key's reads keep the account's other keys waiting for seconds, not minutes; the key itself owes the rest.
  const byOrganisation =
    organisationLimit === undefined ? undefined : createLimiter(organisationLimit, clock, 'its-burst')
  const overdue = createLimiter(overdueLimits.caller, clock)
  const overdueOfOwners = createLimiter(overdueLimits.owner, clock)
  const known = new Map<string, string | undefined>()
  const check = (limit: RateLimit, admission: Admission, reply: Headed): void => {
    reply.headers(rateLimitHeaders(limit, admission))
    if (!admission.admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: admission.resetSeconds })
  }
  const count: Admit['cost'] = ({ id, owner }, cost, reply) => {
    check(keyLimit, byKey(id, cost), reply)
    const shared = byOrganisation?.(owner, cost)
    if (organisationLimit === undefined || shared === undefined || shared.admitted) return
    // A request that is refused owes nothing.
    byKey.owe(id, -cost)
    check(organisationLimit, shared, reply)
  }
  const ofAddresses = (limit: RateLimit): AdmitAddress => {
    // Several people may share an address, so that it owes little.
    const byBlock = createLimiter(limit, clock, 'its-burst')
    return {
      address: (ip, reply, cost) => check(limit, byBlock(addressBlock(ip), cost), reply),
      oweAddress: (ip, cost) => byBlock.owe(addressBlock(ip), cost),
    }
  }
  const strangers = ofAddresses(addressLimit)
  return {
    ...strangers,
    staticFiles: ofAddresses(staticFilesLimit),
    caller: (caller, reply) => count(caller, 1, reply),
    cost: count,
    owe: ({ id, owner }, cost) => Math.max(byKey.owe(id, cost), byOrganisation?.owe(owner, cost) ?? 0),
    takeOverdue({ id, owner }) {
      const isFree = overdueOfOwners(owner, 0).remaining > 0
      return isFree && overdue(id).admitted && overdueOfOwners(owner).admitted
    },
    guestCost({ id, owner }, cost, reply) {
      check(addressLimit, byGuest(id, cost), reply)
      const shared = byGuestsOf(owner, cost)
      if (shared.admitted) return
      byGuest.owe(id, -cost)
      check(guestsLimit, shared, reply)
    },
    oweGuest: ({ id, owner }, cost) => Math.max(byGuest.owe(id, cost), byGuestsOf.owe(owner, cost)),
    guest({ id, ip }, reply) {
      strangers.address(ip, reply)
      const own = byGuest(id, 0)
      if (!own.admitted) check(addressLimit, own, reply)
    },
    lookup(ip, credential, reply) {
      const name = hash('sha256', credential, 'base64url')
      const takenFrom = known.get(name)
      if (takenFrom !== undefined) check(keyLimit, byKey(takenFrom), reply)
      if (known.has(name)) return { name, takenFrom }
      const admission = lookups(addressBlock(ip))
      if (!admission.admitted) check(addressLimit, admission, reply)
      return { name, takenFrom }
    },
    found({ name, takenFrom }, { isValid, personId }) {
      if (takenFrom !== undefined) byKey.owe(takenFrom, -1)
      // While there are slots enough, the order in which credentials were used last decides nothing.
      if (isValid && known.size < knownMax / 2 && known.has(name)) return
      known.delete(name)
      if (!isValid) return
      if (known.size >= knownMax) known.delete(known.keys().next().value ?? '')
      known.set(name, personId)
    },
  }
}
