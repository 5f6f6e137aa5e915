import { decodeUtf8, utf8 } from './utf8.ts'

const base64Pattern = /^[A-Za-z0-9+/]*={0,2}$/
const base64UrlPattern = /^[A-Za-z0-9_-]*$/
const chunkSize = 8_192

type NativeDecode = (
  text: string,
  options: { alphabet?: 'base64url'; lastChunkHandling: 'strict' | 'loose' },
) => Uint8Array
type NativeEncode = (options?: { alphabet: 'base64url'; omitPadding: true }) => string
const nativeDecode: unknown = Reflect.get(Uint8Array, 'fromBase64')
const nativeEncode: unknown = Reflect.get(Uint8Array.prototype, 'toBase64')

/**
 * Encodes bytes as standard base64 with padding (RFC 4648 section 4).
 *
 * @example
 * encodeBase64(utf8('hello')) // 'aGVsbG8='
 */
export function encodeBase64(bytes: Uint8Array): string {
  return isNativeEncode(nativeEncode) ? nativeEncode.call(bytes) : encodeByBtoa(bytes)
}

/**
 * Decodes standard base64 strictly: full padding, no other characters, no white space, unused bits zero. Returns
 * `undefined` for any text that `encodeBase64` does not produce, so that equal bytes have only one text.
 *
 * @example
 * decodeBase64('aGVsbG8') // undefined
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  return isNativeDecode(nativeDecode) ? decodeByEngine(nativeDecode, text) : decodeByAtob(text)
}

/** `encodeBase64` for engines without `toBase64`; exported for its test. */
export function encodeByBtoa(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += chunkSize) {
    binary += String.fromCharCode(...bytes.subarray(i, i + chunkSize))
  }
  return btoa(binary)
}

/** `decodeBase64` for engines without `fromBase64`; exported for its test. */
export function decodeByAtob(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !base64Pattern.test(text)) return undefined
  const unpadded = text.replace(/=+$/, '')
  if (hasLooseBits(unpadded, text.length - unpadded.length)) return undefined
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}

/**
 * Encodes bytes as base64url without padding (RFC 4648 section 5, as in RFC 7515).
 *
 * @example
 * encodeBase64Url(new Uint8Array([251, 255])) // '-_8'
 */
export function encodeBase64Url(bytes: Uint8Array): string {
  return isNativeEncode(nativeEncode)
    ? nativeEncode.call(bytes, { alphabet: 'base64url', omitPadding: true })
    : encodeUrlByBtoa(bytes)
}

/**
 * Decodes base64url without padding, as strictly as `decodeBase64`.
 *
 * @example
 * decodeBase64Url('-_8')?.length // 2
 */
export function decodeBase64Url(text: string): Uint8Array | undefined {
  if (text.length % 4 === 1) return undefined
  return isNativeDecode(nativeDecode) ? decodeUrlByEngine(nativeDecode, text) : decodeUrlByAtob(text)
}

/** `encodeBase64Url` for engines without `toBase64`; exported for its test. */
export function encodeUrlByBtoa(bytes: Uint8Array): string {
  return encodeByBtoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** `decodeBase64Url` for engines without `fromBase64`; exported for its test. */
export function decodeUrlByAtob(text: string): Uint8Array | undefined {
  if (!base64UrlPattern.test(text)) return undefined
  const standard = text.replaceAll('-', '+').replaceAll('_', '/')
  return decodeByAtob(standard.padEnd(Math.ceil(text.length / 4) * 4, '='))
}

/**
 * Encodes a JSON value as base64 of its UTF-8 text, the format of x402 headers.
 *
 * @example
 * encodeJsonBase64({ x402Version: 2 }) // 'eyJ4NDAyVmVyc2lvbiI6Mn0='
 */
export function encodeJsonBase64(value: unknown): string {
  return encodeBase64(utf8(JSON.stringify(value)))
}

/**
 * Decodes base64 of UTF-8 JSON. Returns `undefined` if the base64, the UTF-8 or the JSON is malformed. JSON `null`
 * returns null.
 *
 * @example
 * decodeJsonBase64('eyJ4NDAyVmVyc2lvbiI6Mn0=') // { x402Version: 2 }
 */
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

/** The engine ignores white space. Comparing the lengths detects it. */
function decodeByEngine(decode: NativeDecode, text: string): Uint8Array | undefined {
  try {
    const bytes = decode(text, { lastChunkHandling: 'strict' })
    return Math.ceil(bytes.length / 3) * 4 === text.length ? bytes : undefined
  } catch {
    return undefined
  }
}

/** Without padding the engine also ignores unused bits. */
function decodeUrlByEngine(decode: NativeDecode, text: string): Uint8Array | undefined {
  if (hasLooseBits(text, (4 - (text.length % 4)) % 4)) return undefined
  try {
    const bytes = decode(text, { alphabet: 'base64url', lastChunkHandling: 'loose' })
    return Math.floor((text.length * 3) / 4) === bytes.length ? bytes : undefined
  } catch {
    return undefined
  }
}

function isNativeDecode(value: unknown): value is NativeDecode {
  return typeof value === 'function'
}

function isNativeEncode(value: unknown): value is NativeEncode {
  return typeof value === 'function'
}

/**
 * Whether unused bits are set in a text without padding that lacks so many characters of whole groups. A lenient decoder ignores them, so that
 * two texts could decode to the same bytes.
 */
function hasLooseBits(text: string, missing: number): boolean {
  if (missing === 0) return false
  const last = text.at(-1) ?? ' '
  return missing === 2 ? !'AQgw'.includes(last) : !'AEIMQUYcgkosw048'.includes(last)
}
