import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js'
import { keccak_256 } from '@noble/hashes/sha3.js'

/**
 * Keccak-256 as a function, so that a server can pass a faster one than the JavaScript default. It must not keep or change the
 * bytes that it is given, and must answer 32 bytes that nothing else changes later.
 */
export type Keccak = (bytes: Uint8Array) => Uint8Array

/** Keccak-256 as Ethereum uses it (the padding before FIPS 202). 32 bytes. */
export const keccak256: Keccak = (bytes) => keccak_256(bytes)

/** SHA-256, FIPS 180-4. 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return nobleSha256(bytes)
}
