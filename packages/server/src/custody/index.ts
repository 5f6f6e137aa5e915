import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { Signatures } from '../chain/index.ts'
import type { Signer } from '../chain/port.ts'
import type { Clock } from '../platform/clock.ts'
import { equalInConstantTime } from '../platform/constant-time.ts'
import type { Db } from '../platform/db/db.ts'
import type { Log } from '../platform/log.ts'
import type { Outbound } from '../platform/outbound.ts'
import type { Random } from '../platform/random.ts'
import type { Sealer } from '../platform/secret.ts'
import type { Witness } from '../platform/witness/witness.ts'
import { findCurrentFingerprint } from './kek-store.ts'
import { decrypt, encrypt, refuseOtherKeys } from './key-encryption.ts'
import { type KeySources, openKeyRing } from './key-sources.ts'
import { createMppSecrets, type MppSecrets } from './mpp-secrets.ts'
import { ensureKey, type KeyMaking, openKey } from './service-keys.ts'
import { createServiceSeal, type ServiceSeal } from './service-seal.ts'
import { createSigner } from './signer.ts'
import type { SealedKeyRow } from './store.ts'
import { createWalletKeys, type WalletKeys } from './wallet-keys.ts'

export type { KeyRing } from './key-encryption.ts'
export type { KeySource, KeySources } from './key-sources.ts'
export { openKeyRing } from './key-sources.ts'
export type { MppMacs, MppSecrets } from './mpp-secrets.ts'
export { type KekRotation, rotateKek, rotateMppSecret, rotateSealKey, withdrawSealKey } from './rotate-kek.ts'
export type { WalletSigner } from './signer.ts'
export { createFaucetSigner } from './signer.ts'
export type { AccountNode, WalletKeys } from './wallet-keys.ts'

export interface CustodyOptions {
  readonly db: Db
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly outbound: Pick<Outbound, 'exchange'>
  readonly signatures: Signatures
  /** Derivation and signing throw while the database is not current. */
  readonly witness: Pick<Witness, 'requireCurrent'>
  readonly keys: KeySources
  readonly createIfMissing: boolean
  /** Lifetime of an MPP challenge. A retired secret stays valid for as long. */
  readonly mppChallengeSeconds: number
}

export interface Custody {
  /** The relayer's account, which sends payments to the chains. */
  readonly settler: Signer
  readonly sealer: Sealer
  readonly settlementTokens: { mint(paymentId: string): string; check(paymentId: string, token: string): boolean }
  readonly fileLinks: { sign(link: string): string; check(link: string, signature: string): boolean }
  /** Returns the secret that signs the session cookies, in base64url. It is derived from a stored key, which stays inaccessible to JavaScript. */
  signInSecret(): string
  readonly mppSecrets: MppSecrets
  readonly seal: ServiceSeal
  readonly walletKeys: WalletKeys
}

/**
 * Opens the service's own keys and creates missing ones, once even if several processes start together. Throws before opening or creating anything
 * when the key-encryption key does not match the database. No key service is called while a transaction is open.
 */
export async function openCustody(options: CustodyOptions): Promise<Custody> {
  const ring = await openKeyRing(options.keys, { ...options, createIfMissing: await mayCreate(options) })
  await refuseOtherKeys({ ...options, ring })
  const making = keyMaking({ ...options, ring })
  const open = (row: SealedKeyRow) => openKey(making, row)
  await ensureKey('seal', making)
  await ensureKey('mpp-challenge', making)
  const settler = await ensureKey('settler', making)
  const responses = await opened('answers', making)
  const mppSecrets = createMppSecrets({ ...options, openKey: open })
  await mppSecrets.load()
  const signInSecret = createHmac('sha256', await opened('sign-in', making))
    .update('better-auth')
    .digest('base64url')
  return {
    settler: await createSigner(() => open(settler), options.signatures, options.witness.requireCurrent),
    sealer: createSealer(responses, options.random),
    settlementTokens: createTokens(await opened('settlement-token', making)),
    fileLinks: createLinks(await opened('file-link', making)),
    signInSecret: () => signInSecret,
    mppSecrets,
    seal: await createServiceSeal({ ...options, openKey: open }),
    walletKeys: createWalletKeys({ ...options, ring }),
  }
}

/**
 * Allows a new key-encryption key only in a database without one. Otherwise the new key could open nothing and would hide that the old one is lost.
 */
async function mayCreate({ db, createIfMissing }: CustodyOptions): Promise<boolean> {
  return createIfMissing && (await findCurrentFingerprint(db)) === undefined
}

function keyMaking(options: Omit<KeyMaking, 'isPrivateKey'> & Pick<CustodyOptions, 'signatures'>): KeyMaking {
  const isPrivateKey = (secret: Uint8Array): boolean => {
    try {
      options.signatures.publicKeyOf(secret)
      return true
    } catch {
      return false
    }
  }
  return { ...options, isPrivateKey }
}

/** Keeps a key that every request uses in OpenSSL's memory, outside the JavaScript heap. */
async function opened(
  purpose: 'answers' | 'settlement-token' | 'file-link' | 'sign-in',
  making: KeyMaking,
): Promise<KeyObject> {
  const secret = await openKey(making, await ensureKey(purpose, making))
  try {
    return createSecretKey(secret)
  } finally {
    secret.fill(0)
  }
}

function createSealer(key: KeyObject, random: Random): Sealer {
  const derived = (associatedData: string): Uint8Array =>
    createHmac('sha256', key).update(`a key of its own for|${associatedData}`).digest()
  return {
    seal: (plaintext, associatedData) => encrypt(key, plaintext, associatedData, random),
    open: (sealed, associatedData) => decrypt(key, sealed, associatedData),
    ofMany: {
      seal: (plaintext, associatedData) => encrypt(derived(associatedData), plaintext, associatedData, random),
      open: (sealed, associatedData) => decrypt(derived(associatedData), sealed, associatedData),
    },
  }
}

function createTokens(key: KeyObject): Custody['settlementTokens'] {
  const mint = (paymentId: string): string => `stl_${createHmac('sha256', key).update(paymentId).digest('base64url')}`
  return { mint, check: (paymentId, token) => equalInConstantTime(mint(paymentId), token) }
}

function createLinks(key: KeyObject): Custody['fileLinks'] {
  const sign = (link: string): string => createHmac('sha256', key).update(link).digest('base64url')
  return { sign, check: (link, signature) => equalInConstantTime(sign(link), signature) }
}
