import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Signatures } from '../chain/index.ts'
import type { Signer } from '../chain/port.ts'
import type { Clock } from '../platform/clock.ts'
import type { Db, Tx } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import type { Sealer } from '../platform/secret.ts'
import { decrypt, encrypt, type KeyEncryption, localKeyEncryption, openEnvelope, sealEnvelope } from './envelope.ts'
import { type KeySource, readKey } from './key-file.ts'
import { createSigner } from './signer.ts'
import { findCurrentKey, insertFingerprint, insertKey, type KeyPurpose, listFingerprints, lockKeys, type SealedKeyRow } from './store.ts'

export interface CustodyOptions {
  readonly db: Db
  readonly clock: Clock
  readonly random: Random
  readonly signatures: Signatures
  readonly source: KeySource
  readonly createIfMissing: boolean
}

export interface Custody {
  /** The account that brings payments to the chains. */
  readonly settler: Signer
  readonly sealer: Sealer
  readonly settlementTokens: { mint(paymentId: string): string; check(paymentId: string, token: string): boolean }
}

const algorithms: Readonly<Record<KeyPurpose, string>> = { settler: 'secp256k1', 'settlement-token': 'hmac-sha256', answers: 'aes-256-gcm' }

/**
 * Opens the service's own keys, making those that are missing: once, however many processes start together. A
 * key-encryption key that is not the one the database knows stops the start before anything is opened or made.
 */
export async function openCustody(options: CustodyOptions): Promise<Custody> {
  const key = readKey(options.source, options)
  const kek = localKeyEncryption(key, options.random)
  const secrets = await options.db.tx(async (tx) => {
    await lockKeys(tx)
    await refuseOtherKey(tx, kek, options.clock)
    return {
      settler: await openKey(tx, options, kek, 'settler'),
      token: await openKey(tx, options, kek, 'settlement-token'),
      answers: await openKey(tx, options, kek, 'answers'),
    }
  })
  return {
    settler: createSigner(secrets.settler, options.signatures),
    sealer: {
      seal: (plaintext, associatedData) => encrypt(secrets.answers, plaintext, associatedData, options.random),
      open: (sealed, associatedData) => decrypt(secrets.answers, sealed, associatedData),
    },
    settlementTokens: createTokens(secrets.token),
  }
}

async function refuseOtherKey(tx: Tx, kek: KeyEncryption, clock: Clock): Promise<void> {
  const known = await listFingerprints(tx)
  if (known.includes(kek.fingerprint)) return
  if (known.length > 0) {
    throw new Error(`the key-encryption key (fingerprint ${kek.fingerprint}) is not the one that this database was sealed with (${known.join(', ')})`)
  }
  await insertFingerprint(tx, kek.fingerprint, clock.now())
}

async function openKey(tx: Tx, options: CustodyOptions, kek: KeyEncryption, purpose: KeyPurpose): Promise<Uint8Array> {
  const stored = await findCurrentKey(tx, purpose)
  if (stored !== undefined) return openEnvelope(kek, stored, associatedDataOf(stored))
  const secret = newSecret(purpose, options)
  const kid = `${purpose}-${Buffer.from(options.random.bytes(8)).toString('hex')}`
  const name = { kid, purpose, algorithm: algorithms[purpose] }
  await insertKey(tx, { ...name, ...(await sealEnvelope(kek, secret, associatedDataOf(name), options.random)) }, kek.fingerprint, options.clock.now())
  return secret
}

/** Binds a ciphertext to its row, so that none can be put in another's place. The service's own keys belong to no organisation. */
function associatedDataOf(name: Pick<SealedKeyRow, 'kid' | 'purpose' | 'algorithm'>): string {
  return `purser|service|${name.purpose}|${name.algorithm}|${name.kid}`
}

/** 32 random bytes; for the curve, drawn again in the all but impossible case that they are no key. */
function newSecret(purpose: KeyPurpose, options: CustodyOptions): Uint8Array {
  for (;;) {
    const secret = options.random.bytes(32)
    if (purpose !== 'settler') return secret
    try {
      options.signatures.publicKeyOf(secret)
      return secret
    } catch {}
  }
}

function createTokens(key: Uint8Array): Custody['settlementTokens'] {
  const mint = (paymentId: string): string => `stl_${createHmac('sha256', key).update(paymentId).digest('base64url')}`
  return {
    mint,
    check(paymentId, token) {
      const expected = Buffer.from(mint(paymentId))
      const given = Buffer.from(token)
      return expected.length === given.length && timingSafeEqual(expected, given)
    },
  }
}
