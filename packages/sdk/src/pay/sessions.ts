import { type Address, carriesCredential } from '@purser/protocol'
import { discard } from './bounded.ts'
import { offersOf } from './challenge.ts'
import { whyNotThere } from './choose.ts'
import type { Payer } from './payer.ts'
import type { Reading } from './quotes.ts'
import type { Call } from './request.ts'

/** The header with a session. Its value is a secret that grants access. */
export const sessionHeader = 'x-service-session-id'

const originsMax = 1_000
const walletsMax = 16
/** A valid session value: the seller's text, limited in characters and length. */
const tokenPattern = /^[\x21-\x7e]{1,512}$/

/**
 * Stores the sessions that were paid for, one per origin and paid wallet, in memory for at most a week, the longest
 * lifetime of a session. A 402 does not delete one, because the route may not accept sessions.
 */
export interface SessionJar {
  /** Stores a session as the newest of its origin, replacing the one for the same wallet. */
  keep(origin: string, session: StoredSession): void
  /** The sessions of an origin, newest first. */
  at(origin: string): readonly StoredSession[]
}

interface StoredSession {
  readonly payTo: Address
  readonly token: string
}

const secondsMax = 604_800

type Kept = StoredSession & { readonly endsAtMs: number }

export function memoryJar(now: () => number): SessionJar {
  const origins = new Map<string, Map<Address, Kept>>()
  return {
    keep: (origin, { payTo, token }) => {
      if (!tokenPattern.test(token)) return
      const stored = origins.get(origin) ?? new Map<Address, Kept>()
      const known = stored.get(payTo)
      const endsAtMs = known?.token === token ? known.endsAtMs : now() + secondsMax * 1_000
      renew(stored, payTo, { payTo, token, endsAtMs }, walletsMax)
      renew(origins, origin, stored, originsMax)
    },
    at: (origin) => {
      const stored = [...(origins.get(origin)?.values() ?? [])]
      return stored.filter(({ endsAtMs }) => endsAtMs > now()).reverse()
    },
  }
}

/** Sets an entry as the newest. The oldest is dropped above the limit. */
function renew<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= most) return
    map.delete(oldest)
  }
}

/** The result of an unpaid call: a response, or a 402 with its offers. */
export interface Unpaid {
  readonly response: Response
  /** Empty if there is nothing to pay. */
  readonly readings: readonly Reading[]
}

/**
 * Sends a call with the newest session of its origin, if there is one. If a 402 names a wallet for which another
 * session exists, that session is tried, once. Returns a response, or the offers to pay. Calls with a session do not
 * follow redirects, because the session is not meant for the target.
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

async function sendWith(payer: Payer, call: Call, session: StoredSession | undefined): Promise<Unpaid> {
  const response = await call.send(payer.fetch, session && carrying(call, session.token))
  if (response.status === 402) {
    const isOwn = carriesCredential((name) => call.headers.get(name))
    return { response, readings: isOwn ? [] : await offersOf(payer, response, call.headers) }
  }
  if (session !== undefined) payer.sessions?.keep(call.url.origin, session)
  return { response, readings: [] }
}

function payeesOf({ readings }: Unpaid): ReadonlySet<Address> {
  return new Set(readings.flatMap((reading) => ('quote' in reading ? [reading.quote.payTo] : [])))
}

/** A session is sent only where payments are allowed, and not if the caller sets the header. */
function mayCarrySession(payer: Payer, call: Call): boolean {
  const isFree = !call.headers.has(sessionHeader) && !carriesCredential((name) => call.headers.get(name))
  return isFree && whyNotThere(payer, call.url) === undefined
}

function carrying(call: Call, token: string): RequestInit {
  const headers = new Headers(call.headers)
  headers.set(sessionHeader, token)
  return { headers, redirect: 'manual' }
}
