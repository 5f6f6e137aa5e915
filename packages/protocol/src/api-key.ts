import { encodeBase62 } from './base62.ts'
import { readUint256 } from './bytes.ts'
import type { Environment } from './chains.ts'
import { crc32 } from './crc32.ts'
import { utf8 } from './utf8.ts'

const keyPattern = /^svc_(test|live)_sk_[0-9A-Za-z]{49}$/
const secretWidth = 43
const checksumWidth = 6

/**
 * Composes an API key: `svc_<environment>_sk_`, the 32 random bytes as 43 base62 digits, and the CRC-32 of all text
 * before it as 6 base62 digits. Throws a `RangeError` unless `random32` has 32 bytes.
 *
 * @example
 * composeApiKey('test', new Uint8Array(32)) // 'svc_test_sk_000000000000000000000000000000000000000000006Himu'
 */
export function composeApiKey(environment: Environment, random32: Uint8Array): string {
  if (random32.length !== 32) throw new RangeError('an API key needs 32 random bytes')
  const body = `svc_${environment}_sk_${encodeBase62(readUint256(random32), secretWidth)}`
  return body + checksumOf(body)
}

/**
 * Reads an API key. Returns `undefined` if the text is malformed or its checksum is wrong, so that a typo needs no
 * database lookup. The checksum is not a secret: a well-formed key need not exist.
 *
 * @example
 * parseApiKey('svc_test_sk_mistyped') // undefined
 */
export function parseApiKey(text: string): { environment: Environment } | undefined {
  const environment = keyPattern.exec(text)?.[1]
  if (environment !== 'test' && environment !== 'live') return undefined
  return text.endsWith(checksumOf(text.slice(0, -checksumWidth))) ? { environment } : undefined
}

function checksumOf(body: string): string {
  return encodeBase62(BigInt(crc32(utf8(body))), checksumWidth)
}
