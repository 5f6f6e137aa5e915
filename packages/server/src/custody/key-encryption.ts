import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
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

const ivBytes = 12
const tagBytes = 16

/** AES-256-GCM: returns nonce, ciphertext and tag. Decryption needs identical associated data. */
export function encrypt(
  key: Uint8Array | KeyObject,
  plaintext: Uint8Array,
  associatedData: string,
  random: Random,
): Uint8Array {
  const iv = random.bytes(ivBytes)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(associatedData))
  return Buffer.concat([iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

/** Throws when the key, the bytes or the associated data differ, and wipes the plaintext. */
export function decrypt(key: Uint8Array | KeyObject, sealed: Uint8Array, associatedData: string): Uint8Array {
  if (sealed.length < ivBytes + tagBytes) throw new Error('a sealed value is truncated')
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, ivBytes)).setAAD(Buffer.from(associatedData))
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes))
  const plaintext = decipher.update(sealed.subarray(ivBytes, sealed.length - tagBytes))
  try {
    decipher.final()
  } catch (error) {
    plaintext.fill(0)
    throw error
  }
  return plaintext
}

/** A secret encrypted with its own data key, and that data key wrapped by the key-encryption key with this fingerprint. */
export interface Envelope {
  readonly fingerprint: string
  readonly wrappedDataKey: Uint8Array
  readonly sealed: Uint8Array
}

export async function sealEnvelope(
  kek: KeyEncryption,
  secret: Uint8Array,
  associatedData: string,
  random: Random,
): Promise<Envelope> {
  const dataKey = random.bytes(32)
  try {
    return {
      fingerprint: kek.fingerprint,
      wrappedDataKey: await kek.wrap(dataKey, associatedData),
      sealed: encrypt(dataKey, secret, associatedData, random),
    }
  } finally {
    dataKey.fill(0)
  }
}

export async function openEnvelope(
  ring: Pick<KeyRing, 'key'>,
  envelope: Envelope,
  associatedData: string,
): Promise<Uint8Array> {
  const dataKey = await ring.key(envelope.fingerprint).unwrap(envelope.wrappedDataKey, associatedData)
  try {
    return decrypt(dataKey, envelope.sealed, associatedData)
  } finally {
    dataKey.fill(0)
  }
}
