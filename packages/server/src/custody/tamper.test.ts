import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { beforeEach, expect, test } from 'vitest'
import { steadyWitness } from '../../test/steady-witness.ts'
import { createSignatures } from '../chain/index.ts'
import { systemClock } from '../platform/clock.ts'
import type { Tenant } from '../platform/ctx.ts'
import type { Db, Sql } from '../platform/db/db.ts'
import { systemRandom } from '../platform/random.ts'
import { createKeyRing, type KeyRing } from './key-encryption.ts'
import { localKeyEncryption } from './key-sources.ts'
import { openKey } from './service-keys.ts'
import { createWalletKeys } from './wallet-keys.ts'

const acme: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'live' }

interface Row {
  readonly [column: string]: unknown
  readonly wrappedDataKey: Uint8Array
  readonly sealed: Uint8Array
  readonly fingerprint: string
}

let ring: KeyRing
let row: Row | undefined

beforeEach(() => {
  const [first, second] = [randomBytes(32), randomBytes(32)]
  const local = (key: Uint8Array) => localKeyEncryption(() => Uint8Array.from(key), systemRandom)
  ring = createKeyRing(local(first), [local(second)])
  row = undefined
})

/** A fake database with one row that the test can change freely. */
function db(): Db {
  const response = async <T>(schema: { parse(value: unknown): T }, statement: Sql): Promise<T | undefined> => {
    if (statement.text.includes('from key_encryption_keys')) return schema.parse(ring.first)
    return row === undefined ? undefined : schema.parse(row)
  }
  const run = async ({ values }: Sql): Promise<number> => {
    const [id, , , algorithm, version, wrappedDataKey, sealed, , fingerprint] = values
    row ??= { id, algorithm, version, wrappedDataKey, sealed, fingerprint } as unknown as Row
    return 1
  }
  return { kind: 'db', maybeOne: response, run } as unknown as Db
}

async function keysOf(tenant: Tenant) {
  const keys = createWalletKeys({
    witness: steadyWitness,
    db: db(),
    ring,
    clock: systemClock,
    random: systemRandom,
    signatures: await createSignatures(),
  })
  return keys.accountNode(tenant, 0)
}

test('a seed does not open after any change to any field of its row', async () => {
  const honest = await keysOf(acme)
  const stored = row
  if (stored === undefined) throw new Error('no seed was stored')
  expect(await keysOf(acme)).toEqual(honest)
  const changes = fc.oneof(
    changedBytes('wrappedDataKey', stored.wrappedDataKey),
    changedBytes('sealed', stored.sealed),
    changedText('id', String(stored.id)),
    changedText('algorithm', String(stored.algorithm)),
    fc
      .integer({ min: 0, max: 1_000 })
      .filter((version) => version !== stored.version)
      .map((version) => ({ version })),
    fc.constantFrom(ring.fingerprints[1] ?? '', 'f'.repeat(32), '').map((fingerprint) => ({ fingerprint })),
    fc.constant({ wrappedDataKey: stored.sealed, sealed: stored.wrappedDataKey }),
  )
  await fc.assert(
    fc.asyncProperty(changes, async (change) => {
      row = { ...stored, ...change }
      await expect(keysOf(acme)).rejects.toThrow()
    }),
    { numRuns: 1_000 },
  )
})

test('every single bit of a sealed seed and of its wrapped data key matters', async () => {
  await keysOf(acme)
  const stored = row
  if (stored === undefined) throw new Error('no seed was stored')
  for (const column of ['wrappedDataKey', 'sealed'] as const) {
    for (let bit = 0; bit < stored[column].length * 8; bit++) {
      const bytes = Uint8Array.from(stored[column])
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      row = { ...stored, [column]: bytes }
      await expect(keysOf(acme)).rejects.toThrow()
    }
  }
})

test('a row does not open for any other organisation or environment', async () => {
  await keysOf(acme)
  const organisations = fc.stringMatching(/^org_[0-9a-z]{26}$/).filter((id) => id !== acme.organisationId)
  await fc.assert(
    fc.asyncProperty(organisations, async (id) => {
      await expect(keysOf({ ...acme, organisationId: id as Tenant['organisationId'] })).rejects.toThrow()
    }),
    { numRuns: 100 },
  )
  await expect(keysOf({ ...acme, environment: 'test' })).rejects.toThrow()
})

test('a seed does not open as a service key, not even under that key’s name', async () => {
  await keysOf(acme)
  const stored = row
  if (stored === undefined) throw new Error('no seed was stored')
  for (const purpose of ['settler', 'answers', 'wallet-seed', `${acme.organisationId}|live`]) {
    const kid = String(stored.id)
    const asKey = { kid, purpose, algorithm: 'secp256k1', ...stored }
    await expect(openKey({ db: db(), ring }, asKey)).rejects.toThrow()
  }
})

function changedBytes(column: 'wrappedDataKey' | 'sealed', bytes: Uint8Array) {
  const flipped = fc.tuple(fc.nat({ max: bytes.length - 1 }), fc.integer({ min: 1, max: 255 })).map(([at, by]) => {
    const changed = Uint8Array.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ by
    return changed
  })
  const cut = fc.nat({ max: bytes.length - 1 }).map((length) => bytes.subarray(0, length))
  const longer = fc.uint8Array({ minLength: 1, maxLength: 64 }).map((more) => Buffer.concat([bytes, more]))
  const other = fc.uint8Array({ minLength: bytes.length, maxLength: bytes.length })
  return fc.oneof(flipped, cut, longer, other).map((changed) => ({ [column]: changed }))
}

function changedText(column: string, text: string) {
  return fc
    .string({ maxLength: 40 })
    .filter((other) => other !== text)
    .map((other) => ({ [column]: other }))
}
