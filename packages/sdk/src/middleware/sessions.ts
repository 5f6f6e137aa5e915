import { parseDuration } from '@purser/protocol'
import { must } from '../check.ts'
import type { Purser } from '../client.ts'
import { PaymentRefusedError } from '../errors.ts'
import type { Session } from '../sessions.ts'

/** The header with the session token, in the paid response and in later requests. */
export const sessionHeader = 'X-Service-Session-Id'

const tokenPattern = /^sess_[0-9a-z]{26}\.[A-Za-z0-9_-]{43}$/
/**
 * Most milliseconds for which a positive check is cached. A session that is revoked in this time stays valid until the
 * entry expires.
 */
const yesMsMax = 5_000
const entriesMax = 10_000

/** The wallets of a seller. */
export interface Payee {
  readonly walletId: string
  readonly otherWalletIds?: string[]
}

export interface SessionGate {
  /** The session of a token at a host, or undefined. Throws if Purser does not respond clearly. */
  readonly check: (token: string, host: string) => Promise<Session | undefined>
}

interface Entry {
  readonly response: Promise<Session>
  endsAt: number
}

/**
 * Checks sessions with Purser, once for all simultaneous calls with the same token. A positive result is cached for 5
 * s, a negative one is not cached. A malformed token is not sent.
 */
export function openGate(purser: Purser, payee: Payee, now: () => number = Date.now): SessionGate {
  const entries = new Map<string, Entry>()
  const ask = (sessionToken: string, host: string): Entry => {
    const response = purser.sessions.verify({ sessionToken, host, ...payee })
    return { response, endsAt: Number.POSITIVE_INFINITY }
  }
  return {
    check: async (token, host) => {
      if (!tokenPattern.test(token)) return undefined
      const key = `${token} ${host}`
      const known = entries.get(key)
      const entry = known !== undefined && known.endsAt > now() ? known : ask(token, host)
      entries.set(key, entry)
      makeSpace(entries)
      try {
        const session = await entry.response
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

/**
 * The oldest entries are dropped first. Invented tokens cannot evict anything but a cache entry, which is checked
 * again.
 */
function makeSpace(entries: Map<string, Entry>): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= entriesMax) return
    entries.delete(oldest)
  }
}

const [secondsMin, secondsMax] = [60, 604_800]

/** `sessionTtl` in seconds. Throws a `TypeError` for a value that Purser would not accept. */
export function sessionSecondsOf(ttl: string | number | undefined): number | undefined {
  if (ttl === undefined) return undefined
  const seconds = typeof ttl === 'number' ? ttl : parseDuration(ttl)
  const isGood =
    typeof seconds === 'number' && Number.isInteger(seconds) && seconds >= secondsMin && seconds <= secondsMax
  must(isGood, 'sessionTtl', ttl, 'Give a time such as "30m", "24h" or "7d", or whole seconds: a minute to a week.')
  return seconds
}
