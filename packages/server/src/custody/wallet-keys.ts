import { createHash, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import {
  type Address,
  addressOfPublicKey,
  evmAccountPath,
  type HdPrivateNode,
  hdMaster,
  hdPrivatePath,
  hdPublicOf,
  sameAddress,
  wipeHdNode,
} from '@purser/protocol'
import type { Signatures } from '../chain/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Tenant } from '../platform/ctx.ts'
import { batch } from '../platform/db/batch.ts'
import type { Db } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import type { Witness } from '../platform/witness/witness.ts'
import {
  findSeed,
  findSeeds,
  insertSeedOnce,
  listSeedsUnderOther,
  markSeedRewrapped,
  type SealedSeedRow,
  type WrappedTable,
} from './kek-store.ts'
import { currentKey, type KeyRing, openEnvelope, sealEnvelope } from './key-encryption.ts'
import { createAccountSigner, type WalletSigner } from './signer.ts'

/** Keys of managed wallets, as a dependency. */
export interface WalletKeysPort {
  readonly walletKeys: WalletKeys
}

/**
 * The extended public key of `m/44'/60'/account'/0`, whose children are an account's addresses. It is not secret, but together with one child's
 * private key it reveals all others, so no child's key leaves custody.
 */
export interface AccountNode {
  /** 33 bytes. */
  readonly publicKey: Uint8Array
  /** 32 bytes. */
  readonly chainCode: Uint8Array
  /** The version of the seed that it was derived from. */
  readonly keyVersion: number
}

/** The derivation indexes of a tenant's key and the address that it must have. */
interface WalletKey {
  readonly account: number
  readonly index: number
  readonly address: Address
}

/** The keys of organisations' wallets: one seed per tenant, opened for a derivation or for a group of concurrent signatures. */
export interface WalletKeys {
  /**
   * Returns the account's extended public key. Creates the tenant's seed (256 bits) when there is none, exactly once even with concurrent
   * processes. Store the result: addresses are derived from it (`hdChildAddress`) without opening the seed. Never call it inside a database
   * transaction, because it may call a key service.
   */
  accountNode(tenant: Tenant, account: number): Promise<AccountNode>
  /** Signs for `m/44'/60'/account'/0/index` of the tenant; every signature throws when the key does not match `address` or there is no seed. */
  signer(tenant: Tenant, key: WalletKey): WalletSigner
}

export interface WalletKeysOptions {
  readonly db: Db
  readonly clock: Clock
  readonly random: Random
  readonly signatures: Signatures
  readonly witness: Pick<Witness, 'requireCurrent'>
  readonly ring: KeyRing
}

const entropyBytes = 32
const seedVersion = 1
const seedAlgorithm = 'bip39-seed'
const attemptsMax = 5

/** The seeds, for a rotation of the key-encryption key. */
export const wrappedSeeds: WrappedTable = {
  name: 'wallet seeds',
  async list(db, fingerprint, page) {
    const rows = await listSeedsUnderOther(db, fingerprint, page)
    return rows.map((row) => ({ ...row, associatedData: associatedDataOf(row, row) }))
  },
  markRewrapped: markSeedRewrapped,
}

/** Wallet keys with seeds sealed in the database under the deployment's key-encryption key. */
export function createWalletKeys(options: WalletKeysOptions): WalletKeys {
  const { signatures, witness } = options
  const withKey = createOpenKeys(options)
  return {
    async accountNode(tenant, account) {
      witness.requireCurrent()
      const row = (await findSeed(options.db, tenant)) ?? (await makeSeed(options, tenant))
      const node = await openNode(options, tenant, row, evmAccountPath(account))
      try {
        return { ...hdPublicOf(node, signatures), keyVersion: row.version }
      } finally {
        wipeHdNode(node)
      }
    },
    signer: (tenant, key) =>
      createAccountSigner(
        {
          address: key.address,
          async signDigest(digest) {
            witness.requireCurrent()
            return withKey(tenant, key, (privateKey) => signatures.sign(digest, privateKey))
          },
        },
        signatures,
      ),
  }
}

/**
 * Seals the seed before writing, so that no key service is called inside a transaction. Of two concurrent calls the first row is kept. If the
 * key-encryption key was retired in the meantime, seals again under the next one.
 */
async function makeSeed(options: WalletKeysOptions, tenant: Tenant): Promise<SealedSeedRow> {
  const { db, random, clock } = options
  const name = {
    id: `wallet-seed-${Buffer.from(random.bytes(8)).toString('hex')}`,
    algorithm: seedAlgorithm,
    version: seedVersion,
  }
  const entropy = random.bytes(entropyBytes)
  const seed = await seedOfEntropy(entropy).finally(() => entropy.fill(0))
  try {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const envelope = await sealEnvelope(await currentKey(options), seed, associatedDataOf(tenant, name), random)
      await insertSeedOnce(db, tenant, { ...name, ...envelope }, clock.now())
      const stored = await findSeed(db, tenant)
      if (stored !== undefined) return stored
    }
  } finally {
    seed.fill(0)
  }
  throw new Error('the key-encryption key keeps changing while a seed is sealed')
}

/** The private node at a derivation path. The caller must wipe it. */
async function openNode(
  { ring, signatures }: WalletKeysOptions,
  tenant: Tenant,
  row: SealedSeedRow,
  path: readonly number[],
): Promise<HdPrivateNode> {
  const seed = await openEnvelope(ring, row, associatedDataOf(tenant, row))
  let master: HdPrivateNode | undefined
  try {
    master = hdMaster(seed, signatures)
    return hdPrivatePath(master, path, signatures)
  } finally {
    seed.fill(0)
    if (master !== undefined) wipeHdNode(master)
  }
}

interface OpenKey {
  readonly node: Promise<HdPrivateNode>
  uses: number
}

/** Concurrent signatures share one query, and those by one key share one opening of its seed. The key is wiped after the last of them. */
function createOpenKeys(options: WalletKeysOptions) {
  const seedOf = batch<Tenant, SealedSeedRow | undefined>({ itemsMax: 256, batchesMax: 2 }, (tenants) =>
    findSeeds(options.db, tenants),
  )
  const openKey = async (tenant: Tenant, key: WalletKey): Promise<HdPrivateNode> =>
    openWalletKey(options, tenant, await seedOf(tenant), key)
  const open = new Map<string, OpenKey>()
  return async <T>(tenant: Tenant, key: WalletKey, use: (privateKey: Uint8Array) => T): Promise<T> => {
    const name = [tenant.organisationId, tenant.environment, key.account, key.index, key.address].join(' ')
    const opened = open.get(name) ?? { node: openKey(tenant, key), uses: 0 }
    open.set(name, opened)
    opened.uses += 1
    try {
      return use((await opened.node).privateKey)
    } finally {
      opened.uses -= 1
      if (opened.uses === 0) {
        open.delete(name)
        await opened.node.then(wipeHdNode, () => undefined)
      }
    }
  }
}

/** Derives a wallet's private key and checks it against the address, since signing with a wrong key would move another account's money. */
async function openWalletKey(
  options: WalletKeysOptions,
  tenant: Tenant,
  row: SealedSeedRow | undefined,
  { account, index, address }: WalletKey,
): Promise<HdPrivateNode> {
  if (row === undefined) throw new Error('the tenant has no seed')
  const node = await openNode(options, tenant, row, [...evmAccountPath(account), index])
  try {
    const { publicKeyOf, keccak } = options.signatures
    const derived = addressOfPublicKey(publicKeyOf(node.privateKey), keccak)
    if (derived === undefined || !sameAddress(derived, address))
      throw new Error(`the key at account ${account}, index ${index} does not match ${address}`)
    return node
  } catch (error) {
    wipeHdNode(node)
    throw error
  }
}

/** Binds a seed to its tenant and row, so that it cannot be opened for another organisation or environment. */
function associatedDataOf(
  { organisationId, environment }: Tenant,
  { id, algorithm, version }: Pick<SealedSeedRow, 'id' | 'algorithm' | 'version'>,
): string {
  return `purser|wallet-seed|${organisationId}|${environment}|${id}|${algorithm}|${version}`
}

const derive = promisify(pbkdf2)
const rounds = 2_048
const wordBits = 11
const letters = 8

/**
 * Returns the 64-byte seed for 16 to 32 bytes of entropy. The English mnemonic in between is kept as bytes, because strings cannot be wiped. Throws
 * a `RangeError` for other sizes. Source: BIP-39, "Generating the mnemonic" and "From mnemonic to seed".
 */
export async function seedOfEntropy(entropy: Uint8Array, passphrase = ''): Promise<Uint8Array> {
  if (![16, 20, 24, 28, 32].includes(entropy.length)) throw new RangeError('entropy is 16 to 32 bytes, a multiple of 4')
  const words = await writeMnemonic(entropy)
  try {
    return await derive(words, `mnemonic${passphrase.normalize('NFKD')}`, rounds, 64, 'sha512')
  } finally {
    words.fill(0)
  }
}

/** The mnemonic: one word for every 11 bits of the entropy and its checksum, separated by spaces. */
async function writeMnemonic(entropy: Uint8Array): Promise<Uint8Array> {
  const { wordlist } = await import('@scure/bip39/wordlists/english')
  const bits = new Uint8Array(new ArrayBuffer(entropy.length + 1))
  bits.set(entropy)
  const digest = createHash('sha256').update(entropy).digest()
  bits.set(digest.subarray(0, 1), entropy.length)
  digest.fill(0)
  const count = (entropy.length * 33) / 4 / wordBits
  const written = new Uint8Array(new ArrayBuffer(count * (letters + 1)))
  let size = 0
  for (let index = 0; index < count; index++) {
    if (index > 0) written[size++] = 0x20
    const word = wordlist[bitsAt(bits, index * wordBits)] ?? ''
    for (let at = 0; at < word.length; at++) written[size++] = word.charCodeAt(at)
  }
  bits.fill(0)
  return written.subarray(0, size)
}

/** Reads 11 bits at a bit position. */
function bitsAt(bytes: Uint8Array, from: number): number {
  const at = from >> 3
  const three = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
  return (three >> (24 - wordBits - (from & 7))) & 0x7ff
}
