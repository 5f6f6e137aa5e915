/** Repeatable randomness: the same seed gives the same draws. */
export interface Chance {
  /** From 0, less than 1. */
  next(): number
  /** From 0, less than the count. */
  below(count: number): number
  happens(probability: number): boolean
  pick<T>(items: readonly T[]): T
  bytes(length: number): Uint8Array
}

/** The generator `mulberry32`. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (count: number): number => Math.floor(next() * count)
  return {
    next,
    below,
    happens: (probability) => next() < probability,
    pick(items) {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error('nothing to pick from')
      return item
    },
    bytes: (length) => Uint8Array.from({ length }, () => below(256)),
  }
}
