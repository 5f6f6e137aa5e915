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
