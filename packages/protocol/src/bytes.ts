/** Bytes as hex text: `0x` and two hex digits per byte. */
export type Hex = `0x${string}`

const hexPairs: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const notADigit = 0xff
const digitValues = buildDigitValues()

function buildDigitValues(): Uint8Array {
  const values = new Uint8Array(128).fill(notADigit)
  for (let digit = 0; digit < 16; digit++) {
    values[digit.toString(16).charCodeAt(0)] = digit
    values[digit.toString(16).toUpperCase().charCodeAt(0)] = digit
  }
  return values
}

/**
 * Whether a text is `0x` and an even number of hex digits in either case. `0x` alone is valid: no bytes.
 *
 * @example
 * isHex('0x0aff') // true
 * isHex('0x0af') // false
 */
export function isHex(text: string): text is Hex {
  return text.length % 2 === 0 && /^0x[0-9a-fA-F]*$/.test(text)
}

/**
 * Encodes bytes as lower-case hex with `0x`.
 *
 * @example
 * bytesToHex(new Uint8Array([10, 255])) // '0x0aff'
 */
export function bytesToHex(bytes: Uint8Array): Hex {
  return `0x${isNativeHex(nativeHex) ? nativeHex.call(bytes) : digitsOf(bytes)}`
}

type NativeHex = () => string
const nativeHex: unknown = Reflect.get(Uint8Array.prototype, 'toHex')

function isNativeHex(value: unknown): value is NativeHex {
  return typeof value === 'function'
}

/** The digits of `bytesToHex` for engines without `toHex`; exported for its test. */
export function digitsOf(bytes: Uint8Array): string {
  let digits = ''
  for (let i = 0; i < bytes.length; i++) digits += hexPairs[bytes[i] ?? 0]
  return digits
}

/**
 * Decodes hex with `0x`. Throws a `RangeError` for anything but whole bytes, so that truncated text is never accepted.
 * For untrusted text, use `isHex` or a parser that uses it first.
 *
 * @example
 * hexToBytes('0x0aff').length // 2
 */
export function hexToBytes(hex: string): Uint8Array {
  if (hex.length % 2 !== 0 || !hex.startsWith('0x')) throw new RangeError('not a hex string of whole bytes')
  const bytes = new Uint8Array(hex.length / 2 - 1)
  writeHex(bytes, 0, hex)
  return bytes
}

/**
 * Writes the bytes of a hex text into `target`, starting at `offset`. Throws as `hexToBytes` does.
 *
 * @example
 * const bytes = new Uint8Array(3)
 * writeHex(bytes, 1, '0xff')
 * bytesToHex(bytes) // '0x00ff00'
 */
export function writeHex(target: Uint8Array, offset: number, hex: string): void {
  const size = hex.length / 2 - 1
  if (offset + size > target.length) throw new RangeError('the hex text has more bytes than the target')
  for (let i = 0; i < size; i++) {
    const high = digitValues[hex.charCodeAt(2 + i * 2)] ?? notADigit
    const low = digitValues[hex.charCodeAt(3 + i * 2)] ?? notADigit
    if (high === notADigit || low === notADigit) throw new RangeError('not a hex string of whole bytes')
    target[offset + i] = (high << 4) | low
  }
}

/** The largest integer of the EVM, 2^256 - 1. */
export const uint256Max = (1n << 256n) - 1n

/**
 * Writes an unsigned integer as 32 big-endian bytes (one ABI word). Throws a `RangeError` outside 0 to 2^256 - 1.
 *
 * @example
 * const bytes = new Uint8Array(32)
 * writeUint256(bytes, 0, 258n)
 * bytes.slice(-2) // new Uint8Array([1, 2])
 */
export function writeUint256(target: Uint8Array, offset: number, value: bigint): void {
  if (value < 0n || value > uint256Max) throw new RangeError('not a uint256')
  if (offset + 32 > target.length) throw new RangeError('uint256 does not fit')
  const view = new DataView(target.buffer, target.byteOffset + offset, 32)
  view.setBigUint64(24, value)
  if (value < 1n << 64n) {
    target.fill(0, offset, offset + 24)
    return
  }
  view.setBigUint64(16, value >> 64n)
  view.setBigUint64(8, value >> 128n)
  view.setBigUint64(0, value >> 192n)
}

/**
 * Encodes an unsigned integer as 32 big-endian bytes. Throws as `writeUint256` does.
 *
 * @example
 * bytesToHex(uint256ToBytes(1n)).length // 66
 */
export function uint256ToBytes(value: bigint): Uint8Array {
  const bytes = new Uint8Array(32)
  writeUint256(bytes, 0, value)
  return bytes
}

/**
 * Reads the unsigned integer in 32 big-endian bytes at `offset`. Throws a `RangeError` if there are fewer bytes.
 *
 * @example
 * readUint256(uint256ToBytes(42n), 0) // 42n
 */
export function readUint256(bytes: Uint8Array, offset = 0): bigint {
  if (offset < 0 || offset + 32 > bytes.length) throw new RangeError('fewer than 32 bytes at this offset')
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, 32)
  const low = (view.getBigUint64(16) << 64n) | view.getBigUint64(24)
  const high = (view.getBigUint64(0) << 64n) | view.getBigUint64(8)
  return high === 0n ? low : (high << 128n) | low
}

/**
 * Concatenates byte arrays into a new one.
 *
 * @example
 * bytesToHex(concatBytes(new Uint8Array([1]), new Uint8Array([2]))) // '0x0102'
 */
export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let offset = 0
  for (const part of parts) {
    whole.set(part, offset)
    offset += part.length
  }
  return whole
}

/**
 * Whether two byte strings are equal. Not for secrets: the comparison time depends on the bytes.
 *
 * @example
 * equalBytes(utf8('a'), utf8('a')) // true
 */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, i) => byte === right[i])
}
