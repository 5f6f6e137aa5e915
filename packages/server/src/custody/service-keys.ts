import type { Clock } from '../platform/clock.ts'
import type { Tx } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import { type KeyEncryption, openEnvelope, sealEnvelope } from './envelope.ts'
import {
  findCurrentKey,
  insertFingerprint,
  insertKey,
  type KeyPurpose,
  listFingerprints,
  type SealedKeyRow,
} from './store.ts'

/** What making a key needs beside the transaction. */
export interface KeyMaking {
  readonly clock: Clock
  readonly random: Random
  /** Whether these 32 bytes are a key of the settler's curve. */
  readonly isPrivateKey: (secret: Uint8Array) => boolean
}

const algorithms: Readonly<Record<KeyPurpose, string>> = {
  settler: 'secp256k1',
  'settlement-token': 'hmac-sha256',
  answers: 'aes-256-gcm',
  'mpp-challenge': 'hmac-sha256',
  seal: 'ed25519',
  'file-link': 'hmac-sha256',
}

/** Stops whoever holds another key-encryption key than the one that the database was sealed with; an empty database takes this one. */
export async function refuseOtherKey(tx: Tx, kek: KeyEncryption, clock: Clock): Promise<void> {
  const known = await listFingerprints(tx)
  if (known.includes(kek.fingerprint)) return
  if (known.length > 0) {
    throw new Error(
      `the key-encryption key (fingerprint ${kek.fingerprint}) is not the one that this database was sealed with (${known.join(', ')})`,
    )
  }
  await insertFingerprint(tx, kek.fingerprint, clock.now())
}

/** The purpose's current key, made when there is none. The caller holds `lockKeys`. */
export async function ensureKey(
  tx: Tx,
  kek: KeyEncryption,
  purpose: KeyPurpose,
  making: KeyMaking,
): Promise<SealedKeyRow> {
  return (await findCurrentKey(tx, purpose)) ?? makeKey(tx, kek, purpose, making)
}

/** Makes and stores a new current key; the one before must be retired already. */
export async function makeKey(
  tx: Tx,
  kek: KeyEncryption,
  purpose: KeyPurpose,
  making: KeyMaking,
): Promise<SealedKeyRow> {
  const secret = newSecret(purpose, making)
  const kid = `${purpose}-${Buffer.from(making.random.bytes(8)).toString('hex')}`
  const name = { kid, purpose, algorithm: algorithms[purpose] }
  try {
    const row = { ...name, ...(await sealEnvelope(kek, secret, associatedDataOf(name), making.random)) }
    await insertKey(tx, row, kek.fingerprint, making.clock.now())
    return row
  } finally {
    secret.fill(0)
  }
}

/** The secret of a stored key; throws when the row, or the place that it stands in, was changed. */
export function openKey(kek: KeyEncryption, row: SealedKeyRow): Promise<Uint8Array> {
  return openEnvelope(kek, row, associatedDataOf(row))
}

/** Binds a ciphertext to its row, so that none can be put in another's place. The service's own keys belong to no organisation. */
function associatedDataOf(name: Pick<SealedKeyRow, 'kid' | 'purpose' | 'algorithm'>): string {
  return `purser|service|${name.purpose}|${name.algorithm}|${name.kid}`
}

/** 32 random bytes; for the curve, drawn again in the all but impossible case that they are no key. */
function newSecret(purpose: KeyPurpose, { random, isPrivateKey }: KeyMaking): Uint8Array {
  for (;;) {
    const secret = random.bytes(32)
    if (purpose !== 'settler' || isPrivateKey(secret)) return secret
  }
}
