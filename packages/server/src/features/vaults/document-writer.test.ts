import { createHash } from 'node:crypto'
import { eventHash, noEvents } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { readsCounted } from '../../../test/rows-read.ts'
import { aVaultStage, countersOf, streamOf, type VaultStage } from '../../../test/stories/vaults-stage.ts'
import { codeOf, type Org } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { isId } from '../../platform/ids.ts'
import { createDocumentWriter } from './document-writer.ts'
import { addDocument } from './documents.ts'
import type { Ctx, GivenDocument } from './ports.ts'
import type { VaultId } from './schema.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

async function aVault(org: Org): Promise<VaultId> {
  const vaultId = await stage.vault(org)
  if (!isId('vlt', vaultId)) throw new Error('no vault')
  return vaultId
}

function given(name: string, content = JSON.stringify({ name })): GivenDocument {
  const sha256 = createHash('sha256').update(content).digest('hex')
  return { name, data: { name }, content, size: Buffer.byteLength(content), sha256 }
}

/** The names of those that were written, and the codes of those that were refused. */
async function outcomesOf(writings: readonly Promise<{ readonly name: string }>[]): Promise<string[]> {
  return (await Promise.allSettled(writings)).map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value.name : String(outcome.reason.code),
  )
}

const Written = z.object({ name: z.string(), transaction: z.string() })

/** The documents of an organisation, each with the transaction that wrote it. */
async function writtenBy(org: Org): Promise<z.output<typeof Written>[]> {
  return stage.world.database.db.many(
    Written,
    sql`select name, xmin::text as transaction from vault_documents where organisation_id = ${org.id} order by name`,
  )
}

test('documents of concurrent requests commit together, with their events and the count of storage', async () => {
  const org = await stage.world.organisation('pro')
  const ctx = stage.ctx(org)
  const vaultIds = await Promise.all(Array.from({ length: 3 }, () => aVault(org)))
  const names = Array.from({ length: 30 }, (_, turn) => `d${turn}`)
  const added = await Promise.all(
    names.map((name, turn) => addDocument(ctx, vaultIds[turn % 3] ?? aMissing, { name, data: { name } })),
  )
  expect(added.map(({ name }) => name)).toEqual(names)
  expect(new Set((await writtenBy(org)).map(({ transaction }) => transaction)).size).toBe(1)
  for (const vaultId of vaultIds) {
    const { body } = await stage.call(org, 'GET', `/vaults/${vaultId}`)
    expect(body).toMatchObject({ eventCount: 11, documents: { length: 10 } })
  }
  const bytes = added.reduce((sum, { size }) => sum + size, 0)
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: bytes })
})

const aMissing = 'vlt_01h455vb4pex5vsknk084sn02q' as VaultId

test('a document reads its own vault and no other of the tenant, however many there are', async () => {
  const org = await stage.world.organisation('pro')
  const vaultId = await aVault(org)
  const { db } = stage.world.database
  await db.run(sql`
    insert into vaults (id, organisation_id, environment, description, metadata, event_hash, event_at, counted_as, expires_at, created_at)
    select 'vlt_' || lpad(n::text, 26, '0'), organisation_id, environment, description, metadata, event_hash, event_at, counted_as, expires_at, created_at
    from vaults, generate_series(1, 3000) as n where id = ${vaultId}`)
  // The table has no statistics now, as after much was written at once.
  const counted = readsCounted(db, '^vaults$')
  for (let turn = 0; turn < 8; turn++)
    await addDocument({ ...stage.ctx(org), db: counted.db }, vaultId, { name: `d${turn}`, data: {} })
  expect(counted.rows()).toBeLessThan(100n)
})

test('two processes that write into one vault at the same instant give its events numbers without a gap and one chain', async () => {
  const org = await stage.world.organisation('pro')
  const [here, there] = [stage.ctx(org), { ...stage.ctx(org), writeDocument: createDocumentWriter() }]
  const vaultId = await aVault(org)
  const names = Array.from({ length: 40 }, (_, turn) => `d${turn}`)
  const ctxOf = (turn: number): Ctx => (turn % 2 === 0 ? here : there)
  const added = await Promise.all(
    names.map((name, turn) => ctxOf(turn).writeDocument(ctxOf(turn), vaultId, given(name))),
  )
  const stream = await streamOf(stage.world, vaultId)
  expect(stream.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 41 }, (_, index) => index + 1))
  expect(new Set(stream.slice(1).map(({ event }) => event.payload.documentId))).toEqual(
    new Set(added.map(({ id }) => id)),
  )
  const head = stream.reduce((hash, { event }) => eventHash(hash, event), noEvents.hash)
  const { body } = await stage.call(org, 'GET', `/vaults/${vaultId}`)
  expect(body).toMatchObject({ eventCount: 41, manifest: { eventsHead: { count: 41, hash: head } } })
})

test('a document whose vault is sealed, unknown, another tenant’s or full is refused, and the others of its batch are written', async () => {
  const [org, other] = [await stage.world.organisation('hobby'), await stage.world.organisation('pro')]
  const ctx = stage.ctx(org)
  const [open, sealed, full, foreign] = [await aVault(org), await aVault(org), await aVault(org), await aVault(other)]
  await stage.call(org, 'POST', `/vaults/${sealed}/seal`, {})
  const before = Array.from({ length: 49 }, (_, turn) => ctx.writeDocument(ctx, full, given(`before ${turn}`)))
  await Promise.all(before)
  const vaultIds = [open, sealed, aMissing, foreign, full, full, open]
  expect(await outcomesOf(vaultIds.map((vaultId, turn) => ctx.writeDocument(ctx, vaultId, given(`d${turn}`))))).toEqual(
    ['d0', 'vault-sealed', 'vault-not-found', 'vault-not-found', 'd4', 'documents-per-vault-exceeded', 'd6'],
  )
})

test('of the documents of a batch exactly those are written that fit into the storage of the plan', async () => {
  const org = await stage.world.organisation('pro')
  const ctx = stage.ctx(org)
  const vaultId = await aVault(org)
  const sizes = [40, 40, 40, 20]
  const documents = sizes.map((size, turn) => given(`d${turn}`, JSON.stringify({ x: 'x'.repeat(size - 8) })))
  expect(documents.map(({ size }) => size)).toEqual(sizes)
  await stage.world.database.db.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used)
    values (${org.id}, 'test', 'storageBytes', 'all', ${10_737_418_240 - 100})`)
  expect(await outcomesOf(documents.map((one) => ctx.writeDocument(ctx, vaultId, one)))).toEqual([
    'd0',
    'd1',
    'storage-quota-exceeded',
    'd3',
  ])
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: 10_737_418_240 })
})

test('a row that the database refuses fails alone', async () => {
  const org = await stage.world.organisation('pro')
  const ctx = stage.ctx(org)
  const vaultIds = [await aVault(org), await aVault(org)]
  const contents = ['{"a":1}', '{"a":', '{"b":1}', '{"c":1}']
  const outcomes = await Promise.allSettled(
    contents.map((content, turn) => ctx.writeDocument(ctx, vaultIds[turn % 2] ?? aMissing, given(`d${turn}`, content))),
  )
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  expect((await writtenBy(org)).map(({ name }) => name)).toEqual(['d0', 'd2', 'd3'])
})

test('a vault that somebody else has locked delays no document of another vault, and its own are written once it is free', async () => {
  const org = await stage.world.organisation('pro')
  const ctx = stage.ctx(org)
  const [locked, free] = [await aVault(org), await aVault(org)]
  const waiting = await stage.world.database.db.tx(async (tx) => {
    await tx.run(sql`select 1 from vaults where id = ${locked} for update`)
    const late = Array.from({ length: 5 }, (_, turn) => ctx.writeDocument(ctx, locked, given(`late ${turn}`)))
    const soon = Array.from({ length: 5 }, (_, turn) => ctx.writeDocument(ctx, free, given(`soon ${turn}`)))
    await Promise.all(soon)
    expect((await writtenBy(org)).every(({ name }) => name.startsWith('soon'))).toBe(true)
    return late
  })
  await Promise.all(waiting)
  expect(await writtenBy(org)).toHaveLength(10)
})

/** A keyed request of a process, whose key is claimed in its batch. */
function keyed(org: Org, key: string): Ctx {
  const storedAs = (result: unknown) => ({
    status: 201,
    headers: {},
    body: Buffer.from(JSON.stringify(result)),
    resourceId: null,
  })
  return { ...stage.ctx(org), batchedKey: { key, fingerprint: createHash('sha256').update(key).digest(), storedAs } }
}

test('a key that another request claims while its batch is written fails alone', async () => {
  const org = await stage.world.organisation('pro')
  const vaultId = await aVault(org)
  const writings = await stage.world.database.db.tx(async (tx) => {
    await tx.run(sql`
      insert into idempotency_keys (organisation_id, environment, key, fingerprint, api_key_id, state, created_at)
      values (${org.id}, 'test', 'taken', '\\x00', 'key', 'running', ${stage.now()})`)
    const started = ['one', 'taken', 'two'].map((key) => {
      const ctx = keyed(org, key)
      return ctx.writeDocument(ctx, vaultId, given(key))
    })
    const waits = sql`
      select count(*) as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into idempotency_keys%'`
    // In the transaction itself the view would not change.
    await expect.poll(async () => (await stage.world.database.db.one(Count, waits)).count).toBe(1n)
    return started
  })
  expect((await outcomesOf(writings)).toSorted()).toEqual(['idempotency-key-reused', 'one', 'two'])
  expect((await writtenBy(org)).map(({ name }) => name)).toEqual(['one', 'two'])
})

const Count = z.object({ count: z.bigint() })

test('requests with one key that arrive together write one document, and a repeat gets its response', async () => {
  const org = await stage.world.organisation('pro')
  const path = `/vaults/${await aVault(org)}/documents`
  const send = (key: string, name = key) =>
    stage.world.call(org.testKey, 'POST', path, { name, data: {} }, { 'idempotency-key': key })
  const answers = await Promise.all(['a', 'a', 'b', 'c', 'a'].map((key) => send(key)))
  for (const response of answers.filter(({ status }) => status !== 201))
    expect(codeOf(response)).toBe('idempotency-in-progress')
  expect((await writtenBy(org)).map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  const [first] = answers.filter(({ status, body }) => status === 201 && body.name === 'a')
  const repeat = await send('a')
  expect([repeat.status, repeat.headers.get('idempotency-replayed'), repeat.body]).toEqual([201, 'true', first?.body])
  expect(codeOf(await send('a', 'another'))).toBe('idempotency-key-reused')
})

test('the repeat of a document too large for its response to be stored gets the document', async () => {
  const org = await stage.world.organisation('pro')
  const path = `/vaults/${await aVault(org)}/documents`
  const data = { text: 'x'.repeat(70_000) }
  const send = () =>
    stage.world.call(org.testKey, 'POST', path, { name: 'large', data }, { 'idempotency-key': 'large' })
  const [first, repeat] = [await send(), await send()]
  expect([first.status, repeat.status, repeat.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true'])
  expect(repeat.body).toEqual(first.body)
  expect(await writtenBy(org)).toHaveLength(1)
})
