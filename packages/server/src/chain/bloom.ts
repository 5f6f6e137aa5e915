import { type Hex, hexToBytes, keccak256 } from '@purser/protocol'

/** The three bits that a value sets in a bloom filter of 2,048 bits (yellow paper, section 4.3.1). */
export type BloomBits = readonly number[]

export function bloomBits(value: Hex): BloomBits {
  const hash = keccak256(hexToBytes(value))
  return [0, 2, 4].map((at) => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 2047)
}

/** A parsed block bloom filter. */
export interface Bloom {
  /** Whether the filter carries information. False when it has no bits (chains without bloom filters) or more than half of its bits set. */
  readonly isUsable: boolean
  readonly isEmpty: boolean
  /** False: no log of the block contains the value. True: a log probably does. */
  mayHold(bits: BloomBits): boolean
}

/** With half of its bits set, a filter has a false-positive rate of one in eight. */
const bitsMax = 1_024

/** Parses the `logsBloom` of a header; undefined when it is not 256 bytes. */
export function readBloom(value: unknown): Bloom | undefined {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{512}$/.test(value)) return undefined
  const bytes = hexToBytes(value)
  const count = bytes.reduce((sum, byte) => sum + ones(byte), 0)
  return {
    isUsable: count > 0 && count <= bitsMax,
    isEmpty: count === 0,
    mayHold: (bits) => bits.every((bit) => (((bytes[255 - (bit >> 3)] ?? 0) >> (bit & 7)) & 1) === 1),
  }
}

function ones(byte: number): number {
  let count = 0
  for (let rest = byte; rest > 0; rest &= rest - 1) count += 1
  return count
}
