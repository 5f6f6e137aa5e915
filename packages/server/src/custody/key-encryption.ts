import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import { findCurrentFingerprint, listFingerprintsInUse, lockKeys, markCurrent } from './kek-store.ts'

/** Wraps and unwraps data keys under one key-encryption key. Both may call a key service, so never use them inside a database transaction. */
export interface KeyEncryption {
  /** Identifies the key without revealing it. */
  readonly fingerprint: string
  wrap(dataKey: Uint8Array, associatedData: string): Promise<Uint8Array>
  /** Returns the data key, which the caller must wipe. Throws when it was wrapped under another key, with other associated data, or was changed. */
  unwrap(wrapped: Uint8Array, associatedData: string): Promise<Uint8Array>
}

/** The key-encryption keys in this process's configuration. */
export interface KeyRing {
  /** The first configured key, which a rotation makes current. */
  readonly first: KeyEncryption
  readonly fingerprints: readonly string[]
  has(fingerprint: string): boolean
  /** Throws when the key is not configured. */
  key(fingerprint: string): KeyEncryption
}

export function createKeyRing(first: KeyEncryption, others: readonly KeyEncryption[] = []): KeyRing {
  const keys = new Map([first, ...others].map((key) => [key.fingerprint, key]))
  return {
    first,
    fingerprints: [...keys.keys()],
    has: (fingerprint) => keys.has(fingerprint),
    key(fingerprint) {
      const key = keys.get(fingerprint)
      if (key === undefined)
        throw new Error(
          `the key-encryption key ${fingerprint} is not configured: add it to KEY_ENCRYPTION_ALSO and restart`,
        )
      return key
    },
  }
}

interface Sealing {
  readonly db: Db
  readonly ring: KeyRing
  readonly clock: Clock
}

/** The current key-encryption key according to the database, so that a rotation takes effect in every process at once. */
export async function currentKey({ db, ring }: Pick<Sealing, 'db' | 'ring'>): Promise<KeyEncryption> {
  const fingerprint = await findCurrentFingerprint(db)
  if (fingerprint === undefined) throw new Error('no key-encryption key is current')
  return ring.key(fingerprint)
}

/**
 * Throws when the process lacks a key-encryption key that the database needs: the current one, or one that is still in use. Makes the first key
 * current in a database without one.
 */
export async function refuseOtherKeys({ db, ring, clock }: Sealing): Promise<void> {
  await db.tx(async (tx) => {
    await lockKeys(tx)
    const current = await findCurrentFingerprint(tx)
    if (current === undefined) return markCurrent(tx, ring.first.fingerprint, clock.now())
    const needed = [...new Set([current, ...(await listFingerprintsInUse(tx))])]
    if (needed.some((fingerprint) => !ring.has(fingerprint))) throw new Error(whatIsMissing(ring, needed))
  })
}

function whatIsMissing(ring: KeyRing, needed: readonly string[]): string {
  const [has, lacks] = [ring.fingerprints.join(', '), needed.filter((fingerprint) => !ring.has(fingerprint)).join(', ')]
  const mismatch = `the key-encryption key (fingerprint ${has}) is not the one that this database was sealed with (${lacks})`
  const rotating = needed.some((fingerprint) => ring.has(fingerprint))
  return rotating ? `${mismatch}; during a rotation, configure both keys, one of them in KEY_ENCRYPTION_ALSO` : mismatch
}
