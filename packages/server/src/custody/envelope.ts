import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'
import type { Random } from '../platform/random.ts'

const ivBytes = 12
const tagBytes = 16

/** AES-256-GCM: nonce, ciphertext and tag in one. The associated data must be the same when it is opened. */
export function encrypt(key: Uint8Array, plaintext: Uint8Array, associatedData: string, random: Random): Uint8Array {
  const iv = random.bytes(ivBytes)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(associatedData))
  return Buffer.concat([iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

/** Throws when the key, the bytes or the associated data is not what it was. */
export function decrypt(key: Uint8Array, sealed: Uint8Array, associatedData: string): Uint8Array {
  if (sealed.length < ivBytes + tagBytes) throw new Error('a sealed value is cut short')
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, ivBytes)).setAAD(Buffer.from(associatedData))
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes))
  const plaintext = decipher.update(sealed.subarray(ivBytes, sealed.length - tagBytes))
  decipher.final()
  return plaintext
}

/** A secret under a data key of its own, and that data key under the key-encryption key. */
export interface Envelope {
  readonly wrappedDataKey: Uint8Array
  readonly sealed: Uint8Array
}

/** Wraps and unwraps data keys: a file's key here; a key service is another body of the same port. */
export interface KeyEncryption {
  /** Names the key without telling it. */
  readonly fingerprint: string
  wrap(dataKey: Uint8Array, associatedData: string): Promise<Uint8Array>
  unwrap(wrapped: Uint8Array, associatedData: string): Promise<Uint8Array>
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
      wrappedDataKey: await kek.wrap(dataKey, associatedData),
      sealed: encrypt(dataKey, secret, associatedData, random),
    }
  } finally {
    dataKey.fill(0)
  }
}

export async function openEnvelope(
  kek: KeyEncryption,
  envelope: Envelope,
  associatedData: string,
): Promise<Uint8Array> {
  const dataKey = await kek.unwrap(envelope.wrappedDataKey, associatedData)
  try {
    return decrypt(dataKey, envelope.sealed, associatedData)
  } finally {
    dataKey.fill(0)
  }
}

/** A key-encryption key that this process holds. */
export function localKeyEncryption(key: Uint8Array, random: Random): KeyEncryption {
  if (key.length !== 32) throw new Error('a key-encryption key is 32 bytes')
  return {
    fingerprint: createHash('sha256').update('purser key-encryption key').update(key).digest('hex').slice(0, 32),
    wrap: async (dataKey, associatedData) => encrypt(key, dataKey, associatedData, random),
    unwrap: async (wrapped, associatedData) => decrypt(key, wrapped, associatedData),
  }
}
