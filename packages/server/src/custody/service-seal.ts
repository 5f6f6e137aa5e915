import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { type Clock, instantOf } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { Log } from '../platform/log.ts'
import { type DatedKeyRow, listKeysSince, type SealedKeyRow } from './store.ts'

declare module '../platform/ctx.ts' {
  interface Ports {
    readonly serviceSeal: ServiceSeal
  }
}

/** A public key of the service as the key set shows it. Source: RFC 8037, section 2. */
export interface ServicePublicKey {
  readonly kid: string
  /** The 32 bytes, base64url. */
  readonly x: string
}

/** What the service signs for anybody to check: offers, receipts, seals, deliveries. Ed25519 (RFC 8032). */
export interface ServiceSeal {
  /** The key that signs now: `sign` uses it when it is called before anything is awaited. */
  readonly kid: string
  /** 64 bytes. Never rejects once the service is up: the key was unsealed before. */
  sign(message: Uint8Array): Promise<Uint8Array>
  /** Every key that ever signed or soon will, newest first: what was signed before a rotation stays checkable. At most 10 s old. */
  publicKeys(): Promise<readonly ServicePublicKey[]>
}

export interface ServiceSealOptions {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly openKey: (row: SealedKeyRow) => Promise<Uint8Array>
}

/** How old the list of keys may be. */
const reloadMs = 10_000
/** A new key is shown this long before it signs: whoever keeps a key set for the five minutes that it may be kept knows it then. */
const announcedMs = 600_000

interface Key {
  readonly row: DatedKeyRow
  readonly key: KeyObject
  readonly shown: ServicePublicKey
}

/**
 * Opens the keys of purpose `seal`, each once. They stay in the memory of OpenSSL, out of JavaScript's reach: they sign every delivery
 * of a webhook, several thousand a second, and no money. A rotation is noticed by whoever signs or is asked for keys; where the
 * database does not answer, what was known goes on.
 */
export async function createServiceSeal(options: ServiceSealOptions): Promise<ServiceSeal> {
  const { clock, log } = options
  let keys: readonly Key[] = await loadKeys(options, [])
  let loadedAtMs = clock.now().getTime()
  let loading: Promise<void> | undefined
  const reload = async (): Promise<void> => {
    if (clock.now().getTime() - loadedAtMs < reloadMs) return
    loading ??= loadKeys(options, keys)
      .then((loaded) => {
        keys = loaded
        loadedAtMs = clock.now().getTime()
      })
      .catch((err: unknown) => log.warn({ err }, 'the keys that seal could not be read again'))
      .finally(() => {
        loading = undefined
      })
    await loading
  }
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
  }
}

/** The newest that everybody has had time to learn of; where there is none, the oldest. */
function signing(keys: readonly Key[], nowMs: number): Key {
  const key = keys.find(({ row }) => row.createdAt.getTime() + announcedMs <= nowMs) ?? keys.at(-1)
  if (key === undefined) throw new Error('there is no key to seal with')
  return key
}

async function loadKeys({ db, openKey }: ServiceSealOptions, known: readonly Key[]): Promise<readonly Key[]> {
  const rows = await listKeysSince(db, 'seal', instantOf(0))
  return Promise.all(
    rows.map(async (row) => {
      const same = known.find((key) => key.row.kid === row.kid)
      if (same !== undefined) return { ...same, row }
      const key = await privateKeyOf(openKey, row)
      return { row, key, shown: { kid: row.kid, x: publicKeyOf(key) } }
    }),
  )
}

/** The fixed head of a PKCS #8 document that holds 32 bytes for Ed25519 (RFC 8410, section 7). */
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')

async function privateKeyOf(openKey: ServiceSealOptions['openKey'], row: SealedKeyRow): Promise<KeyObject> {
  const seed = await openKey(row)
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
  if (x === undefined) throw new Error('an Ed25519 key has no public half')
  return x
}
