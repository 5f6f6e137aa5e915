import { createHash } from 'node:crypto'
import type { Random } from '../platform/random.ts'
import { decrypt, encrypt } from './envelope.ts'
import type { KeyEncryption } from './key-encryption.ts'

/**
 * A local key-encryption key of 32 bytes. It is read for each use and wiped afterwards, so that it is in memory for microseconds. Throws when the
 * key has changed since the start, since other processes could not open what it wraps.
 */
export function localKeyEncryption(read: () => Uint8Array, random: Random): KeyEncryption {
  const withKey = <T>(use: (key: Uint8Array) => T): T => {
    const key = read()
    try {
      if (key.length !== 32) throw new Error('a key-encryption key is 32 bytes')
      return use(key)
    } finally {
      key.fill(0)
    }
  }
  const fingerprint = withKey(fingerprintOf)
  const withSameKey = <T>(use: (key: Uint8Array) => T): T =>
    withKey((key) => {
      if (fingerprintOf(key) !== fingerprint)
        throw new Error('the key-encryption key changed while the process was running')
      return use(key)
    })
  return {
    fingerprint,
    wrap: async (dataKey, associatedData) => withSameKey((key) => encrypt(key, dataKey, associatedData, random)),
    unwrap: async (wrapped, associatedData) => withSameKey((key) => decrypt(key, wrapped, associatedData)),
  }
}

function fingerprintOf(key: Uint8Array): string {
  return createHash('sha256').update('purser key-encryption key').update(key).digest('hex').slice(0, 32)
}
