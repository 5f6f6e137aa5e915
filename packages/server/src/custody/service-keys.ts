import type { Clock } from '../platform/clock.ts'
import type { Db, Tx } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import { lockKeys, type WrappedTable } from './kek-store.ts'
import { currentKey, type KeyRing, openEnvelope, sealEnvelope } from './key-encryption.ts'
import {
  findCurrentKey,
  findKey,
  insertKey,
  type KeyPurpose,
  listKeysUnderOther,
  markKeyRewrapped,
  markRetired,
  markWithdrawn,
  type SealedKeyRow,
} from './store.ts'

/** Dependencies for creating a key. */
export interface KeyMaking {
  readonly db: Db
  readonly ring: KeyRing
  readonly clock: Clock
  readonly random: Random
  /** Whether these 32 bytes are a valid secp256k1 private key. */
  readonly isPrivateKey: (secret: Uint8Array) => boolean
}

const algorithms: Readonly<Record<KeyPurpose, string>> = {
  settler: 'secp256k1',
  'settlement-token': 'hmac-sha256',
  answers: 'aes-256-gcm',
  'mpp-challenge': 'hmac-sha256',
  seal: 'ed25519',
  'file-link': 'hmac-sha256',
  'sign-in': 'hmac-sha256',
}

const attemptsMax = 5

/** The service's keys, for a rotation of the key-encryption key. */
export const wrappedServiceKeys: WrappedTable = {
  name: 'service keys',
  async list(db, fingerprint, page) {
    const rows = await listKeysUnderOther(db, fingerprint, page)
    return rows.map((row) => ({ ...row, id: row.kid, associatedData: associatedDataOf(row) }))
  },
  markRewrapped: markKeyRewrapped,
}

/** The purpose's current key; created once when there is none, even if several processes start together. */
export async function ensureKey(purpose: KeyPurpose, making: KeyMaking): Promise<SealedKeyRow> {
  const known = await findCurrentKey(making.db, purpose)
  if (known !== undefined) return known
  return storeNewKey(purpose, making, { findExisting: (tx) => findCurrentKey(tx, purpose) })
}

/** Key ids of a rotation, without secrets. */
export interface KeyRotation {
  readonly current: string
  readonly retired: string | null
  readonly at: Date
}

/** Creates a new key for a purpose, retires the previous one and calls `record`, in one transaction. */
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
    findExisting: retire,
    stored: (tx, key) => record(tx, rotationTo(key.kid)),
  })
  return rotationTo(kid)
}

/** A withdrawn key and the key that is current after it, without secrets. */
export interface KeyWithdrawal {
  readonly withdrawn: string
  readonly current: string
  readonly at: Date
}

/**
 * Withdraws a key and calls `record`, in one transaction. If it was the current one, a new key takes its place. Undefined if there is no such key, or
 * it was withdrawn before.
 */
export async function withdrawKey(
  { purpose, kid }: { readonly purpose: KeyPurpose; readonly kid: string },
  making: KeyMaking,
  record: (tx: Tx, withdrawal: KeyWithdrawal) => Promise<void>,
): Promise<KeyWithdrawal | undefined> {
  const at = making.clock.now()
  const withdrawalTo = (current: string): KeyWithdrawal => ({ withdrawn: kid, current, at })
  const withdraw = async (tx: Tx): Promise<SealedKeyRow | undefined> => {
    const done = await markWithdrawn(tx, { purpose, kid }, at)
    if (done === undefined) throw new NotToWithdraw()
    const current = done.wasCurrent ? undefined : await findCurrentKey(tx, purpose)
    if (current !== undefined) await record(tx, withdrawalTo(current.kid))
    return current
  }
  try {
    const { kid: current } = await storeNewKey(purpose, making, {
      findExisting: withdraw,
      stored: (tx, key) => record(tx, withdrawalTo(key.kid)),
    })
    return withdrawalTo(current)
  } catch (error) {
    if (error instanceof NotToWithdraw) return undefined
    throw error
  }
}

class NotToWithdraw extends Error {}

interface Storing {
  /** Runs first, under the lock. A row that it returns is kept instead of the new key. */
  readonly findExisting: (tx: Tx) => Promise<SealedKeyRow | undefined>
  /** Runs in the transaction that stores the key. */
  readonly stored?: (tx: Tx, made: SealedKeyRow) => Promise<void>
}

/**
 * Seals outside the transaction, since that may call a key service, and stores inside it. If the key-encryption key was retired in the meantime,
 * seals again under the next one.
 */
async function storeNewKey(
  purpose: KeyPurpose,
  making: KeyMaking,
  { findExisting, stored: whenStored }: Storing,
): Promise<SealedKeyRow> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const made = await sealNewKey(purpose, making)
    const stored = await making.db
      .tx(async (tx) => {
        await lockKeys(tx)
        const there = await findExisting(tx)
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
  throw new Error('the key-encryption key keeps changing while a key is sealed')
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
 * Returns the secret of a stored key, which the caller must wipe. Throws when the row was changed or moved. Reads a row again that was rewrapped by
 * a rotation, since its old key may be gone.
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

/** Binds a ciphertext to its row, so that it cannot be moved to another. The service's own keys belong to no organisation. */
function associatedDataOf(name: Pick<SealedKeyRow, 'kid' | 'purpose' | 'algorithm'>): string {
  return `purser|service|${name.purpose}|${name.algorithm}|${name.kid}`
}

/** 32 random bytes; drawn again in the very unlikely case that they are not a valid private key. */
function newSecret(purpose: KeyPurpose, { random, isPrivateKey }: KeyMaking): Uint8Array {
  for (;;) {
    const secret = random.bytes(32)
    if (purpose !== 'settler' || isPrivateKey(secret)) return secret
  }
}
