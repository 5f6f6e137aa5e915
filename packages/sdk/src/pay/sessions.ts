import { type Address, carriesCredential } from '@purser/protocol'
import { discard } from './bounded.ts'
import { offersOf } from './challenge.ts'
import { whyNotThere } from './choose.ts'
import type { Payer } from './payer.ts'
import type { Reading } from './quotes.ts'
import type { Call } from './request.ts'
import type { StoredSession } from './session-jar.ts'

/** The header with a session. Its value is a secret that grants access. */
export const sessionHeader = 'x-service-session-id'

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
