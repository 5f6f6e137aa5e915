import type { Address } from '@purser/protocol'

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

export interface StoredSession {
  readonly payTo: Address
  readonly token: string
}

const secondsMax = 604_800

type Kept = StoredSession & { readonly endsAtMs: number }

/** A `SessionJar` in memory, bounded in origins and in wallets per origin. */
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
