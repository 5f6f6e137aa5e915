import { randomBytes } from 'node:crypto'
import { hdChildAddress } from '@purser/protocol'
import bip39 from '@purser/protocol/vectors/bip39.json' with { type: 'json' }
import { entropyToMnemonic, mnemonicToSeedSync } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english'
import { HDNodeWallet, Mnemonic } from 'ethers'
import { parseTransaction, recoverTransactionAddress, verifyTypedData } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../test/database.ts'
import { steadyWitness } from '../../test/steady-witness.ts'
import { createSignatures, createTempoTransactions } from '../chain/index.ts'
import { systemClock } from '../platform/clock.ts'
import type { Tenant } from '../platform/ctx.ts'
import { sql } from '../platform/db/db.ts'
import { type Random, systemRandom } from '../platform/random.ts'
import { createKeyRing } from './key-encryption.ts'
import { localKeyEncryption } from './key-sources.ts'
import { createWalletKeys, seedOfEntropy, type WalletKeys } from './wallet-keys.ts'

const acme: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'live' }
const acmeTest: Tenant = { ...acme, environment: 'test' }
const rival: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02r', environment: 'live' }
const kekBytes = randomBytes(32)
const usdc = '0x036CbD53842c5426634e7929541eC2318f3dCF7e' as const
const pathUsd = '0x20c0000000000000000000000000000000000000' as const

let database: TestDatabase
let signatures: Awaited<ReturnType<typeof createSignatures>>

beforeEach(async () => {
  database = await freshDatabase()
  signatures = await createSignatures()
  for (const { organisationId } of [acme, rival])
    await database.db.run(sql`
      insert into organisations (id, name, type, plan, created_at)
      values (${organisationId}, 'Acme', 'team', 'hobby', now())`)
  const { fingerprint } = localKeyEncryption(() => Uint8Array.from(kekBytes), systemRandom)
  await database.db.run(sql`insert into key_encryption_keys (fingerprint, created_at) values (${fingerprint}, now())`)
})
afterEach(() => database.drop())

/** The wallet keys of one process. `entropy` is the first 32-byte value of its random source. */
function aProcess(entropy?: Uint8Array): WalletKeys {
  let drawn = false
  const random: Random = {
    bytes(length) {
      if (length !== 32 || entropy === undefined || drawn) return systemRandom.bytes(length)
      drawn = true
      return Uint8Array.from(entropy)
    },
  }
  const kek = localKeyEncryption(() => Uint8Array.from(kekBytes), systemRandom)
  return createWalletKeys({
    db: database.db,
    clock: systemClock,
    random,
    signatures,
    witness: steadyWitness,
    ring: createKeyRing(kek),
  })
}

async function addressAt(keys: WalletKeys, tenant: Tenant, [account, index]: readonly [number, number]) {
  return hdChildAddress(await keys.accountNode(tenant, account), index, signatures)
}

async function signerAt(keys: WalletKeys, tenant: Tenant, [account, index]: readonly [number, number]) {
  return keys.signer(tenant, { account, index, address: await addressAt(keys, tenant, [account, index]) })
}

const seeds = () =>
  database.db.many(
    z.object({ id: z.string(), organisationId: z.string(), environment: z.string() }),
    sql`select id, organisation_id, environment from wallet_seeds`,
  )

test('the addresses match those that viem and ethers derive from the mnemonic of that entropy', async () => {
  const entropy = randomBytes(32)
  const phrase = entropyToMnemonic(entropy, wordlist)
  const keys = aProcess(entropy)
  for (const [account, index] of [
    [0, 0],
    [0, 1],
    [7, 0],
    [7, 999_999],
  ] as const) {
    const address = await addressAt(keys, acme, [account, index])
    expect(address).toBe(mnemonicToAccount(phrase, { accountIndex: account, addressIndex: index }).address)
    const path = `m/44'/60'/${account}'/0/${index}`
    expect(address).toBe(HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(phrase), path).address)
  }
})

test('concurrent processes create one seed per tenant and get the same account', async () => {
  const requested = Array.from({ length: 12 }, () => aProcess().accountNode(acme, 0))
  const answers = await Promise.all(requested)
  expect(new Set(answers.map(({ publicKey }) => Buffer.from(publicKey).toString('hex'))).size).toBe(1)
  expect(await seeds()).toHaveLength(1)
})

test('each environment and each organisation has its own seed', async () => {
  const keys = aProcess()
  const addresses = []
  for (const tenant of [acme, acmeTest, rival]) addresses.push(await addressAt(keys, tenant, [0, 0]))
  expect(new Set(addresses).size).toBe(3)
  expect(await seeds()).toHaveLength(3)
})

test('a transaction is signed by the key of the publicly derived address', async () => {
  const signer = await signerAt(aProcess(), acme, [2, 5])
  const { raw } = await signer.signTransaction({
    chainId: 84_532,
    nonce: 3n,
    maxPriorityFeePerGas: 1n,
    maxFeePerGas: 2n,
    gasLimit: 60_000n,
    to: usdc,
    value: 0n,
    data: '0xa9059cbb',
  })
  expect(await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` })).toBe(signer.address)
  expect(parseTransaction(raw as `0x02${string}`)).toMatchObject({ chainId: 84_532, nonce: 3, data: '0xa9059cbb' })
})

test('a transfer authorization verifies as the token’s typed data, and other accounts’ money cannot be authorized', async () => {
  const signer = await signerAt(aProcess(), acme, [0, 1])
  const domain = { name: 'USDC', version: '2', chainId: 84_532, verifyingContract: usdc }
  const message = {
    from: signer.address,
    to: usdc,
    value: 5n,
    validAfter: 0n,
    validBefore: 2_000_000_000n,
    nonce: `0x${'ab'.repeat(32)}`,
  } as const
  const signature = await signer.signTransferWithAuthorization(domain, message)
  const types = {
    TransferWithAuthorization: [
      { name: 'from', type: 'address' },
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'validAfter', type: 'uint256' },
      { name: 'validBefore', type: 'uint256' },
      { name: 'nonce', type: 'bytes32' },
    ],
  }
  const typed = { domain, types, primaryType: 'TransferWithAuthorization', message, signature } as const
  expect(await verifyTypedData({ ...typed, address: signer.address })).toBe(true)
  await expect(signer.signTransferWithAuthorization(domain, { ...message, from: usdc })).rejects.toThrow(
    'another account',
  )
})

const tempo = {
  chainId: 42_431,
  calls: [{ to: pathUsd, value: 0n, data: '0xa9059cbb' }],
  nonceKey: 0n,
  nonce: 0n,
  validBefore: 2_000_000_000n,
  validAfter: undefined,
  gasLimit: 100_000n,
  maxFeePerGas: 20_000_000_000n,
  maxPriorityFeePerGas: 0n,
  feeToken: pathUsd,
  feePaidBy: 'sender',
} as const

test('a Tempo transaction has the right sender and fields, and is final when the sender pays', async () => {
  const signer = await signerAt(aProcess(), acme, [0, 0])
  const { raw, hash, sender, ...fields } = await signer.signTempoTransaction(tempo)
  expect(fields).toEqual(tempo)
  expect([sender.toLowerCase(), hash?.length]).toEqual([signer.address.toLowerCase(), 66])
  const read = await createTempoTransactions(signatures).decode(raw)
  expect(read).toMatchObject({ ok: true, transaction: { raw, hash, sender } })
})

test('a child’s Tempo transaction is completed by its master, which pays the fee and cannot sponsor itself', async () => {
  const keys = aProcess()
  const [master, child] = [await signerAt(keys, acme, [0, 0]), await signerAt(keys, acme, [0, 1])]
  const waiting = await child.signTempoTransaction({ ...tempo, feeToken: undefined, feePaidBy: 'sponsor' })
  expect([waiting.hash, waiting.feePaidBy]).toEqual([undefined, 'sponsor'])
  const { raw } = await master.signTempoFeePayer(waiting, pathUsd)
  expect(raw.startsWith('0x76')).toBe(true)
  await expect(child.signTempoFeePayer(waiting, pathUsd)).rejects.toThrow('cannot sponsor itself')
  await expect(child.signTempoTransaction({ ...tempo, feePaidBy: 'sponsor' })).rejects.toThrow('fee token')
})

test('numbers that would be rounded are refused', async () => {
  const signer = await signerAt(aProcess(), acme, [0, 0])
  for (const wrong of [{ nonce: 2n ** 53n }, { validBefore: 2n ** 60n + 1n }, { nonce: -1n }])
    await expect(signer.signTempoTransaction({ ...tempo, ...wrong })).rejects.toThrow(RangeError)
})

test('nothing is signed when the key does not match the address, nor for a tenant without a seed', async () => {
  const keys = aProcess()
  const address = await addressAt(keys, acme, [0, 0])
  for (const [tenant, key] of [
    [acme, { account: 0, index: 1, address }],
    [acme, { account: 1, index: 0, address }],
    [rival, { account: 0, index: 0, address }],
  ] as const)
    await expect(keys.signer(tenant, key).signTempoTransaction(tempo)).rejects.toThrow(/does not match|has no seed/)
  await aProcess().accountNode(rival, 0)
  await expect(keys.signer(rival, { account: 0, index: 0, address }).signTempoTransaction(tempo)).rejects.toThrow(
    /does not match/,
  )
})

test('a seed that is moved to another organisation or environment does not open there', async () => {
  const keys = aProcess()
  for (const tenant of [acme, acmeTest, rival]) await keys.accountNode(tenant, 0)
  for (const tenant of [acmeTest, rival]) {
    await database.db.run(sql`
      update wallet_seeds t set sealed = s.sealed, wrapped_data_key = s.wrapped_data_key, algorithm = s.algorithm
      from wallet_seeds s
      where s.organisation_id = ${acme.organisationId} and s.environment = ${acme.environment}
        and t.organisation_id = ${tenant.organisationId} and t.environment = ${tenant.environment}`)
    await expect(keys.accountNode(tenant, 0)).rejects.toThrow()
  }
  await database.db.run(sql`delete from wallet_seeds where organisation_id = ${rival.organisationId}`)
  await database.db.run(sql`
    update wallet_seeds set organisation_id = ${rival.organisationId}
    where organisation_id = ${acme.organisationId} and environment = 'live'`)
  await expect(keys.accountNode(rival, 0)).rejects.toThrow()
})

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

test('the entropy of every BIP-39 test vector leads to its published seed', async () => {
  expect(bip39.vectors).toHaveLength(24)
  for (const { entropy, seed } of bip39.vectors)
    expect(hex(await seedOfEntropy(Buffer.from(entropy, 'hex'), bip39.passphrase))).toBe(seed)
})

test('without a passphrase the seed matches that of other wallets for the mnemonic', async () => {
  for (const size of [16, 20, 24, 28, 32, 32, 32]) {
    const entropy = systemRandom.bytes(size)
    expect(hex(await seedOfEntropy(entropy))).toBe(hex(mnemonicToSeedSync(entropyToMnemonic(entropy, wordlist))))
  }
})

test('entropy of an invalid size is refused, and the input is not modified', async () => {
  for (const size of [0, 15, 17, 33, 64]) await expect(seedOfEntropy(new Uint8Array(size))).rejects.toThrow(RangeError)
  const entropy = new Uint8Array(32).fill(5)
  await seedOfEntropy(entropy)
  expect(entropy.every((byte) => byte === 5)).toBe(true)
})
