const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * An unsigned integer in base 62 (digits, upper case, lower case), with zeros in front up to `width`. Throws a `RangeError` when
 * it does not fit: a cut number would be another one.
 *
 * @example
 * encodeBase62(3844n, 4) // '0100'
 */
export function encodeBase62(value: bigint, width: number): string {
  let digits = ''
  for (let rest = value; rest > 0n; rest /= 62n) digits = `${alphabet[Number(rest % 62n)]}${digits}`
  if (value < 0n || digits.length > width) throw new RangeError('does not fit in the base62 digits')
  return digits.padStart(width, '0')
}

/**
 * The unsigned integer of a base62 text; `undefined` for an empty text or another alphabet.
 *
 * @example
 * decodeBase62('0100') // 3844n
 */
export function decodeBase62(text: string): bigint | undefined {
  if (!/^[0-9A-Za-z]+$/.test(text)) return undefined
  let value = 0n
  for (const digit of text) value = value * 62n + BigInt(alphabet.indexOf(digit))
  return value
}
