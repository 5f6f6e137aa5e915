import type { Clock } from '../platform/clock.ts'
import type { Db, Tx } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import { currentKey } from './current-key.ts'
import { openEnvelope, sealEnvelope } from './envelope.ts'
import { lockKeys, type WrappedTable } from './kek-store.ts'
import type { KeyRing } from './key-encryption.ts'
import {
  findCurrentKey,
  findKey,
  insertKey,
  type KeyPurpose,
  listKeysUnderOther,
  markKeyRewrapped,
  markRetired,
  type SealedKeyRow,
} from './store.ts'

/** What making a key needs. */
export interface KeyMaking {
  readonly db: Db
  readonly ring: KeyRing
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

const attemptsMax = 5

/** The service's keys, as a rotation of the key-encryption key sees them. */
export const wrappedServiceKeys: WrappedTable = {
  name: 'service keys',
  async list(db, fingerprint, page) {
    const rows = await listKeysUnderOther(db, fingerprint, page)
    return rows.map((row) => ({ ...row, id: row.kid, associatedData: associatedDataOf(row) }))
  },
  markRewrapped: markKeyRewrapped,
}

/** The purpose's current key, made when there is none: once, however many processes start together. */
export async function ensureKey(purpose: KeyPurpose, making: KeyMaking): Promise<SealedKeyRow> {
  const known = await findCurrentKey(making.db, purpose)
  if (known !== undefined) return known
  return storeNewKey(purpose, making, { inPlaceOfIt: (tx) => findCurrentKey(tx, purpose) })
}

/** What replaced what; the secrets themselves are never shown. */
export interface KeyRotation {
  readonly current: string
  readonly retired: string | null
  readonly at: Date
}

/** Makes a new key for a purpose, retires the one before and has that recorded, in one transaction. */
export async function replaceKey(
  purpose: KeyPurpose,
  making: KeyMaking,
  record: (tx: Tx, rotation: KeyRotation) => Promise<void>,
): Promise<KeyRotation> {
  const at = making.clock.now()
  let retired: string | undefined
  const retire = async (tx: Tx): Promise<undefined> => {
    retired = await markRetired(tx, purpose, at)
  }
  const rotationTo = (kid: string): KeyRotation => ({ current: kid, retired: retired ?? null, at })
  const { kid } = await storeNewKey(purpose, making, {
    inPlaceOfIt: retire,
    stored: (tx, key) => record(tx, rotationTo(key.kid)),
  })
  return rotationTo(kid)
}

interface Storing {
  /** Looks first, under the lock: a row that it answers stays. */
  readonly inPlaceOfIt: (tx: Tx) => Promise<SealedKeyRow | undefined>
  /** Does what belongs to the storing, in its transaction. */
  readonly stored?: (tx: Tx, made: SealedKeyRow) => Promise<void>
}

/**
 * Seals outside the transaction, since that may ask a key service, and stores inside it. A key-encryption key that was retired in the meantime stores nothing: sealed again under the next.
 */
async function storeNewKey(
  purpose: KeyPurpose,
  making: KeyMaking,
  { inPlaceOfIt, stored: whenStored }: Storing,
): Promise<SealedKeyRow> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const made = await sealNewKey(purpose, making)
    const stored = await making.db
      .tx(async (tx) => {
        await lockKeys(tx)
        const there = await inPlaceOfIt(tx)
        if (there !== undefined) return there
        if (!(await insertKey(tx, made, making.clock.now()))) throw new RetiredMeanwhile()
        await whenStored?.(tx, made)
        return made
      })
      .catch((error: unknown) => {
        if (error instanceof RetiredMeanwhile) return undefined
        throw error
      })
    if (stored !== undefined) return stored
  }
  throw new Error('the key-encryption key changes faster than a key is sealed')
}

class RetiredMeanwhile extends Error {}

async function sealNewKey(purpose: KeyPurpose, making: KeyMaking): Promise<SealedKeyRow> {
  const secret = newSecret(purpose, making)
  const kid = `${purpose}-${Buffer.from(making.random.bytes(8)).toString('hex')}`
  const name = { kid, purpose, algorithm: algorithms[purpose] }
  try {
    return { ...name, ...(await sealEnvelope(await currentKey(making), secret, associatedDataOf(name), making.random)) }
  } finally {
    secret.fill(0)
  }
}

/**
 * The secret of a stored key, which the caller wipes; throws when the row, or the place that it stands in, was changed. A row that
 * was read before a rotation is read again: the key that it was under may be gone by now.
 */
export async function openKey(from: Pick<KeyMaking, 'db' | 'ring'>, row: SealedKeyRow): Promise<Uint8Array> {
  try {
    return await openEnvelope(from.ring, row, associatedDataOf(row))
  } catch (error) {
    const now = await findKey(from.db, row.kid)
    if (now === undefined || now.fingerprint === row.fingerprint) throw error
    return openEnvelope(from.ring, now, associatedDataOf(now))
  }
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
