const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const prefixPattern = /^[a-z](?:[a-z_]{0,61}[a-z])?$/
const suffixPattern = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/
const suffixLength = 26

/**
 * Encodes a TypeID: the prefix, `_`, and 16 bytes (a UUID) in 26 letters of Crockford's base32 in lower case, so that
 * ids sort as their bytes do. An empty prefix has no `_`. Throws a `RangeError` for a prefix or a length that the
 * specification does not allow. Source: TypeID specification 0.3.0.
 *
 * @example
 * encodeTypeId('pay', new Uint8Array(16)) // 'pay_00000000000000000000000000'
 */
export function encodeTypeId(prefix: string, bytes: Uint8Array): string {
  if (bytes.length !== 16) throw new RangeError('a TypeID holds 16 bytes')
  if (prefix !== '' && !prefixPattern.test(prefix)) throw new RangeError('not a TypeID prefix')
  return prefix === '' ? encodeSuffix(bytes) : `${prefix}_${encodeSuffix(bytes)}`
}

/**
 * Returns a TypeID of a new UUIDv7, from a time in Unix milliseconds and 10 random bytes. Throws as `uuidV7` and
 * `encodeTypeId` do.
 *
 * @example
 * newTypeId('pay', 0, new Uint8Array(10)) // 'pay_0000000000e008000000000000'
 */
export function newTypeId(prefix: string, unixMs: number, random10: Uint8Array): string {
  return encodeTypeId(prefix, uuidV7(unixMs, random10))
}

/**
 * Parses a TypeID into its prefix and 16 bytes. Returns `undefined` for any text that `encodeTypeId` does not produce.
 *
 * @example
 * parseTypeId('pay_00000000000000000000000000')?.prefix // 'pay'
 * parseTypeId('pay_mistyped') // undefined
 */
export function parseTypeId(text: string): { prefix: string; bytes: Uint8Array } | undefined {
  const suffix = text.slice(-suffixLength)
  if (!suffixPattern.test(suffix)) return undefined
  const head = text.slice(0, -suffixLength)
  if (head === '') return { prefix: '', bytes: decodeSuffix(suffix) }
  const prefix = head.slice(0, -1)
  return head.endsWith('_') && prefixPattern.test(prefix) ? { prefix, bytes: decodeSuffix(suffix) } : undefined
}

/**
 * Returns the 16 bytes of a UUIDv7: 48 bits of Unix milliseconds, then 74 bits of the 10 random bytes. Source: RFC 9562
 * section 5.7.
 *
 * @example
 * bytesToHex(uuidV7(1_795_305_600_000, new Uint8Array(10))) // '0x01a2008d740070008000000000000000'
 */
export function uuidV7(unixMs: number, random10: Uint8Array): Uint8Array {
  if (random10.length !== 10) throw new RangeError('a UUIDv7 needs 10 random bytes')
  if (!Number.isInteger(unixMs) || unixMs < 0 || unixMs >= 2 ** 48) throw new RangeError('not a time for a UUIDv7')
  const bytes = new Uint8Array(16)
  const high = Math.floor(unixMs / 2 ** 32)
  bytes[0] = high >>> 8
  bytes[1] = high
  bytes[2] = unixMs >>> 24
  bytes[3] = unixMs >>> 16
  bytes[4] = unixMs >>> 8
  bytes[5] = unixMs
  for (let i = 0; i < 10; i++) bytes[6 + i] = random10[i] ?? 0
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return bytes
}

/** Two letters for each ten bits. */
const pairs: readonly string[] = Array.from(
  { length: 1_024 },
  (_, bits) => `${alphabet[bits >> 5]}${alphabet[bits & 31]}`,
)

/** Two leading zeros and the first byte are two letters, and five bytes are eight. */
function encodeSuffix(bytes: Uint8Array): string {
  return `${pairs[bytes[0] ?? 0]}${encodeFive(bytes, 1)}${encodeFive(bytes, 6)}${encodeFive(bytes, 11)}`
}

function encodeFive(bytes: Uint8Array, at: number): string {
  const middle = bytes[at + 2] ?? 0
  const high = ((bytes[at] ?? 0) << 12) | ((bytes[at + 1] ?? 0) << 4) | (middle >> 4)
  const low = ((middle & 15) << 16) | ((bytes[at + 3] ?? 0) << 8) | (bytes[at + 4] ?? 0)
  return `${pairs[high >> 10]}${pairs[high & 1_023]}${pairs[low >> 10]}${pairs[low & 1_023]}`
}

function decodeSuffix(suffix: string): Uint8Array {
  const bytes = new Uint8Array(16)
  let bits = 0
  let bitCount = -2
  let at = 0
  for (const letter of suffix) {
    bits = (bits << 5) | alphabet.indexOf(letter)
    bitCount += 5
    if (bitCount >= 8) {
      bitCount -= 8
      bytes[at++] = (bits >>> bitCount) & 0xff
      bits &= (1 << bitCount) - 1
    }
  }
  return bytes
}
