import { createPublicKey, verify } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../test/database.ts'
import { markCurrent } from './kek-store.ts'
import { createServiceSeal } from './service-seal.ts'
import { insertKey, markRetired, type SealedKeyRow } from './store.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

test('the key that seals is unsealed at the start and not for each signature, its bytes are wiped, and it verifies by its public half', async () => {
  const seeds: Uint8Array[] = []
  const openKey = async ({ kid }: SealedKeyRow): Promise<Uint8Array> => {
    const seed = new Uint8Array(32).fill(kid === 'seal-2' ? 2 : 1)
    seeds.push(seed)
    return seed
  }
  await database.db.tx(async (tx) => {
    const name = { purpose: 'seal', algorithm: 'ed25519', fingerprint: 'a-key' }
    const row = { ...name, wrappedDataKey: new Uint8Array(), sealed: new Uint8Array() }
    await markCurrent(tx, 'a-key', new Date('2026-01-01T00:00:00Z'))
    await insertKey(tx, { ...row, kid: 'seal-1' }, new Date('2026-01-01T00:00:00Z'))
    await markRetired(tx, 'seal', new Date('2026-02-01T00:00:00Z'))
    await insertKey(tx, { ...row, kid: 'seal-2' }, new Date('2026-02-01T00:00:00Z'))
  })
  const seal = await createServiceSeal(database.db, openKey, new Date(0))
  const message = Buffer.from('sealed')
  const signatures = await Promise.all(Array.from({ length: 100 }, () => seal.sign(message)))
  expect(seeds).toHaveLength(2)
  expect(seeds.flatMap((seed) => [...seed]).every((byte) => byte === 0)).toBe(true)
  expect(seal.kid).toBe('seal-2')
  expect(seal.publicKeys.map(({ kid }) => kid)).toEqual(['seal-2', 'seal-1'])
  const accepted = seal.publicKeys.map(({ x }) => {
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    return signatures.every((signature) => verify(null, message, key, signature))
  })
  expect(accepted).toEqual([true, false])
})
