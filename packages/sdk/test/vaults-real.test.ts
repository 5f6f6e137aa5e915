import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import {
  ConflictError,
  createPurser,
  LimitError,
  NotFoundError,
  type Purser,
  ValidationError,
  type VaultEvent,
} from '../src/index.ts'

let world: World
let org: Org
let purser: Purser
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  purser = createPurser({ apiKey: org.testKey, baseUrl: world.base, maxRetries: 0 })
})
afterAll(() => world?.stop())

test('a vault is made, filled, found, listed, kept, sealed and proven through the client', async () => {
  const { vaults } = purser
  const made = await vaults.create({ description: 'Report', ttl: '2h', metadata: { job: 7 } })
  expect(made).toMatchObject({ status: 'active', description: 'Report', metadata: { job: 7 }, sessionId: null })
  const document = await vaults.documents.add(made.id, { name: 'Findings', data: { found: [1, null] } })
  expect(await vaults.documents.get(made.id, document.id)).toMatchObject({
    name: 'Findings',
    data: { found: [1, null] },
  })
  expect(await vaults.emit(made.id, { event: 'progress', payload: { percent: 50 } })).toMatchObject({
    type: 'progress',
  })
  const { ttl } = await vaults.extend(made.id, { ttl: '3h' })
  expect(Date.parse(ttl ?? '')).toBeGreaterThan(Date.parse(made.ttl ?? ''))
  expect(await vaults.persist(made.id)).toMatchObject({ status: 'persisted', ttl: null })
  expect(await vaults.quota()).toMatchObject({ active: { used: expect.any(Number) }, persisted: { used: 1 } })
  expect(await vaults.seal(made.id, { summary: 'All done' })).toMatchObject({ status: 'sealed', summary: 'All done' })
  expect(await vaults.proof(made.id)).toMatchObject({ manifest: { vaultId: made.id }, statement: expect.any(String) })
  expect(await vaults.proof(made.id, { item: document.id })).toMatchObject({ item: { id: document.id } })
  const refused = vaults.documents.add(made.id, { name: 'Late', data: {} })
  await expect(refused).rejects.toBeInstanceOf(ConflictError)
  await expect(refused).rejects.toMatchObject({ code: 'vault-sealed' })
  const listed = await vaults.list({ status: 'sealed', limit: 1 }).toArray({ limit: 10 })
  expect(listed.map(({ id }) => id)).toContain(made.id)
  expect(await vaults.get(made.id)).toMatchObject({
    documents: [{ id: document.id }],
    files: [],
    manifest: { vaultId: made.id },
  })
  await vaults.delete(made.id)
  await expect(vaults.get(made.id)).rejects.toBeInstanceOf(NotFoundError)
})

test('a file of a few megabytes goes in by a stream, comes out by a stream, in parts and whole, and is deleted', async () => {
  const { files, ...vaults } = purser.vaults
  const { id } = await vaults.create()
  const bytes = new Uint8Array(randomBytes(3_000_000))
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += 70_000) yield bytes.subarray(at, at + 70_000)
  }
  const added = await files.add(id, pieces(), { name: 'Übersicht "2026".bin' })
  expect(added).toMatchObject({
    name: 'Übersicht "2026".bin',
    size: bytes.length,
    mimeType: 'application/octet-stream',
  })
  const whole = await files.get(id, added.id)
  expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true)
  const part = await files.get(id, added.id, { headers: { range: 'bytes=1000000-1000099' } })
  expect([part.status, Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(1_000_000, 1_000_100))]).toEqual([
    206,
    true,
  ])
  expect((await vaults.get(id)).files).toMatchObject([{ id: added.id }])
  await files.delete(id, added.id)
  await expect(files.get(id, added.id)).rejects.toBeInstanceOf(NotFoundError)
})

test('an upload with one Idempotency-Key is one file, however it is cut into a form', async () => {
  const { files, ...vaults } = purser.vaults
  const { id } = await vaults.create()
  const [first, again] = [
    await files.add(id, new TextEncoder().encode('once'), { name: 'a', idempotencyKey: 'upload-1' }),
    await files.add(id, new Blob(['once']).stream(), { name: 'a', idempotencyKey: 'upload-1' }),
  ]
  expect(again.id).toBe(first.id)
  expect((await vaults.get(id)).files).toHaveLength(1)
  const other = files.add(id, new TextEncoder().encode('another'), { name: 'a', idempotencyKey: 'upload-1' })
  await expect(other).rejects.toBeInstanceOf(ValidationError)
})

test('a token reads its vault, and the quota of a plan is a LimitError', async () => {
  const { id } = await purser.vaults.create()
  const { token, vaultId } = await purser.vaults.tokens.create(id, { expiresIn: 600 })
  expect([vaultId, token.startsWith('vat_')]).toEqual([id, true])
  const guest = createPurser({ apiKey: token, baseUrl: world.base, maxRetries: 0 })
  expect(await guest.vaults.get(id)).toMatchObject({ id })

  const hobby = await world.organisation('hobby')
  const small = createPurser({ apiKey: hobby.testKey, baseUrl: world.base, maxRetries: 0 })
  for (let made = 0; made < 3; made++) await small.vaults.create()
  await expect(small.vaults.create()).rejects.toBeInstanceOf(LimitError)
})

test('a vault is watched live from its making to its seal, by a guest who holds its token', async () => {
  const { vaults } = purser
  const { id, createdAt } = await vaults.create()
  const beginning = new Date(Date.parse(createdAt) - 1).toISOString()
  const { token } = await vaults.tokens.create(id)
  const guest = createPurser({ apiKey: token, baseUrl: world.base })
  const seen: VaultEvent[] = []
  const watching = (async () => {
    for await (const event of guest.vaults.events(id, { from: beginning })) {
      seen.push(event)
      // Each is written when the one before it was seen, so that all of them are live.
      const step = seen.length
      if (step <= 20) await vaults.emit(id, { event: 'step', payload: { step } })
      else if (step === 21) await vaults.seal(id)
    }
  })()
  await watching
  const types = ['vault.created', ...Array(20).fill('step'), 'vault.sealed']
  expect(seen.map(({ type }) => type)).toEqual(types)
  expect(seen.slice(1, -1).map(({ payload }) => payload.step)).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 1),
  )
  const again: VaultEvent[] = []
  for await (const event of vaults.events(id, { lastEventId: seen[9]?.eventId })) again.push(event)
  expect(again).toEqual(seen.slice(10))
  for await (const event of vaults.events(id, { lastEventId: seen.at(-1)?.eventId })) expect(event).toBeUndefined()
})
