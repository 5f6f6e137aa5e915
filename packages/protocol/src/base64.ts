import { decodeUtf8, utf8 } from './utf8.ts'

const base64Pattern = /^[A-Za-z0-9+/]*={0,2}$/
const base64UrlPattern = /^[A-Za-z0-9_-]*$/
const chunkSize = 8_192

/** Standard base64 with padding (RFC 4648 section 4). */
export function encodeBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += chunkSize) {
    binary += String.fromCharCode(...bytes.subarray(i, i + chunkSize))
  }
  return btoa(binary)
}

/**
 * Reads standard base64 strictly: its own alphabet, full padding, no white space, no bits left over. What is not exactly what
 * `encodeBase64` writes answers `undefined`, so that one message has one text.
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !base64Pattern.test(text) || hasLooseBits(text)) return undefined
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}

/** base64url without padding (RFC 4648 section 5, as RFC 7515 uses it). */
export function encodeBase64Url(bytes: Uint8Array): string {
  return encodeBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Reads base64url without padding, as strictly as `decodeBase64`. */
export function decodeBase64Url(text: string): Uint8Array | undefined {
  if (text.length % 4 === 1 || !base64UrlPattern.test(text)) return undefined
  const standard = text.replaceAll('-', '+').replaceAll('_', '/')
  return decodeBase64(standard.padEnd(Math.ceil(text.length / 4) * 4, '='))
}

/** A JSON value as base64 of its UTF-8 text, as x402 headers carry it. */
export function encodeJsonBase64(value: unknown): string {
  return encodeBase64(utf8(JSON.stringify(value)))
}

/** The JSON value in a base64 text; `undefined` when it is not strict base64 of UTF-8 of JSON. JSON `null` is answered as null. */
export function decodeJsonBase64(text: string): unknown {
  const bytes = decodeBase64(text)
  const json = bytes === undefined ? undefined : decodeUtf8(bytes)
  if (json === undefined) return undefined
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** Bits that a decoder would drop unseen, by which two texts could mean the same bytes. */
function hasLooseBits(text: string): boolean {
  if (!text.endsWith('=')) return false
  const last = text.endsWith('==') ? text.at(-3) : text.at(-2)
  return text.endsWith('==') ? !'AQgw'.includes(last ?? ' ') : !'AEIMQUYcgkosw048'.includes(last ?? ' ')
}
