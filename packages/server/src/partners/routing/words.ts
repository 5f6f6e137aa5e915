import { type Address, bytesToHex, checksumAddress, type Hex } from '@purser/protocol'
import { wordOf } from '../../platform/contract-calls.ts'

/** Call data of a function with only `bytes` arguments. */
export function encodeBytesCall(selector: Hex, args: readonly Hex[]): Hex {
  let heads = ''
  let tails = ''
  for (const bytes of args) {
    heads += wordOf(BigInt(args.length * 32 + tails.length / 2))
    const digits = bytes.slice(2)
    tails += wordOf(BigInt(digits.length / 2)) + digits.padEnd(Math.ceil(digits.length / 64) * 64, '0')
  }
  return `${selector}${heads}${tails}`
}

/** The words of a response; an incomplete last word is ignored. */
export interface Words {
  /** Undefined past the end. */
  uint(index: number): bigint | undefined
  /** Undefined when the word is not an account, because its first twelve bytes are not zero. */
  address(index: number): Address | undefined
  readonly length: number
}

export function wordsOf(data: Hex): Words {
  const digits = data.slice(2)
  const length = Math.floor(digits.length / 64)
  const wordAt = (index: number): string | undefined =>
    Number.isInteger(index) && index >= 0 && index < length ? digits.slice(index * 64, index * 64 + 64) : undefined
  return {
    length,
    uint(index) {
      const word = wordAt(index)
      return word === undefined ? undefined : BigInt(`0x${word}`)
    },
    address(index) {
      const word = wordAt(index)
      return word === undefined || !word.startsWith('0'.repeat(24)) ? undefined : checksumAddress(`0x${word.slice(24)}`)
    },
  }
}

/** The selector of call data; undefined for less than four bytes. */
export function selectorIn(data: Hex): Hex | undefined {
  return data.length < 10 ? undefined : (data.slice(0, 10).toLowerCase() as Hex)
}

/** Reads bytes as a number; undefined past the end. */
export function uintAt(bytes: Uint8Array, offset: number, length: number): bigint | undefined {
  if (offset + length > bytes.length) return undefined
  return BigInt(bytesToHex(bytes.subarray(offset, offset + length)))
}
