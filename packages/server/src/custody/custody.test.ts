import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseTransaction, recoverTransactionAddress } from 'viem'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../test/database.ts'
import { steadyWitness } from '../../test/steady-witness.ts'
import { createSignatures } from '../chain/signatures/signatures.ts'
import { systemClock } from '../platform/clock.ts'
import { sql } from '../platform/db/db.ts'
import { createLog } from '../platform/log.ts'
import { systemRandom } from '../platform/random.ts'
import { type Custody, type KeySource, openCustody } from './index.ts'
import { readKeyFile, requireKeyFile } from './key-sources.ts'

let database: TestDatabase
let directory: string
let file: string

beforeEach(async () => {
  database = await freshDatabase()
  directory = mkdtempSync(path.join(tmpdir(), 'custody-'))
  file = path.join(directory, 'key-encryption-key')
})
afterEach(async () => {
  rmSync(directory, { recursive: true, force: true })
  await database.drop()
})

const fields = {
  chainId: 84_532,
  nonce: 7n,
  maxPriorityFeePerGas: 1_000_000n,
  maxFeePerGas: 3_000_000_000n,
  gasLimit: 90_000n,
  to: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  value: 0n,
  data: '0x095ea7b3',
} as const

test('the first start creates a key file that only its owner can read, and later starts have the same account', async () => {
  const first = await open({ createIfMissing: true })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readFileSync(file)).toHaveLength(32)
  expect(readdirSync(directory)).toEqual(['key-encryption-key'])
  const second = await open({ createIfMissing: false })
  expect(second.settler.address).toBe(first.settler.address)
  expect(second.settlementTokens.mint('pay_1')).toBe(first.settlementTokens.mint('pay_1'))
})

test('processes that start for the first time at once agree on one key file and one set of keys', async () => {
  const all = await Promise.all(Array.from({ length: 6 }, () => open({ createIfMissing: true })))
  expect(new Set(all.map(({ settler }) => settler.address)).size).toBe(1)
  expect(new Set(all.map(({ settlementTokens }) => settlementTokens.mint('pay_1'))).size).toBe(1)
  expect(await storedKeys()).toHaveLength(7)
  expect(readdirSync(directory)).toEqual(['key-encryption-key'])
})

test('a process that finds the key file made by another at the last moment uses that one', () => {
  const made: Uint8Array[] = []
  const random = {
    bytes(length: number) {
      requireKeyFile(file, { createIfMissing: true, random: systemRandom })
      made.push(readKeyFile(file))
      return systemRandom.bytes(length)
    },
  }
  requireKeyFile(file, { createIfMissing: true, random })
  expect(made.length).toBeGreaterThan(0)
  for (const key of made) expect(Buffer.from(readKeyFile(file))).toEqual(Buffer.from(key))
  expect(readdirSync(directory)).toEqual(['key-encryption-key'])
})

test('when key creation is off, a missing key stops the start', async () => {
  await expect(open({ createIfMissing: false })).rejects.toThrow(/no key-encryption key/)
  expect(existsSync(file)).toBe(false)
})

test('a lost key file is not replaced by a new one that would open nothing', async () => {
  await open({ createIfMissing: true })
  rmSync(file)
  await expect(open({ createIfMissing: true })).rejects.toThrow(/no key-encryption key/)
  expect(existsSync(file)).toBe(false)
})

test('a process with another key refuses to start and names the key that the database needs', async () => {
  await open({ createIfMissing: true })
  const before = await storedKeys()
  writeFileSync(file, systemRandom.bytes(32))
  await expect(open({ createIfMissing: true })).rejects.toThrow(/is not the one that this database was sealed with/)
  expect(await storedKeys()).toEqual(before)
})

test('a key file that others may read, or that is not 32 bytes, is refused', async () => {
  writeFileSync(file, systemRandom.bytes(32), { mode: 0o600 })
  chmodSync(file, 0o644)
  await expect(open({ createIfMissing: false })).rejects.toThrow(/can be read by other users/)
  writeFileSync(file, systemRandom.bytes(31))
  chmodSync(file, 0o600)
  await expect(open({ createIfMissing: false })).rejects.toThrow(/not 32 bytes/)
})

test('a key given as base64 opens what the same key in a file sealed', async () => {
  const inFile = await open({ createIfMissing: true })
  const given = await open({ source: { base64: readFileSync(file).toString('base64') }, createIfMissing: false })
  expect(given.settler.address).toBe(inFile.settler.address)
})

test('a sealed key that was changed or moved to another row does not open', async () => {
  await open({ createIfMissing: true })
  await database.db.run(
    sql`update sealed_keys set sealed = set_byte(sealed, 20, (get_byte(sealed, 20) + 1) % 256) where purpose = 'settler'`,
  )
  await expect(open({ createIfMissing: false })).rejects.toThrow()
  await database.db.run(
    sql`update sealed_keys set sealed = set_byte(sealed, 20, (get_byte(sealed, 20) + 255) % 256) where purpose = 'settler'`,
  )
  await open({ createIfMissing: false })
  await database.db.run(sql`
    update sealed_keys a set sealed = b.sealed, wrapped_data_key = b.wrapped_data_key from sealed_keys b
    where a.purpose = 'settlement-token' and b.purpose = 'answers'`)
  await expect(open({ createIfMissing: false })).rejects.toThrow()
})

test('the database contains no unencrypted key, and no object that custody returns contains one', async () => {
  const custody = await open({ createIfMissing: true })
  const kek = readFileSync(file).toString('hex')
  const rows = JSON.stringify(
    (await storedKeys()).map(({ sealed, wrappedDataKey }) =>
      [sealed, wrappedDataKey].map((part) => Buffer.from(part).toString('hex')),
    ),
  )
  expect(rows).not.toContain(kek)
  expect(JSON.stringify(custody)).toBe(
    JSON.stringify({
      settler: { address: custody.settler.address },
      sealer: { ofMany: {} },
      settlementTokens: {},
      fileLinks: {},
      mppSecrets: {},
      seal: { kid: custody.seal.kid },
      walletKeys: {},
    }),
  )
})

test('the relayer signs the given transaction with its own account and returns its hash', async () => {
  const { settler } = await open({ createIfMissing: true })
  for (let turn = 0; turn < 5; turn++) {
    const { raw, hash } = await settler.signTransaction({ ...fields, nonce: BigInt(turn) })
    const { keccak } = await createSignatures()
    expect(`0x${Buffer.from(keccak(Buffer.from(raw.slice(2), 'hex'))).toString('hex')}`).toBe(hash)
    expect(await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` })).toBe(settler.address)
    const { chainId, to, data, gas, maxFeePerGas, maxPriorityFeePerGas } = parseTransaction(raw as `0x02${string}`)
    expect({ chainId, to: to?.toLowerCase(), data, gas, maxFeePerGas, maxPriorityFeePerGas }).toEqual({
      chainId: fields.chainId,
      to: fields.to.toLowerCase(),
      data: fields.data,
      gas: fields.gasLimit,
      maxFeePerGas: fields.maxFeePerGas,
      maxPriorityFeePerGas: fields.maxPriorityFeePerGas,
    })
  }
})

test('a settlement token is valid only for its payment', async () => {
  const { settlementTokens: tokens } = await open({ createIfMissing: true })
  const token = tokens.mint('pay_1')
  expect(tokens.check('pay_1', token)).toBe(true)
  expect(tokens.check('pay_2', token)).toBe(false)
  for (const wrong of ['', token.slice(0, -1), `${token}x`, token.toUpperCase(), `é${token.slice(1)}`])
    expect(tokens.check('pay_1', wrong)).toBe(false)
})

test('sealed data does not open with other associated data or after a change', async () => {
  const { sealer } = await open({ createIfMissing: true })
  for (const one of [sealer, sealer.ofMany]) {
    const sealed = one.seal(Buffer.from('secret'), 'org_a|key_1')
    expect(Buffer.from(one.open(sealed, 'org_a|key_1')).toString()).toBe('secret')
    expect(() => one.open(sealed, 'org_b|key_1')).toThrow()
    for (let index = 0; index < sealed.length; index++) {
      const changed = Uint8Array.from(sealed)
      changed[index] = (changed[index] ?? 0) ^ 1
      expect(() => one.open(changed, 'org_a|key_1')).toThrow()
    }
    expect(() => one.open(sealed.subarray(0, 20), 'org_a|key_1')).toThrow()
  }
})

test('values sealed among many have keys of their own', async () => {
  const { sealer } = await open({ createIfMissing: true })
  expect(() => sealer.open(sealer.ofMany.seal(Buffer.from('secret'), 'place'), 'place')).toThrow()
})

async function open(options: { createIfMissing: boolean; source?: KeySource }): Promise<Custody> {
  const signatures = await createSignatures()
  return openCustody({
    witness: steadyWitness,
    db: database.db,
    clock: systemClock,
    random: systemRandom,
    log: createLog({ level: 'silent' }),
    signatures,
    outbound: noOutbound,
    keys: { first: options.source ?? { file }, also: [] },
    mppChallengeSeconds: 300,
    createIfMissing: options.createIfMissing,
  })
}

/** A local key makes no network requests. */
const noOutbound = { exchange: () => Promise.reject(new Error('unexpected network request')) }

function storedKeys() {
  const Row = z.object({ kid: z.string(), sealed: z.instanceof(Uint8Array), wrappedDataKey: z.instanceof(Uint8Array) })
  return database.db.many(Row, sql`select kid, sealed, wrapped_data_key from sealed_keys order by kid`)
}
