import { createPublicKey, verify } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../test/database.ts'
import { instantOf } from '../platform/clock.ts'
import { createLog } from '../platform/log.ts'
import { markCurrent } from './kek-store.ts'
import { createServiceSeal, type ServiceSeal } from './service-seal.ts'
import { insertKey, markRetired, markWithdrawn, type SealedKeyRow } from './store.ts'

let database: TestDatabase
let nowMs: number
let seeds: Uint8Array[]
let made: number

beforeEach(async () => {
  database = await freshDatabase()
  nowMs = Date.parse('2026-01-01T00:00:00Z')
  seeds = []
  made = 0
  await database.db.tx((tx) => markCurrent(tx, 'a-key', instantOf(nowMs)))
  await rotate()
})
afterEach(() => database?.drop())

/** Retires the current key, if there is one, and creates the next: seal-1, seal-2, … */
async function rotate(): Promise<void> {
  made += 1
  const name = { kid: `seal-${made}`, purpose: 'seal', algorithm: 'ed25519', fingerprint: 'a-key' }
  await database.db.tx(async (tx) => {
    await markRetired(tx, 'seal', instantOf(nowMs))
    await insertKey(tx, { ...name, wrappedDataKey: new Uint8Array(), sealed: new Uint8Array() }, instantOf(nowMs))
  })
}

async function openKey({ kid }: SealedKeyRow): Promise<Uint8Array> {
  const seed = new Uint8Array(32).fill(Number(kid.split('-')[1]))
  seeds.push(seed)
  return seed
}

function aProcess(): Promise<ServiceSeal> {
  const clock = { now: () => instantOf(nowMs) }
  return createServiceSeal({ db: database.db, clock, log: createLog({ level: 'silent' }), openKey })
}

const message = Buffer.from('sealed')

/** Ids of the keys in the key set with which a signature verifies. */
async function verifiedBy(seal: ServiceSeal, signature: Uint8Array): Promise<string[]> {
  return verifiedWith(await seal.publicKeys(), signature)
}

function verifiedWith(keys: Awaited<ReturnType<ServiceSeal['publicKeys']>>, signature: Uint8Array): string[] {
  return keys
    .filter(({ x }) => {
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
      return verify(null, message, key, signature)
    })
    .map(({ kid }) => kid)
}

test('the signing key is unsealed at the start and not for each signature, its bytes are wiped, and its public key verifies', async () => {
  const seal = await aProcess()
  const signatures = await Promise.all(Array.from({ length: 100 }, () => seal.sign(message)))
  expect(seeds).toHaveLength(1)
  expect(seeds.flatMap((seed) => [...seed]).every((byte) => byte === 0)).toBe(true)
  expect(seal.kid).toBe('seal-1')
  for (const signature of signatures) expect(await verifiedBy(seal, signature)).toEqual(['seal-1'])
})

test('a new key is in every process’s key set before any process signs with it, and the old one never leaves it', async () => {
  const processes = [await aProcess(), await aProcess()]
  const early: { readonly kid: string; readonly signature: Uint8Array }[] = []
  const unverified: string[] = []
  for (let second = 0; second < 700; second += 5) {
    if (second === 20) await rotate()
    nowMs += 5_000
    for (const seal of processes) {
      const { kid } = seal
      const signature = await seal.sign(message)
      early.push({ kid, signature })
      for (const other of processes)
        if ((await verifiedBy(other, signature)).join() !== kid) unverified.push(`${kid} at ${second}`)
    }
  }
  expect(unverified).toEqual([])
  expect(new Set(early.map(({ kid }) => kid))).toEqual(new Set(['seal-1', 'seal-2']))
  for (const seal of processes) {
    expect((await seal.publicKeys()).map(({ kid }) => kid)).toEqual(['seal-2', 'seal-1'])
    const [first] = early
    expect(await verifiedBy(seal, first?.signature ?? new Uint8Array(64))).toEqual(['seal-1'])
  }
})

test('a new key is published at once and signs ten minutes later', async () => {
  const seal = await aProcess()
  nowMs += 3_600_000
  await rotate()
  nowMs += 10_000
  expect((await seal.publicKeys()).map(({ kid }) => kid)).toEqual(['seal-2', 'seal-1'])
  nowMs += 589_000
  expect(seal.kid).toBe('seal-1')
  nowMs += 1_000
  expect(seal.kid).toBe('seal-2')
  expect(await verifiedBy(seal, await seal.sign(message))).toEqual(['seal-2'])
  expect(await (await aProcess()).sign(message)).toEqual(await seal.sign(message))
})

test('while the database does not answer, signing continues with the known keys', async () => {
  const seal = await aProcess()
  await database.drop()
  nowMs += 60_000
  expect(await seal.sign(message)).toHaveLength(64)
  expect((await seal.publicKeys()).map(({ kid }) => kid)).toEqual(['seal-1'])
  database = await freshDatabase()
})

test('each tenant has keys of its own for deliveries, the same in each process and after a rotation', async () => {
  const [seal, other] = [await aProcess(), await aProcess()]
  const audiences = ['org_a', 'org_b'].flatMap((organisationId) =>
    ['test', 'live'].map((environment) => ({ organisationId, environment })),
  )
  const signatures = await Promise.all(audiences.map((audience) => seal.signTo(audience, message)))
  await rotate()
  nowMs += 700_000
  await other.publicKeys()
  const found = await Promise.all(
    audiences.map(async (audience) => {
      const keys = await other.publicKeysTo(audience)
      expect(keys).toHaveLength(2)
      expect(keys.map(({ kid, x }) => kid === `webhooks-${x.slice(0, 16)}`)).toEqual([true, true])
      expect(verifiedWith(keys, await other.signTo(audience, message))).toEqual([keys[0]?.kid])
      return signatures.map((signature) => verifiedWith(keys, signature).length)
    }),
  )
  expect(found).toEqual(audiences.map((_, own) => audiences.map((__, at) => (at === own ? 1 : 0))))
  for (const signature of signatures) expect(await verifiedBy(other, signature)).toEqual([])
})

test('a withdrawn key leaves the key set and signs nothing more, and no older key signs in its place', async () => {
  const seal = await aProcess()
  nowMs += 3_600_000
  await rotate()
  nowMs += 3_600_000
  await seal.publicKeys()
  expect(seal.kid).toBe('seal-2')
  const leaked = await seal.sign(message)
  const withdraw = (kid: string) =>
    database.db.tx((tx) => markWithdrawn(tx, { purpose: 'seal', kid }, instantOf(nowMs)))
  expect(await withdraw('seal-2')).toEqual({ wasCurrent: true })
  await rotate()
  nowMs += 10_000
  expect((await seal.publicKeys()).map(({ kid }) => kid)).toEqual(['seal-3', 'seal-1'])
  expect(await verifiedBy(seal, leaked)).toEqual([])
  expect(seal.kid).toBe('seal-3')
  expect(await verifiedBy(seal, await seal.sign(message))).toEqual(['seal-3'])
  expect([await withdraw('seal-2'), await withdraw('seal-9'), await withdraw('seal-1')]).toEqual([
    undefined,
    undefined,
    { wasCurrent: false },
  ])
})
