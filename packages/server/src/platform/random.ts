import { randomBytes, randomFillSync } from 'node:crypto'

/** The only source of randomness. Every secret and id is made from it, so tests can make it deterministic. */
export interface Random {
  bytes(length: number): Uint8Array
}

const pooledMax = 16
const pool = new Uint8Array(4096)
let used = pool.length

/** Short draws, such as for ids, come from a block that is filled at once: a separate call costs more than the bytes. */
function draw(length: number): Uint8Array {
  if (length > pooledMax) return randomBytes(length)
  if (used + length > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = pool.slice(used, used + length)
  pool.fill(0, used, used + length)
  used += length
  return bytes
}

/** The operating system's cryptographic generator. */
export const systemRandom: Random = { bytes: draw }
