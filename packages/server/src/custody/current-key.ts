import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import { findCurrentFingerprint, listFingerprintsInUse, lockKeys, markCurrent } from './kek-store.ts'
import type { KeyEncryption, KeyRing } from './key-encryption.ts'

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
