import { bytesToHex, type Hex } from './bytes.ts'
import { type Keccak, keccak256 } from './hash.ts'
import { utf8 } from './utf8.ts'

/** An EVM account: `0x` and 40 hex digits. `parseAddress` and `checksumAddress` return it with EIP-55 checksum. */
export type Address = `0x${string}`

/** The zero address. */
export const zeroAddress: Address = '0x0000000000000000000000000000000000000000'

const addressPattern = /^0x[0-9a-fA-F]{40}$/

/**
 * Whether the text has the form of an address, in any letter case. The checksum is not checked.
 *
 * @example
 * isAddress('0x036cbd53842c5426634e7929541ec2318f3dcf7e') // true
 */
export function isAddress(text: string): text is Address {
  return text.length === 42 && addressPattern.test(text)
}

/**
 * Returns the address with EIP-55 checksum. Throws a `RangeError` if it is not an address.
 *
 * @example
 * checksumAddress('0x036cbd53842c5426634e7929541ec2318f3dcf7e') // '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
 */
export function checksumAddress(address: string, keccak: Keccak = keccak256): Address {
  if (!isAddress(address)) throw new RangeError('not an EVM address: expected 0x and 40 hex digits')
  const digits = address.toLowerCase().slice(2)
  const hash = keccak(utf8(digits))
  let checksummed = ''
  for (let i = 0; i < 40; i++) {
    const nibble = ((hash[i >> 1] ?? 0) >> (i % 2 === 0 ? 4 : 0)) & 0xf
    checksummed += nibble >= 8 ? (digits[i] ?? '').toUpperCase() : digits[i]
  }
  return `0x${checksummed}`
}

/**
 * Reads an address that a person or a configuration wrote: all lower case, all upper case (after `0x`) or the right
 * EIP-55 checksum. Returns it checksummed. Mixed case with a wrong checksum returns `undefined`, because it indicates
 * a typo, and money sent there would be lost.
 *
 * @example
 * parseAddress('0x036cbd53842c5426634e7929541ec2318f3dcf7e') // '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
 * parseAddress('0x036cbD53842c5426634e7929541eC2318f3dCF7E') // undefined
 */
export function parseAddress(text: string, keccak: Keccak = keccak256): Address | undefined {
  if (!isAddress(text)) return undefined
  const digits = text.slice(2)
  const checksummed = checksumAddress(text, keccak)
  const oneCase = digits === digits.toLowerCase() || digits === digits.toUpperCase()
  return oneCase || text === checksummed ? checksummed : undefined
}

/**
 * Whether two texts name one account; letter case does not matter.
 *
 * @example
 * sameAddress('0x036CbD53842c5426634e7929541eC2318f3dCF7e', '0x036cbd53842c5426634e7929541ec2318f3dcf7e') // true
 */
export function sameAddress(left: string, right: string): boolean {
  return left === right || left.toLowerCase() === right.toLowerCase()
}

/**
 * The account of a public key: the last 20 bytes of the Keccak of its 64 coordinate bytes (yellow paper, appendix F).
 *
 * @example
 * const publicKey = concatBytes(new Uint8Array([4]), hexToBytes('0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8'))
 * addressOfPublicKey(publicKey) // '0x7e5f4552091a69125d5dfcb7b8c2659029395bdf'
 * addressOfPublicKey(publicKey.subarray(1)) // undefined
 */
export function addressOfPublicKey(uncompressed: Uint8Array, keccak: Keccak = keccak256): Hex | undefined {
  if (uncompressed.length !== 65 || uncompressed[0] !== 4) return undefined
  return bytesToHex(keccak(uncompressed.subarray(1)).subarray(12))
}
