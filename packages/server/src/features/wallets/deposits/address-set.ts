import type { Hex } from '@purser/protocol'

/** Words of 32 bits in an address. */
const words = 5
const slotsMin = 1_024

/**
 * A set of 20-byte addresses in one array: no object per address, so that a million take 42 MB and the garbage collector has nothing to
 * scan. Open addressing with linear probing, at most two thirds full; the position of an address depends on a secret seed, so that nobody
 * can choose addresses that collide. The zero address marks a free index and is never a member.
 */
export class AddressSet {
  #words: Uint32Array
  #mask: number
  #size = 0
  readonly #seed: number
  /** The queried address, in words. */
  readonly #query = new Uint32Array(words)

  constructor(seed: number, expected = 0) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(slotsMin, expected * 1.5 + 1)))
    this.#words = new Uint32Array(slots * words)
    this.#mask = slots - 1
    this.#seed = seed >>> 0
  }

  get size(): number {
    return this.#size
  }

  /** Adds addresses from packed bytes, 20 each. */
  addAll(packed: Uint8Array): void {
    const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength)
    for (let at = 0; at + 20 <= packed.byteLength; at += 20) {
      for (let word = 0; word < words; word++) this.#query[word] = view.getUint32(at + word * 4)
      this.#add()
    }
  }

  /** Whether the last 20 bytes of a log's topic (`0x` and 64 hexadecimal digits of either case) are a member. */
  hasTopic(topic: string): boolean {
    if (topic.length !== 66) return false
    for (let word = 0; word < words; word++) {
      const value = wordAt(topic, 26 + word * 8)
      if (value < 0) return false
      this.#query[word] = value
    }
    return !this.#isFree(this.#indexOf(this.#query, 0))
  }

  /** The members as topics of logs, in no order. Those that are added meanwhile may be missing. */
  *topics(): Generator<Hex> {
    const slots = this.#words
    for (let at = 0; at < slots.length; at += words) if (!isFreeAt(slots, at)) yield topicAt(slots, at)
  }

  #add(): void {
    const index = this.#indexOf(this.#query, 0)
    if (!this.#isFree(index)) return
    this.#words.set(this.#query, index)
    if (this.#isFree(index)) return
    this.#size += 1
    if (this.#size * 3 > (this.#mask + 1) * 2) this.#grow()
  }

  #grow(): void {
    const old = this.#words
    this.#words = new Uint32Array(old.length * 2)
    this.#mask = this.#mask * 2 + 1
    for (let at = 0; at < old.length; at += words) {
      const address = old.subarray(at, at + words)
      if (address.some((word) => word !== 0)) this.#words.set(address, this.#indexOf(address, 0))
    }
  }

  /** Index in the array of the address at `source[at]`, or of the index where it would be inserted. */
  #indexOf(source: Uint32Array, at: number): number {
    const slots = this.#words
    let slot = this.#hash(source, at) & this.#mask
    for (;;) {
      const index = slot * words
      if (this.#isFree(index) || isSameAddressAt(slots, index, source, at)) return index
      slot = (slot + 1) & this.#mask
    }
  }

  /** Murmur3's rounds over the words. */
  #hash(source: Uint32Array, at: number): number {
    let hash = this.#seed
    for (let word = 0; word < words; word++) {
      let mixed = Math.imul(source[at + word] ?? 0, 0xcc9e2d51)
      mixed = (mixed << 15) | (mixed >>> 17)
      hash ^= Math.imul(mixed, 0x1b873593)
      hash = (hash << 13) | (hash >>> 19)
      hash = (Math.imul(hash, 5) + 0xe6546b64) | 0
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
    return (hash ^ (hash >>> 16)) >>> 0
  }

  #isFree(index: number): boolean {
    return isFreeAt(this.#words, index)
  }
}

function isFreeAt(slots: Uint32Array, index: number): boolean {
  return (
    ((slots[index] ?? 0) |
      (slots[index + 1] ?? 0) |
      (slots[index + 2] ?? 0) |
      (slots[index + 3] ?? 0) |
      (slots[index + 4] ?? 0)) ===
    0
  )
}

function topicAt(slots: Uint32Array, index: number): Hex {
  const digits = Array.from(slots.subarray(index, index + words), (word) => word.toString(16).padStart(8, '0'))
  return `0x${'0'.repeat(24)}${digits.join('')}`
}

function isSameAddressAt(left: Uint32Array, leftAt: number, right: Uint32Array, rightAt: number): boolean {
  for (let word = 0; word < words; word++) if (left[leftAt + word] !== right[rightAt + word]) return false
  return true
}

/** Parses 8 hexadecimal digits as a number; -1 if one is invalid. */
function wordAt(text: string, from: number): number {
  let value = 0
  for (let at = from; at < from + 8; at++) {
    const code = text.charCodeAt(at)
    const digit = code <= 57 ? code - 48 : (code | 32) - 87
    if (digit < 0 || digit > 15 || (code > 57 && digit < 10)) return -1
    value = value * 16 + digit
  }
  return value
}
