const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) remainder = (remainder & 1) === 1 ? 0xedb88320 ^ (remainder >>> 1) : remainder >>> 1
  return remainder
})

/**
 * Returns the CRC-32 of zip, PNG and gzip (RFC 1952 section 8) as an unsigned integer. It detects typing errors, not
 * forgeries.
 *
 * @example
 * crc32(utf8('123456789')).toString(16) // 'cbf43926'
 */
export function crc32(bytes: Uint8Array): number {
  let remainder = 0xffffffff
  for (let i = 0; i < bytes.length; i++) {
    remainder = (table[(remainder ^ (bytes[i] ?? 0)) & 0xff] ?? 0) ^ (remainder >>> 8)
  }
  return (remainder ^ 0xffffffff) >>> 0
}
