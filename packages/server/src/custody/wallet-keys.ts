import type { Address } from '@purser/protocol'
import {
  addressOfPublicKey,
  type Eip712Domain,
  evmAccountPath,
  type HdPrivateNode,
  type Hex,
  hdMaster,
  hdPrivatePath,
  hdPublicOf,
  sameAddress,
  type TransferAuthorization,
  wipeHdNode,
} from '@purser/protocol'
import type { Signatures } from '../chain/index.ts'
import type { Signer, TempoFields, TempoTransaction } from '../chain/port.ts'
import type { Clock } from '../platform/clock.ts'
import type { Tenant } from '../platform/ctx.ts'
import type { Db } from '../platform/db/db.ts'
import { gatherByDb } from '../platform/db/gather.ts'
import type { Random } from '../platform/random.ts'
import type { Witness } from '../platform/witness/witness.ts'
import { currentKey } from './current-key.ts'
import { openEnvelope, sealEnvelope } from './envelope.ts'
import type { WrappedTable } from './kek-store.ts'
import type { KeyRing } from './key-encryption.ts'
import { seedOfEntropy } from './mnemonic.ts'
import { createAccountSigner } from './signer.ts'
import {
  findSeed,
  findSeeds,
  insertSeedOnce,
  listSeedsUnderOther,
  markSeedRewrapped,
  type SealedSeedRow,
} from './wallet-store.ts'

declare module '../platform/ctx.ts' {
  interface Ports {
    readonly walletKeys: WalletKeys
  }
}

/**
 * The public half of `m/44'/60'/account'/0`, whose children are an account's addresses. No secret, but with one child's private key
 * it tells every other: a child's key never leaves custody.
 */
export interface AccountNode {
  /** 33 bytes. */
  readonly publicKey: Uint8Array
  /** 32 bytes. */
  readonly chainCode: Uint8Array
  /** The version of the seed that it was derived from. */
  readonly keyVersion: number
}

/** Which key of a tenant signs, and whom it must turn out to be. */
export interface WalletKey {
  readonly account: number
  readonly index: number
  readonly address: Address
}

/** The keys of organisations' wallets: one seed per tenant, opened for a derivation or for the signatures asked for at once. */
export interface WalletKeys {
  /**
   * Makes the tenant's seed when there is none (256 bits, exactly one, however many processes ask at once). Store what it answers:
   * addresses are derived from it (`hdChildAddress`), and the seed stays shut. Never inside a database transaction: it may ask a key service.
   */
  accountNode(tenant: Tenant, account: number): Promise<AccountNode>
  /** Signs for `m/44'/60'/account'/0/index` of the tenant; every signature throws when that is not `address` or there is no seed. */
  signer(tenant: Tenant, key: WalletKey): WalletSigner
}

/** An account of a tenant, which signs things that say what they are, and never a bare hash. */
export interface WalletSigner extends Signer {
  /** EIP-3009 `transferWithAuthorization`, 65 bytes. Throws when the money is not its own account's. */
  signTransferWithAuthorization(domain: Eip712Domain, authorization: TransferAuthorization): Promise<Hex>
  /** Tempo's type 0x76; one that leaves the fee to a sponsor is what `signTempoFeePayer` takes. */
  signTempoTransaction(fields: TempoFields): Promise<TempoTransaction>
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

/** The seeds, as a rotation of the key-encryption key sees them. */
export const wrappedSeeds: WrappedTable = {
  name: 'wallet seeds',
  async list(db, fingerprint, page) {
    const rows = await listSeedsUnderOther(db, fingerprint, page)
    return rows.map((row) => ({ ...row, associatedData: associatedDataOf(row, row) }))
  },
  markRewrapped: markSeedRewrapped,
}

/** The real body: seeds sealed in the database, under the deployment's key-encryption key. */
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
 * Sealed before anything is written, so that no key service is asked inside a transaction; of two at once the first row stays. A
 * key-encryption key that is retired in the meantime seals nothing, and the seed is sealed under the next.
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
  throw new Error('the key-encryption key changes faster than a seed is sealed')
}

/** The private node at the end of a path. The caller wipes it. */
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

/** Signatures that one key is asked for at once share one opening of its seed; with the last of them the key is wiped. */
function createOpenKeys(options: WalletKeysOptions) {
  const open = new Map<string, OpenKey>()
  return async <T>(tenant: Tenant, key: WalletKey, use: (privateKey: Uint8Array) => T): Promise<T> => {
    const name = [tenant.organisationId, tenant.environment, key.account, key.index, key.address].join(' ')
    const held = open.get(name) ?? { node: openWalletKey(options, tenant, key), uses: 0 }
    open.set(name, held)
    held.uses += 1
    try {
      return use((await held.node).privateKey)
    } finally {
      held.uses -= 1
      if (held.uses === 0) {
        open.delete(name)
        await held.node.then(wipeHdNode, () => undefined)
      }
    }
  }
}

/** Whoever signs at the same moment shares the reading. */
const seedOf = gatherByDb<Tenant, SealedSeedRow | undefined>({ itemsMax: 256, roundsMax: 2 }, findSeeds)

/** Signing for another account than was meant would move somebody else's money, so the key must be the address that was named. */
async function openWalletKey(
  options: WalletKeysOptions,
  tenant: Tenant,
  { account, index, address }: WalletKey,
): Promise<HdPrivateNode> {
  const row = await seedOf(options.db, tenant)
  if (row === undefined) throw new Error('the tenant has no seed')
  const node = await openNode(options, tenant, row, [...evmAccountPath(account), index])
  try {
    const { publicKeyOf, keccak } = options.signatures
    const derived = addressOfPublicKey(publicKeyOf(node.privateKey), keccak)
    if (derived === undefined || !sameAddress(derived, address))
      throw new Error(`the key at account ${account}, index ${index} is not that of ${address}`)
    return node
  } catch (error) {
    wipeHdNode(node)
    throw error
  }
}

/** Binds a seed to its tenant and row, so that none opens in another organisation's or environment's place. */
function associatedDataOf(
  { organisationId, environment }: Tenant,
  { id, algorithm, version }: Pick<SealedSeedRow, 'id' | 'algorithm' | 'version'>,
): string {
  return `purser|wallet-seed|${organisationId}|${environment}|${id}|${algorithm}|${version}`
}
