import { randomInt } from 'node:crypto'

/** Printed by each test that chooses its moments at random. The same seed repeats the same moments. */
export const seed = Number(process.env.CRASH_SEED ?? randomInt(2 ** 31))

/** A small generator of numbers in [0, 1). */
export function mulberry32(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
