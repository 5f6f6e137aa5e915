import { randomBytes } from 'node:crypto'

/** The one source of chance. Every secret and id is made from it, so tests can make it repeat. */
export interface Random {
  bytes(length: number): Uint8Array
}

/** The operating system's cryptographic generator. */
export const systemRandom: Random = { bytes: (length) => randomBytes(length) }
