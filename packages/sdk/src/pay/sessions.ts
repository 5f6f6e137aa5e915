import type { Address } from '@purser/protocol'
import { discard } from './bounded.ts'
import { offersOf } from './challenge.ts'
import { whyNotThere } from './choose.ts'
import type { Reading } from './offers.ts'
import type { Payer } from './payer.ts'
import { type Call, carriesCredential } from './request.ts'

/** Carries a session that a payment bought. Its value is a secret: who has it has the access. */
export const sessionHeader = 'x-service-session-id'

const originsMax = 1_000
const walletsMax = 16
/** A seller's text that is sent back to it: nothing that a header cannot hold, and not much of it. */
const tokenPattern = /^[\x21-\x7e]{1,512}$/

/**
 * The sessions that were paid for: at each origin one for each wallet that was paid. Kept in this process's memory alone, and for a week,
 * which no session outlasts. A 402 does not end one: the route may be one that takes no sessions.
 */
export interface SessionJar {
  /** Puts a session in the place of the one before it, and before those of other wallets. */
  keep(origin: string, session: HeldSession): void
  /** Those of an origin, the last one that was kept first. */
  at(origin: string): readonly HeldSession[]
}

export interface HeldSession {
  readonly payTo: Address
  readonly token: string
}

const secondsMax = 604_800

type Kept = HeldSession & { readonly endsAtMs: number }

export function memoryJar(now: () => number): SessionJar {
  const origins = new Map<string, Map<Address, Kept>>()
  return {
    keep: (origin, { payTo, token }) => {
      if (!tokenPattern.test(token)) return
      const held = origins.get(origin) ?? new Map<Address, Kept>()
      const known = held.get(payTo)
      const endsAtMs = known?.token === token ? known.endsAtMs : now() + secondsMax * 1_000
      renew(held, payTo, { payTo, token, endsAtMs }, walletsMax)
      renew(origins, origin, held, originsMax)
    },
    at: (origin) => {
      const held = [...(origins.get(origin)?.values() ?? [])]
      return held.filter(({ endsAtMs }) => endsAtMs > now()).reverse()
    },
  }
}

/** Sets it as the newest; the oldest goes where there are too many. */
function renew<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= most) return
    map.delete(oldest)
  }
}

/** What came of a call without paying: an answer, or a 402 with offers that have been read. */
export interface Unpaid {
  readonly response: Response
  /** Empty where there is nothing to pay. */
  readonly readings: readonly Reading[]
}

/**
 * Sends a call with the session that was paid for at its origin, if there is one. A 402 names the wallets that it sells for: a session
 * of one of them that was not tried is tried, once. Ends with an answer, or with what is to be paid. A call with a session follows no
 * redirect: who it leads to has no part in the session.
 */
export async function sendUnpaid(payer: Payer, call: Call): Promise<Unpaid> {
  const { origin } = call.url
  const sessions = mayCarrySession(payer, call) ? (payer.sessions?.at(origin) ?? []) : []
  const [latest] = sessions
  const first = await sendWith(payer, call, latest)
  const another = sessions.find((session) => session !== latest && payeesOf(first).has(session.payTo))
  if (another === undefined) return first
  discard(first.response)
  return sendWith(payer, call, another)
}

async function sendWith(payer: Payer, call: Call, session: HeldSession | undefined): Promise<Unpaid> {
  const response = await call.send(payer.fetch, session && carrying(call, session.token))
  if (response.status === 402) {
    const isOwn = carriesCredential(call.headers)
    return { response, readings: isOwn ? [] : await offersOf(payer, response, call.headers) }
  }
  if (session !== undefined) payer.sessions?.keep(call.url.origin, session)
  return { response, readings: [] }
}

function payeesOf({ readings }: Unpaid): ReadonlySet<Address> {
  return new Set(readings.flatMap((reading) => ('quote' in reading ? [reading.quote.payTo] : [])))
}

/** A session goes where money may go, and not beside a session of the caller's own. */
function mayCarrySession(payer: Payer, call: Call): boolean {
  const isFree = !call.headers.has(sessionHeader) && !carriesCredential(call.headers)
  return isFree && whyNotThere(payer, call.url) === undefined
}

function carrying(call: Call, token: string): RequestInit {
  const headers = new Headers(call.headers)
  headers.set(sessionHeader, token)
  return { headers, redirect: 'manual' }
}
