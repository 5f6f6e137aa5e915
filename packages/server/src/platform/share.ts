import { failPlatform, type Problem } from './errors.ts'

/** Places of a limited kind: how many the caller has, how many all have together, and how many there are. */
export interface Places {
  readonly own: number
  readonly taken: number
  readonly max: number
  /** How many places are requested; default 1. */
  readonly more?: number
}

/**
 * Returns whether a tenant may take one more place: it may have half of those that the others leave. One tenant alone gets half, the next a
 * quarter, and a tenant without any gets one while any is free, so that no number of places of one tenant leaves another without.
 */
export function mayTake({ own, taken, max, more = 1 }: Places): boolean {
  if (taken + more > max) return false
  return own === 0 || own + more < (max - (taken - own)) / 2 + 1
}

/** The problem of a body for which there is no memory: 503 if the budget is used up, otherwise 429. */
export function memoryRefusal({ taken, max, more }: { readonly [name in 'taken' | 'max' | 'more']: number }): Problem {
  const code = taken + more > max ? 'service-unavailable' : 'rate-limit-exceeded'
  return failPlatform(code, { retryAfterSeconds: 1 })
}

/**
 * Returns the most that each owner may have so that nobody has more than all together leave free. Owners below it keep what they have, and the
 * others have that much each. With this no owner's place in the list decides what it loses.
 */
export function levelOf(totals: readonly number[], max: number): number {
  let kept = totals.reduce((sum, total) => sum + total, 0)
  let lowered = 0
  for (const total of totals.toSorted((one, other) => other - one)) {
    const level = (max - kept) / (lowered + 1)
    if (total <= level) return level
    kept -= total
    lowered += 1
  }
  return (max - kept) / (lowered + 1)
}

/** Reserves memory; returns what releases it. Throws 429 for an owner above its share, 503 if the budget is used up. */
export type ReserveMemory = (owner: string, bytes: number) => () => void

/**
 * A limit of memory for bodies in flight. An owner (an organization, or an address without one) may have half of what the others leave, so
 * that the bodies of one never crowd out those of another.
 */
export function createMemoryBudget(bytesMax: number): ReserveMemory {
  const owners = new Map<string, number>()
  let taken = 0
  return (owner, bytes) => {
    const own = owners.get(owner) ?? 0
    if (!mayTake({ own, taken, max: bytesMax, more: bytes })) throw memoryRefusal({ taken, max: bytesMax, more: bytes })
    owners.set(owner, own + bytes)
    taken += bytes
    return () => {
      taken -= bytes
      const left = (owners.get(owner) ?? bytes) - bytes
      if (left <= 0) owners.delete(owner)
      else owners.set(owner, left)
    }
  }
}
