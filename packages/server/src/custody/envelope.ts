import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'
import type { Random } from '../platform/random.ts'
import type { KeyEncryption, KeyRing } from './key-encryption.ts'

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
