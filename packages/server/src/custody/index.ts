import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Signatures } from '../chain/index.ts'
import type { Signer } from '../chain/port.ts'
import { type Clock, instantOf } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { Log } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'
import type { Sealer } from '../platform/secret.ts'
import { decrypt, encrypt, localKeyEncryption } from './envelope.ts'
import { type KeySource, readKey } from './key-file.ts'
import { createMppSecrets, type MppSecrets } from './mpp-secrets.ts'
import { ensureKey, type KeyMaking, openKey, refuseOtherKey } from './service-keys.ts'
import { createServiceSeal, type ServiceSeal } from './service-seal.ts'
import { createSigner } from './signer.ts'
import { listFingerprints, lockKeys } from './store.ts'
import { createWalletKeys, type WalletKeys } from './wallet-keys.ts'

export type { KeySource } from './key-file.ts'
export type { MppMacs, MppSecrets } from './mpp-secrets.ts'
export { rotateMppSecret } from './rotate-mpp-secret.ts'
export type { ServiceSeal } from './service-seal.ts'
export type { AccountNode, WalletKey, WalletKeys, WalletSigner } from './wallet-keys.ts'

export interface CustodyOptions {
  readonly db: Db
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly signatures: Signatures
  readonly source: KeySource
  readonly createIfMissing: boolean
  /** How long an MPP challenge lives, so that a retired secret is good for as long as what was made under it. */
  readonly mppChallengeSeconds: number
}

export interface Custody {
  /** The account that brings payments to the chains. */
  readonly settler: Signer
  readonly sealer: Sealer
  readonly settlementTokens: { mint(paymentId: string): string; check(paymentId: string, token: string): boolean }
  readonly fileLinks: { sign(link: string): string; check(link: string, signature: string): boolean }
  readonly mppSecrets: MppSecrets
  readonly seal: ServiceSeal
  readonly walletKeys: WalletKeys
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
  const making = keyMaking(options)
  const rows = await options.db.tx(async (tx) => {
    await lockKeys(tx)
    await refuseOtherKey(tx, kek, options.clock)
    await ensureKey(tx, kek, 'seal', making)
    return {
      settler: await ensureKey(tx, kek, 'settler', making),
      token: await ensureKey(tx, kek, 'settlement-token', making),
      link: await ensureKey(tx, kek, 'file-link', making),
      answers: await ensureKey(tx, kek, 'answers', making),
      mpp: await ensureKey(tx, kek, 'mpp-challenge', making),
    }
  })
  const answers = await openKey(kek, rows.answers)
  const mppSecrets = createMppSecrets({ ...options, openKey: (row) => openKey(kek, row) })
  await mppSecrets.load()
  return {
    settler: await createSigner(() => openKey(kek, rows.settler), options.signatures),
    sealer: {
      seal: (plaintext, associatedData) => encrypt(answers, plaintext, associatedData, options.random),
      open: (sealed, associatedData) => decrypt(answers, sealed, associatedData),
    },
    settlementTokens: createTokens(await openKey(kek, rows.token)),
    fileLinks: createLinks(await openKey(kek, rows.link)),
    mppSecrets,
    seal: await createServiceSeal(options.db, (row) => openKey(kek, row), instantOf(0)),
    walletKeys: createWalletKeys({ ...options, kek }),
  }
}

/** A new key-encryption key would open nothing of a database that was sealed with another, and would hide that one is lost. */
async function mayCreate({ db, createIfMissing }: CustodyOptions): Promise<boolean> {
  return createIfMissing && (await listFingerprints(db)).length === 0
}

function keyMaking({ clock, random, signatures }: CustodyOptions): KeyMaking {
  const isPrivateKey = (secret: Uint8Array): boolean => {
    try {
      signatures.publicKeyOf(secret)
      return true
    } catch {
      return false
    }
  }
  return { clock, random, isPrivateKey }
}

function createTokens(key: Uint8Array): Custody['settlementTokens'] {
  const mint = (paymentId: string): string => `stl_${createHmac('sha256', key).update(paymentId).digest('base64url')}`
  return { mint, check: (paymentId, token) => isSame(mint(paymentId), token) }
}

function createLinks(key: Uint8Array): Custody['fileLinks'] {
  const sign = (link: string): string => createHmac('sha256', key).update(link).digest('base64url')
  return { sign, check: (link, signature) => isSame(sign(link), signature) }
}

/** Takes as long for texts that differ at the end as for those that differ at the beginning. */
function isSame(expected: string, given: string): boolean {
  const [left, right] = [Buffer.from(expected), Buffer.from(given)]
  return left.length === right.length && timingSafeEqual(left, right)
}
