import { createHmac, createPrivateKey, createPublicKey, createSecretKey, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { type Clock, instantOf } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { Log } from '../platform/log.ts'
import { type DatedKeyRow, listKeysSince, type SealedKeyRow } from './store.ts'

/** The service's own signatures, as a dependency. */
export interface ServiceSealPort {
  readonly serviceSeal: ServiceSeal
}

/** A public key of the service, as in the key set. Source: RFC 8037, section 2. */
interface ServicePublicKey {
  readonly kid: string
  /** The 32 bytes, base64url. */
  readonly x: string
}

/** The tenant to which the service signs deliveries. */
interface SealAudience {
  readonly organisationId: string
  readonly environment: string
}

/** Signatures that anyone can verify: on offers, receipts, seals and deliveries. Ed25519 (RFC 8032). */
export interface ServiceSeal {
  /** Id of the current signing key. `sign` uses the same key when called before any await. */
  readonly kid: string
  /** 64 bytes. Never rejects once the service is up, because the key is already unsealed. */
  sign(message: Uint8Array): Promise<Uint8Array>
  /**
   * All keys that ever signed or will soon sign, newest first, so that old signatures stay verifiable. Keys that were withdrawn after a leak are not
   * among them. At most 10 s old.
   */
  publicKeys(): Promise<readonly ServicePublicKey[]>
  /**
   * Signs a delivery to a tenant, 64 bytes, with a key of that tenant alone: it is derived from the signing key. A tenant decides what its own events
   * say, so that with one key for all it could make events that a receiver of another tenant accepts.
   */
  signTo(audience: SealAudience, message: Uint8Array): Promise<Uint8Array>
  /** The keys of `signTo` for a tenant, in the order of `publicKeys`. Those of a tenant that does not exist look the same. */
  publicKeysTo(audience: SealAudience): Promise<readonly ServicePublicKey[]>
}

export interface ServiceSealOptions {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly openKey: (row: SealedKeyRow) => Promise<Uint8Array>
}

/** Signs in a thread of the pool: a signature is a fifth of the main thread's work for a delivery. */
const signInPool = promisify(sign)

/**
 * Returns a function whose promises of one turn of the event loop resolve together, at its end. Each signature that is given to an idle pool wakes a thread, and
 * several that are given together wake it once.
 */
function createTurns(): () => Promise<void> {
  let turn: Promise<void> | undefined
  return () => {
    turn ??= new Promise((resolve) =>
      setImmediate(() => {
        turn = undefined
        resolve()
      }),
    )
    return turn
  }
}

/** Longest age of the cached list of keys. */
const reloadMs = 10_000
/** A new key is published this long before it signs, longer than the five minutes for which clients may cache the key set. */
const announcedMs = 600_000

interface Key {
  readonly row: DatedKeyRow
  readonly key: KeyObject
  readonly shown: ServicePublicKey
  /** The secret from which the keys to tenants are derived. */
  readonly root: KeyObject
  /** Derived keys that signed, by tenant. */
  readonly derived: Map<string, KeyObject>
}

/** Most derived keys that are kept of each key. One takes a fiftieth of a millisecond to make again. */
const derivedMax = 10_000

/**
 * Opens each key of purpose `seal` once. The keys stay in OpenSSL's memory, outside the JavaScript heap, because they sign thousands of webhook
 * deliveries a second; they never sign transactions. Signing and reading keys detect a rotation. While the database does not respond, the known keys
 * stay in use.
 */
export async function createServiceSeal(options: ServiceSealOptions): Promise<ServiceSeal> {
  const { clock, log } = options
  let keys: readonly Key[] = await loadKeys(options, [])
  let loadedAtMs = clock.now().getTime()
  let loading: Promise<void> | undefined
  const reload = (): Promise<void> | undefined => {
    if (clock.now().getTime() - loadedAtMs < reloadMs) return undefined
    loading ??= loadKeys(options, keys)
      .then((loaded) => {
        keys = loaded
        loadedAtMs = clock.now().getTime()
      })
      .catch((err: unknown) => log.warn({ err }, 'the signing keys could not be reloaded'))
      .finally(() => {
        loading = undefined
      })
    return loading
  }
  const endOfTurn = createTurns()
  const current = (): Key => signing(keys, clock.now().getTime())
  return {
    get kid() {
      return current().row.kid
    },
    async sign(message) {
      const { key } = current()
      void reload()
      return new Uint8Array(sign(null, message, key))
    },
    async publicKeys() {
      await reload()
      return keys.map(({ shown }) => shown)
    },
    async signTo(audience, message) {
      const key = keyTo(current(), audience)
      void reload()
      await endOfTurn()
      return signInPool(null, message, key)
    },
    async publicKeysTo(audience) {
      await reload()
      return keys.map(({ root }) => {
        const x = publicKeyOf(derive(root, nameOf(audience)))
        return { kid: `webhooks-${x.slice(0, 16)}`, x }
      })
    },
  }
}

function keyTo({ root, derived }: Key, audience: SealAudience): KeyObject {
  const name = nameOf(audience)
  const key = derived.get(name) ?? derive(root, name)
  derived.delete(name)
  if (derived.size >= derivedMax) derived.delete(derived.keys().next().value ?? '')
  derived.set(name, key)
  return key
}

const nameOf = ({ organisationId, environment }: SealAudience): string => `${organisationId} ${environment}`

/** Returns the Ed25519 key whose seed is the HMAC of the tenant's name: no tenant learns anything of another's. */
function derive(root: KeyObject, name: string): KeyObject {
  return ed25519KeyOf(createHmac('sha256', root).update(`purser webhooks ${name}`).digest())
}

/**
 * The newest key that was published long enough ago; otherwise the oldest that is current or was retired just now. A key that was retired long ago
 * never signs again, also if its successor was withdrawn.
 */
function signing(keys: readonly Key[], nowMs: number): Key {
  const isOver = (instant: Date) => instant.getTime() + announcedMs <= nowMs
  const candidates = keys.filter(({ row }) => row.retiredAt === null || !isOver(row.retiredAt))
  const key = candidates.find(({ row }) => isOver(row.createdAt)) ?? candidates.at(-1)
  if (key === undefined) throw new Error('there is no signing key')
  return key
}

async function loadKeys({ db, openKey }: ServiceSealOptions, known: readonly Key[]): Promise<readonly Key[]> {
  const rows = await listKeysSince(db, 'seal', instantOf(0))
  return Promise.all(
    rows.map(async (row) => {
      const same = known.find((key) => key.row.kid === row.kid)
      if (same !== undefined) return { ...same, row }
      const seed = await openKey(row)
      const root = createSecretKey(seed)
      const key = ed25519KeyOf(seed)
      return { row, key, shown: { kid: row.kid, x: publicKeyOf(key) }, root, derived: new Map<string, KeyObject>() }
    }),
  )
}

/** Prefix of a PKCS #8 document with a 32-byte Ed25519 key (RFC 8410, section 7). */
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Returns the private key of a seed, and wipes the seed. */
function ed25519KeyOf(seed: Uint8Array): KeyObject {
  const der = Buffer.concat([pkcs8Head, seed])
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  } finally {
    seed.fill(0)
    der.fill(0)
  }
}

function publicKeyOf(key: KeyObject): string {
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  if (x === undefined) throw new Error('an Ed25519 key has no public key')
  return x
}
