import { decodeBase64, encodeBase64 } from '../base64.ts'
import { equalBytes } from '../bytes.ts'
import { sha256 } from '../hash.ts'
import { elementsOf } from './header-list.ts'

const digestLengthMax = 1_024

/**
 * Returns the `digest` of a request body in the format of the Content-Digest header: `sha-256=:`, base64, `:` (RFC 9530
 * section 2, the byte sequence of RFC 8941). mppx 0.11 sends it without the colons and accepts both formats in a
 * challenge.
 *
 * @example
 * contentDigest(utf8('{}')) // 'sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:'
 */
export function contentDigest(body: Uint8Array): string {
  return `sha-256=:${encodeBase64(sha256(body))}:`
}

/**
 * Whether two digests have the same SHA-256. Other algorithms are ignored: without a SHA-256, two digests are never the
 * same. Reads the formats of RFC 9530 and of mppx.
 *
 * @example
 * sameDigest(contentDigest(utf8('a')), contentDigest(utf8('b'))) // false
 */
export function sameDigest(left: string, right: string): boolean {
  const leftBytes = sha256Of(left)
  const rightBytes = sha256Of(right)
  return leftBytes !== undefined && rightBytes !== undefined && equalBytes(leftBytes, rightBytes)
}

function sha256Of(digest: string): Uint8Array | undefined {
  if (digest.length > digestLengthMax) return undefined
  const found = elementsOf(digest).filter((element) => element.startsWith('sha-256='))
  const value = found.length === 1 ? found[0]?.slice('sha-256='.length) : undefined
  const bytes = value === undefined ? undefined : decodeBase64(value.replace(/^:([^:]*):$/, '$1'))
  return bytes?.length === 32 ? bytes : undefined
}
