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
import {
  findCurrentKey,
  insertFingerprint,
  insertKey,
  type KeyPurpose,
  listFingerprints,
  lockKeys,
  type SealedKeyRow,
} from './store.ts'

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

const algorithms: Readonly<Record<KeyPurpose, string>> = {
  settler: 'secp256k1',
  'settlement-token': 'hmac-sha256',
  answers: 'aes-256-gcm',
}

/**
 * Opens the service's own keys, making those that are missing: once, however many processes start together. A
 * key-encryption key that is not the one the database knows stops the start before anything is opened or made.
 */
export async function openCustody(options: CustodyOptions): Promise<Custody> {
  const kek = localKeyEncryption(
    readKey(options.source, { ...options, createIfMissing: await mayCreate(options) }),
    options.random,
  )
  const rows = await options.db.tx(async (tx) => {
    await lockKeys(tx)
    await refuseOtherKey(tx, kek, options.clock)
    return {
      settler: await ensureKey(tx, options, kek, 'settler'),
      token: await ensureKey(tx, options, kek, 'settlement-token'),
      answers: await ensureKey(tx, options, kek, 'answers'),
    }
  })
  const answers = await openKey(kek, rows.answers)
  return {
    settler: await createSigner(() => openKey(kek, rows.settler), options.signatures),
    sealer: {
      seal: (plaintext, associatedData) => encrypt(answers, plaintext, associatedData, options.random),
      open: (sealed, associatedData) => decrypt(answers, sealed, associatedData),
    },
    settlementTokens: createTokens(await openKey(kek, rows.token)),
  }
}

/** A new key-encryption key would open nothing of a database that was sealed with another, and would hide that one is lost. */
async function mayCreate({ db, createIfMissing }: CustodyOptions): Promise<boolean> {
  return createIfMissing && (await listFingerprints(db)).length === 0
}

async function refuseOtherKey(tx: Tx, kek: KeyEncryption, clock: Clock): Promise<void> {
  const known = await listFingerprints(tx)
  if (known.includes(kek.fingerprint)) return
  if (known.length > 0) {
    throw new Error(
      `the key-encryption key (fingerprint ${kek.fingerprint}) is not the one that this database was sealed with (${known.join(', ')})`,
    )
  }
  await insertFingerprint(tx, kek.fingerprint, clock.now())
}

function openKey(kek: KeyEncryption, row: SealedKeyRow): Promise<Uint8Array> {
  return openEnvelope(kek, row, associatedDataOf(row))
}

async function ensureKey(
  tx: Tx,
  options: CustodyOptions,
  kek: KeyEncryption,
  purpose: KeyPurpose,
): Promise<SealedKeyRow> {
  const stored = await findCurrentKey(tx, purpose)
  if (stored !== undefined) return stored
  const secret = newSecret(purpose, options)
  const kid = `${purpose}-${Buffer.from(options.random.bytes(8)).toString('hex')}`
  const name = { kid, purpose, algorithm: algorithms[purpose] }
  try {
    const row = { ...name, ...(await sealEnvelope(kek, secret, associatedDataOf(name), options.random)) }
    await insertKey(tx, row, kek.fingerprint, options.clock.now())
    return row
  } finally {
    secret.fill(0)
  }
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
