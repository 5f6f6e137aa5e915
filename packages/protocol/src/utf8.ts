const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Encodes a text as UTF-8. An unpaired surrogate becomes U+FFFD.
 *
 * @example
 * bytesToHex(utf8('é')) // '0xc3a9'
 */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text)
}

/**
 * Decodes UTF-8. Returns `undefined` for malformed bytes, instead of replacement characters.
 *
 * @example
 * decodeUtf8(new Uint8Array([0xc3, 0xa9])) // 'é'
 * decodeUtf8(new Uint8Array([0xc3])) // undefined
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}
