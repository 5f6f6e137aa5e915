import { verifySeal } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { formOf, hangingUpload, upload } from '../files/uploads.ts'
import { ed25519 } from '../stories/vaults-stage.ts'
import { type Answer, codeOf, request } from '../world.ts'
import { type Keeper, keepService } from './keeper.ts'
import { killAt, type Moment } from './moments.ts'
import { type Env, endEveryService, serveEnv, spawnWaiting } from './service.ts'
import { foundOrganisation } from './stage.ts'
import { countOf, expectBlobs, expectCounters, keysOf, leftToSweep, makeUploadsOld } from './vault-books.ts'

let database: TestDatabase
let env: Env
let keeper: Keeper
let key: string

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  env = serveEnv(database.url)
  keeper = keepService({ prepare: () => spawnWaiting(env) })
  key = (await foundOrganisation(database.url)).testKey
  await database.db.run(sql`update organisations set plan = 'pro'`)
  await waitForTests()
})
// The process that one test leaves is the one that the next kills.
beforeEach(async () => {
  await keeper.start()
})
afterAll(async () => {
  await endEveryService()
  await database?.drop()
})

async function ask(method: string, where: string, body?: unknown, idempotencyKey?: string): Promise<Answer> {
  const headers: Record<string, string> = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
  return request(await keeper.where(), { key, method, path: where, body, headers })
}

async function aFilledVault(): Promise<string> {
  const vaultId = String((await ask('POST', '/vaults', {})).body.id)
  for (const name of ['one', 'two']) await ask('POST', `/vaults/${vaultId}/documents`, { name, data: { name } })
  return vaultId
}

/** Kills the process at this moment of the request. Its caller gets no answer. */
async function expectLost(moment: Moment, send: () => Promise<unknown>): Promise<void> {
  expect(await killAt({ db: database.db, keeper }, moment, send)).toBe('lost')
}

async function reader() {
  return { base: await keeper.where(), key, env, db: database.db }
}

const written = 'with written as'
const moments: readonly (readonly [string, Moment])[] = [
  ['before the seal is written', { lock: sql`lock table vaults in share mode`, at: 'update vaults set summary' }],
  [
    'with the seal written, before its tree is',
    { lock: sql`lock table vault_seal_trees in share mode`, at: 'insert into vault_seal_trees' },
  ],
  ['with the seal written, before its stream event', { lock: sql`lock table vault_events in share mode`, at: written }],
  [
    'with the seal written and its stream event, before the webhook events',
    { lock: sql`lock table events in share mode`, at: 'with due as' },
  ],
]

test.each(moments)(
  'a process killed %s leaves the vault unsealed, and sealing again seals it once and whole',
  { timeout: 270_000 },
  async (_, moment) => {
    const vaultId = await aFilledVault()
    await expectLost(moment, () => ask('POST', `/vaults/${vaultId}/seal`, { summary: 'whole' }, `seal-${vaultId}`))
    await keeper.start()
    expect((await ask('GET', `/vaults/${vaultId}`)).body).toMatchObject({
      status: 'active',
      sealedAt: null,
      manifest: { sealedAt: null },
      eventCount: 3,
    })
    expect(codeOf(await ask('GET', `/vaults/${vaultId}/proof`))).toBe('vault-not-sealed')
    expect(await sealsReported(vaultId)).toEqual({ stream: 0, webhooks: 0 })

    await ask('POST', `/vaults/${vaultId}/documents`, { name: 'three', data: {} })
    const sealed = await ask('POST', `/vaults/${vaultId}/seal`, { summary: 'whole' }, `seal-${vaultId}`)
    expect([sealed.status, sealed.headers.get('idempotency-replayed')]).toEqual([200, null])
    const { body: proof } = await ask('GET', `/vaults/${vaultId}/proof`)
    expect(await verifySeal(proof, ed25519, await keysOf(await keeper.where()))).toMatchObject({ ok: true })
    expect(z.object({ items: z.array(z.unknown()) }).parse(proof.manifest).items).toHaveLength(3)
    expect(await sealsReported(vaultId)).toEqual({ stream: 1, webhooks: 1 })
  },
)

async function sealsReported(vaultId: string): Promise<{ stream: number; webhooks: number }> {
  return {
    stream: await countOf(
      database.db,
      sql`select count(*) as count from vault_events where vault_id = ${vaultId} and type = 'vault.sealed'`,
    ),
    webhooks: await countOf(
      database.db,
      sql`select count(*) as count from events where type = 'vault.sealed' and payload ->> 'vaultId' = ${vaultId}`,
    ),
  }
}

const counter = sql`select 1 from usage_counters where kind = 'storageBytes' for update`
const bindings: readonly (readonly [string, (vaultId: string) => Moment])[] = [
  [
    'stored and bound to nothing',
    (id) => ({ lock: sql`select 1 from vaults where id = ${id} for update`, at: 'select id, description' }),
  ],
  ['bound, before its event is written', () => ({ lock: sql`lock table vault_events in share mode`, at: written })],
  ['bound and published, and not counted', () => ({ lock: counter, at: 'insert into usage_counters' })],
]

test('a process killed during an upload leaves no file and no count, and the partial upload is swept', {
  timeout: 270_000,
}, async () => {
  const vaultId = await aFilledVault()
  const body = formOf({ filename: 'half.bin', content: Buffer.alloc(4_000_000) })
  const socket = await hangingUpload(await keeper.where(), { key, vaultId, body }, 2_000_000)
  await expect.poll(() => leftToSweep({ db: database.db, env })).toBe(2)
  await keeper.end('SIGKILL')
  socket.destroy()
  await expectNoUpload(vaultId)
})

test.each(bindings)(
  'a process killed when a file is %s leaves no file and no count, and its blob is swept',
  { timeout: 270_000 },
  async (_, moment) => {
    const vaultId = await aFilledVault()
    const content = Buffer.alloc(1_000)
    await database.db.run(sql`update organisations set plan = 'enterprise'`)
    await expectLost(moment(vaultId), async () =>
      upload(await keeper.where(), { key, vaultId, body: formOf({ filename: 'a.bin', content }) }),
    )
    await database.db.run(sql`update organisations set plan = 'pro'`)
    await expectNoUpload(vaultId)
  },
)

/** Nothing is counted from the death on, the sweep leaves nothing, and the next upload succeeds. */
async function expectNoUpload(vaultId: string): Promise<void> {
  // A process sweeps as soon as it starts, and finds what the dead one left two hours before.
  await makeUploadsOld({ db: database.db, env })
  await keeper.start()
  expect((await ask('GET', `/vaults/${vaultId}`)).body).toMatchObject({ files: [], eventCount: 3 })
  await expectCounters(await reader())
  await expect.poll(() => leftToSweep({ db: database.db, env }), { timeout: 180_000, interval: 200 }).toBe(0)
  await expectBlobs({ db: database.db, env })
  const body = formOf({ filename: 'a.bin', content: 'x' })
  expect((await upload(await keeper.where(), { key, vaultId, body })).status).toBe(201)
  await expectCounters(await reader())
}

const documentMoments: readonly (readonly [string, Moment])[] = [
  ['before it is written', { lock: sql`lock table vault_documents in share mode`, at: 'with documents as' }],
  [
    'with its row written, before its event',
    { lock: sql`lock table vault_events in share mode`, at: 'with documents as' },
  ],
  ['before it is counted', { lock: counter, at: 'insert into usage_counters' }],
  [
    'counted and with its key, before the commit',
    { lock: sql`lock table stored in exclusive mode`, at: 'insert into idempotency_keys' },
  ],
]

/** Makes each statement that stores keys wait while a test has locked the table `stored`, and each commit of documents the table `committed`. */
async function waitForTests(): Promise<void> {
  await database.db.run(sql`create table stored ()`)
  await database.db.run(sql`create table committed ()`)
  await database.db.run(sql`
    create function wait_for_tests() returns trigger language plpgsql as $$
    begin
      execute format('lock table %I in share mode', tg_argv[0]);
      return null;
    end $$`)
  await database.db.run(sql`
    create trigger wait_to_store after insert on idempotency_keys for each statement execute function wait_for_tests('stored')`)
  await database.db.run(sql`
    create constraint trigger wait_to_commit after insert on vault_documents deferrable initially deferred
    for each row execute function wait_for_tests('committed')`)
}

const batched = ['a', 'b', 'c']

/** A vault with an acknowledged document, and a process that is killed at this moment of a batch of three more. */
async function aLostBatch(moment: Moment) {
  const vaultId = await aFilledVault()
  await database.db.run(sql`update organisations set plan = 'enterprise'`)
  const add = (name: string) => ask('POST', `/vaults/${vaultId}/documents`, { name, data: {} }, `${name}-${vaultId}`)
  expect((await add('acknowledged')).status).toBe(201)
  await expectLost(moment, () => Promise.any(batched.map(add)))
  await database.db.run(sql`update organisations set plan = 'pro'`)
  await keeper.start()
  const namesOf = async () => {
    const { documents } = (await ask('GET', `/vaults/${vaultId}`)).body
    return z
      .array(z.object({ name: z.string() }))
      .parse(documents)
      .map(({ name }) => name)
  }
  const repeat = async () => {
    const repeats = await Promise.all(['acknowledged', ...batched].map(add))
    expect(repeats.map(({ status }) => status)).toEqual([201, 201, 201, 201])
    return repeats.map(({ headers }) => headers.get('idempotency-replayed'))
  }
  return { namesOf, repeat }
}

test.each(documentMoments)(
  'a process killed while it writes a batch of documents, one %s, leaves none of them and all that were acknowledged',
  { timeout: 270_000 },
  async (_, moment) => {
    const { namesOf, repeat } = await aLostBatch(moment)
    expect(await namesOf()).toEqual(['one', 'two', 'acknowledged'])
    expect(await repeat()).toEqual(['true', null, null, null])
    expect(await namesOf()).toHaveLength(6)
    await expectCounters(await reader())
  },
)

test('a process killed while its batch of documents commits leaves all of them, counted once, and repeats get their responses', {
  timeout: 270_000,
}, async () => {
  const { namesOf, repeat } = await aLostBatch({ lock: sql`lock table committed in exclusive mode`, at: 'commit' })
  const stored = await namesOf()
  expect(stored.slice(0, 3)).toEqual(['one', 'two', 'acknowledged'])
  expect(stored.length, 'the batch that committed').toBeGreaterThan(3)
  const committed = ['acknowledged', ...batched].map((name) => (stored.includes(name) ? 'true' : null))
  expect(await repeat()).toEqual(committed)
  expect((await namesOf()).toSorted()).toEqual(['a', 'acknowledged', 'b', 'c', 'one', 'two'])
  await expectCounters(await reader())
})
