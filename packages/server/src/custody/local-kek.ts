import { createHash } from 'node:crypto'
import type { Random } from '../platform/random.ts'
import { decrypt, encrypt } from './envelope.ts'
import type { KeyEncryption } from './key-encryption.ts'

/**
 * A key-encryption key of 32 bytes that this machine holds. It is read for each use and wiped after it, so that a process holds it
 * for microseconds; one that has become another since the start is refused, since what it wrapped would open nowhere else.
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
        throw new Error('the key-encryption key was replaced under a running process')
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
