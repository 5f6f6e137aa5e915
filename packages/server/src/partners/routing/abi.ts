import type { Address, Hex } from '@purser/protocol'
import { selectorIn } from './words.ts'

/**
 * A Solidity ABI type that accepts only the canonical encoding, as the compiler's encoder writes it. Each value has exactly one encoding, so that
 * no data can be hidden.
 */
export interface AbiType<T> {
  readonly isDynamic: boolean
  /** Words that it takes in the head of its container: one, the offset, for a dynamic type. */
  readonly headWords: number
  /** Reads the value that begins at word `at`; `end` is the word after it. Throws `NotCanonical`. */
  read(digits: string, at: number): Read<T>
}

interface Read<T> {
  readonly value: T
  readonly end: number
}

class NotCanonical extends Error {}

const wordDigits = 64

/**
 * Decodes the arguments of a call to the function with this selector; undefined for another function, a non-canonical encoding, or bytes after the
 * last argument (Solidity ABI, "Formal Specification of the Encoding").
 */
export function decodeCall<T>(data: Hex, selector: Hex, type: AbiType<T>): T | undefined {
  if (selectorIn(data) !== selector) return undefined
  const digits = data.slice(10).toLowerCase()
  if (digits.length % wordDigits !== 0) return undefined
  try {
    const { value, end } = type.read(digits, 0)
    return end * wordDigits === digits.length ? value : undefined
  } catch (error) {
    if (error instanceof NotCanonical) return undefined
    throw error
  }
}

function wordAt(digits: string, at: number): string {
  const word = digits.slice(at * wordDigits, (at + 1) * wordDigits)
  if (word.length !== wordDigits) throw new NotCanonical()
  return word
}

function numberAt(digits: string, at: number): bigint {
  return BigInt(`0x${wordAt(digits, at)}`)
}

/** Reads a length of at most `most`. */
function lengthAt(digits: string, at: number, most: number): number {
  const length = numberAt(digits, at)
  if (length > BigInt(most)) throw new NotCanonical()
  return Number(length)
}

function oneWord<T>(parse: (word: string) => T): AbiType<T> {
  return { isDynamic: false, headWords: 1, read: (digits, at) => ({ value: parse(wordAt(digits, at)), end: at + 1 }) }
}

/** An unsigned integer with this number of bits. */
export function uint(bits: number): AbiType<bigint> {
  return oneWord((word) => {
    const value = BigInt(`0x${word}`)
    if (value >> BigInt(bits) !== 0n) throw new NotCanonical()
    return value
  })
}

/** In lower case. */
export const address = oneWord<Address>((word) => {
  if (!word.startsWith('0'.repeat(24))) throw new NotCanonical()
  return `0x${word.slice(24)}`
})

export const bytes32 = oneWord<Hex>((word) => `0x${word}`)

export const bool = oneWord((word) => {
  if (!/^0{63}[01]$/.test(word)) throw new NotCanonical()
  return word.endsWith('1')
})

/** `bytes`, and a `string` as its bytes. */
export const bytes: AbiType<Hex> = {
  isDynamic: true,
  headWords: 1,
  read(digits, at) {
    const length = lengthAt(digits, at, digits.length)
    const end = at + 1 + Math.ceil(length / 32)
    const padded = digits.slice((at + 1) * wordDigits, end * wordDigits)
    if (padded.length !== (end - at - 1) * wordDigits || !/^0*$/.test(padded.slice(length * 2)))
      throw new NotCanonical()
    return { value: `0x${padded.slice(0, length * 2)}`, end }
  },
}

type Shape = Readonly<Record<string, AbiType<unknown>>>
type Fields<S extends Shape> = { readonly [K in keyof S]: S[K] extends AbiType<infer T> ? T : never }

/** A struct, and the arguments of a function: the fields in order. */
export function tuple<S extends Shape>(shape: S): AbiType<Fields<S>> {
  const names = Object.keys(shape)
  const types = Object.values(shape)
  const isDynamic = types.some((type) => type.isDynamic)
  return {
    isDynamic,
    headWords: isDynamic ? 1 : wordsOf(types),
    read(digits, at) {
      const { value, end } = readInOrder(digits, at, types)
      const fields = Object.fromEntries(names.map((name, index) => [name, value[index]]))
      // Each name has what its own type read.
      return { value: fields as Fields<S>, end }
    },
  }
}

/** An array of at most `most` elements. */
export function arrayOf<T>(type: AbiType<T>, most: number): AbiType<readonly T[]> {
  return {
    isDynamic: true,
    headWords: 1,
    read(digits, at) {
      const length = lengthAt(digits, at, most)
      return readInOrder(
        digits,
        at + 1,
        Array.from({ length }, () => type),
      )
    },
  }
}

function wordsOf(types: readonly AbiType<unknown>[]): number {
  return types.reduce((sum, { headWords }) => sum + headWords, 0)
}

/** Reads the heads and then the dynamic parts, which must follow in order without gaps, so that each offset has only one valid value. */
function readInOrder<T>(digits: string, at: number, types: readonly AbiType<T>[]): Read<readonly T[]> {
  let head = at
  let tail = at + wordsOf(types)
  const value = types.map((type) => {
    if (type.isDynamic && numberAt(digits, head) !== BigInt((tail - at) * 32)) throw new NotCanonical()
    const read = type.read(digits, type.isDynamic ? tail : head)
    if (type.isDynamic) tail = read.end
    head += type.headWords
    return read.value
  })
  return { value, end: tail }
}
