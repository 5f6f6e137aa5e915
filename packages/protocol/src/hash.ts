import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js'
import { keccak_256 } from '@noble/hashes/sha3.js'

/**
 * Keccak-256 as a function, so that a server can pass a faster one than the JavaScript default. It must not keep or
 * change its argument, and must return 32 bytes that nothing changes afterwards.
 */
export type Keccak = (bytes: Uint8Array) => Uint8Array

/**
 * Keccak-256 of Ethereum, which has the padding from before FIPS 202. Returns 32 bytes.
 *
 * @example
 * bytesToHex(keccak256(utf8(''))) // '0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470'
 */
export const keccak256: Keccak = (bytes) => keccak_256(bytes)

/**
 * SHA-256 (FIPS 180-4). Returns 32 bytes.
 *
 * @example
 * bytesToHex(sha256(utf8(''))) // '0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
 */
export function sha256(bytes: Uint8Array): Uint8Array {
  return nobleSha256(bytes)
}
