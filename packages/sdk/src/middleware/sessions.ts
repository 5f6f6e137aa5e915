import { parseDuration } from '@purser/protocol'
import type { Purser } from '../client.ts'
import { PaymentRefusedError } from '../errors.ts'
import type { Session } from '../sessions.ts'
import type { Payee } from './options.ts'

/** Carries a session: its token, out with the answer that was paid for, and in with the calls after it. */
export const sessionHeader = 'X-Service-Session-Id'

const tokenPattern = /^sess_[0-9a-z]{26}\.[A-Za-z0-9_-]{43}$/
/** How long a yes of Purser is believed. A session that ends in this time opens its routes until it is over. */
const yesMsMax = 5_000
const entriesMax = 10_000

export interface SessionGate {
  /** The session that a token opens at a host, or undefined; throws when Purser gives no clear answer. */
  readonly check: (token: string, host: string) => Promise<Session | undefined>
}

interface Entry {
  readonly answer: Promise<Session>
  endsAt: number
}

/**
 * Asks Purser whether a session is good, once for all calls that come with it at the same time, and believes a yes for 5 s. A no is
 * asked for again each time. What cannot be a token is not sent.
 */
export function openGate(purser: Purser, payee: Payee, now: () => number = Date.now): SessionGate {
  const entries = new Map<string, Entry>()
  const ask = (sessionToken: string, host: string): Entry => {
    const answer = purser.sessions.verify({ sessionToken, host, ...payee })
    return { answer, endsAt: Number.POSITIVE_INFINITY }
  }
  return {
    check: async (token, host) => {
      if (!tokenPattern.test(token)) return undefined
      const key = `${token} ${host}`
      const known = entries.get(key)
      const entry = known !== undefined && known.endsAt > now() ? known : ask(token, host)
      entries.set(key, entry)
      makeRoom(entries)
      try {
        const session = await entry.answer
        const isNew = entry.endsAt === Number.POSITIVE_INFINITY
        if (isNew) entry.endsAt = Math.min(now() + yesMsMax, Date.parse(session.expiresAt))
        return session.isExpired ? undefined : session
      } catch (error) {
        if (entries.get(key) === entry) entries.delete(key)
        if (error instanceof PaymentRefusedError) return undefined
        throw error
      }
    },
  }
}

/** The oldest go first: whoever made up tokens fills the memory with nothing but his own, and each is asked for again. */
function makeRoom(entries: Map<string, Entry>): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= entriesMax) return
    entries.delete(oldest)
  }
}

const [secondsMin, secondsMax] = [60, 604_800]

/** `sessionTtl` in seconds; throws a `TypeError` for one that Purser would not take. */
export function sessionSecondsOf(ttl: string | number | undefined): number | undefined {
  if (ttl === undefined) return undefined
  const seconds = typeof ttl === 'number' ? ttl : parseDuration(ttl)
  const isGood =
    typeof seconds === 'number' && Number.isInteger(seconds) && seconds >= secondsMin && seconds <= secondsMax
  if (isGood) return seconds
  throw new TypeError('sessionTtl must be a time such as 30m, 24h or 7d, or whole seconds: a minute to a week.')
}
