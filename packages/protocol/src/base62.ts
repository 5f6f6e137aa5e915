const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * Encodes an unsigned integer in base 62 (digits, upper case, lower case), padded with zeros to `width` digits. Throws
 * a `RangeError` if it does not fit: a truncated number would be a different one.
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
 * Decodes a base62 text. Returns `undefined` for an empty text and for other characters.
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
