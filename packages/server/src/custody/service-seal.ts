import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { Db } from '../platform/db/db.ts'
import { listKeysSince, type SealedKeyRow } from './store.ts'

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

/** What the service signs for anybody to check: offers, receipts, seals. Ed25519 (RFC 8032). */
export interface ServiceSeal {
  /** The key that signs now. */
  readonly kid: string
  /** 64 bytes. Never rejects once the service is up: the key was unsealed at the start. */
  sign(message: Uint8Array): Promise<Uint8Array>
  /** Every key that ever signed, newest first: what was signed before a rotation stays checkable. */
  readonly publicKeys: readonly ServicePublicKey[]
}

type OpenKey = (row: SealedKeyRow) => Promise<Uint8Array>

/**
 * Opens the current key of purpose `seal` and the public halves of all of them. The current key stays in the memory of OpenSSL, out
 * of JavaScript's reach: it signs every delivery of a webhook, several thousand a second, and no money.
 */
export async function createServiceSeal(db: Db, openKey: OpenKey, beginning: Date): Promise<ServiceSeal> {
  const rows = await listKeysSince(db, 'seal', beginning)
  const opened = await Promise.all(rows.map(async (row) => ({ row, key: await privateKeyOf(openKey, row) })))
  const current = opened.find(({ row }) => row.retiredAt === null)
  if (current === undefined) throw new Error('there is no key to seal with')
  return {
    kid: current.row.kid,
    publicKeys: opened.map(({ row, key }) => ({ kid: row.kid, x: publicKeyOf(key) })),
    sign: async (message) => new Uint8Array(sign(null, message, current.key)),
  }
}

/** The fixed head of a PKCS #8 document that holds 32 bytes for Ed25519 (RFC 8410, section 7). */
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')

async function privateKeyOf(openKey: OpenKey, row: SealedKeyRow): Promise<KeyObject> {
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
