import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { newTypeId } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../src/admin/run.ts'
import { archivePartition } from '../src/archive/archive.ts'
import { readParquet } from '../src/archive/parquet.ts'
import { planArchive } from '../src/archive/plan.ts'
import { findArchive, listColumns, listRows } from '../src/archive/store.ts'
import { type BlobKey, type BlobStore, isBlobKey } from '../src/files/index.ts'
import { verifyAudit } from '../src/platform/audit.ts'
import { utcMonthOf } from '../src/platform/clock.ts'
import { type Db, openDb, sql } from '../src/platform/db/db.ts'
import { listPartitions, partitionedTables, plain, startOfMonth } from '../src/platform/db/partitions.ts'
import { newId } from '../src/platform/ids.ts'
import { createLog } from '../src/platform/log.ts'
import { addPastMonths } from './past-months.ts'
import { aWorld, codeOf, type Org, type World } from './world.ts'

let world: World
let org: Org
let other: Org
let months: Date[]

const now = new Date()
const tables = partitionedTables.filter(({ table }) => table !== 'payments' && table !== 'audit_log')
const tenMinutes = 600_000

beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' } })
  org = await world.organisation()
  other = await world.organisation()
  await world.database.db.run(sql`delete from events`)
  months = await addPastMonths(world.database.db, now, 7, tables)
})
afterAll(() => world?.stop())

const random = (at: number): Uint8Array => new Uint8Array(createHash('sha256').update(String(at)).digest()).slice(0, 10)

/** Writes events of a month, each with a delivery and an attempt; every second one belongs to the other organisation. */
async function fill(
  db: Db,
  month: Date,
  count: number,
  owners = [org.id, other.id] as readonly string[],
): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const at = new Date(month.getTime() + n * tenMinutes)
    const [event, delivery, attempt] = ['evt', 'del', 'att'].map((prefix) => newTypeId(prefix, at.getTime(), random(n)))
    const owner = owners[n % owners.length] ?? ''
    const payload = JSON.stringify({ vaultId: `vlt_${n}`, text: `\ufeffé😀"\\${n}`, deep: { list: [1, null, 0.1] } })
    await db.run(sql`insert into events (id, organisation_id, environment, type, payload, created_at)
      values (${event}, ${owner}, 'test', 'vault.sealed', ${payload}::text::jsonb, ${at})`)
    await db.run(sql`insert into webhook_deliveries (id, organisation_id, environment, webhook_id, event_id, type, status, ended_at, created_at)
      values (${delivery}, ${owner}, 'test', 'wh_1', ${event}, 'vault.sealed', 'succeeded', ${at}, ${at})`)
    await db.run(sql`insert into webhook_attempts (id, organisation_id, environment, webhook_id, delivery_id, attempt, status, duration_ms, created_at)
      values (${attempt}, ${owner}, 'test', 'wh_1', ${delivery}, 1, 'succeeded', 5, now())`)
    ids.push(event ?? '')
  }
  return ids
}

const nameIn = (table: string, month: Date): string => `${table}_from_${utcMonthOf(month).replace('-', '_')}`

function admin(...args: readonly string[]) {
  const place = world.config.files
  const FILES_DIR = 'directory' in place ? place.directory : ''
  return runAdmin(['admin', 'archive', ...args], { DATABASE_URL: world.database.url, FILES_DIR })
}

const existing = async (db: Db, name: string): Promise<boolean> =>
  (await db.one(z.object({ is: z.boolean() }), sql`select to_regclass(${name}) is not null as is`)).is

async function contentOf(blobs: BlobStore, key: string): Promise<Uint8Array> {
  const opened = isBlobKey(key) ? await blobs.open(key) : undefined
  if (opened === undefined) throw new Error(`no file ${key}`)
  return buffer(opened.content)
}

const File = z.object({ key: z.string(), rows: z.number(), bytes: z.number(), sha256: z.string(), firstId: z.string() })
const Manifest = z.object({
  table: z.string(),
  partition: z.string(),
  rows: z.number(),
  rowsSha256: z.string(),
  columns: z.array(z.object({ name: z.string(), type: z.enum(['text', 'integer', 'bigint', 'boolean', 'time']) })),
  files: z.array(File),
  previous: z.object({ partition: z.string(), manifestSha256: z.string() }).nullable(),
})

test('months are archived: their rows are in Parquet files, and an id is 410 for its organisation and 404 for everybody else', async () => {
  const { db } = world.database
  const { blobs } = world.server.deps
  const [first = now, second = now, third = now] = months
  const ids = [...(await fill(db, first, 4)), ...(await fill(db, second, 8))]
  const [kept = ''] = await fill(db, third, 2)
  const columns = await listColumns(db, nameIn('events', second))
  const rows = await listRows(db, nameIn('events', second), columns, { after: '', limit: 100 })
  expect(rows).toHaveLength(8)

  const plan = await admin('--before', utcMonthOf(third))
  expect(plan.stdout).toContain(`${nameIn('events', second)}  until ${utcMonthOf(second)}`)
  expect(plan.stdout).not.toContain(nameIn('events', third))
  expect(
    plan.stdout
      .trim()
      .split('\n')
      .every((line) => line.endsWith('ready')),
  ).toBe(true)
  expect(await existing(db, nameIn('events', second))).toBe(true)
  expect(codeOf(await world.call(org.testKey, 'GET', `/events/${ids.at(-1)}`))).toBe('event-not-found')

  const done = await admin('--before', utcMonthOf(third), '--run', 'yes')
  expect([done.exitCode, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toContain(`${nameIn('events', second)}  archived, 8 rows in 1 files`)
  for (const { table } of tables)
    for (const month of [first, second]) expect(await existing(db, nameIn(table, month))).toBe(false)
  expect((await listPartitions(db, { table: 'events' }))[0]?.name).toBe(nameIn('events', third))

  for (const id of ids.filter((_, at) => at % 2 === 0)) {
    const response = await world.call(org.testKey, 'GET', `/events/${id}`)
    expect([response.status, codeOf(response)]).toEqual([410, 'archived'])
    expect(codeOf(await world.call(org.testKey, 'POST', `/events/${id}/resend`, {}))).toBe('archived')
    for (const key of [other.testKey, org.liveKey]) {
      const hidden = await world.call(key, 'GET', `/events/${id}`)
      expect([hidden.status, codeOf(hidden)]).toEqual([404, 'event-not-found'])
    }
  }
  const unknown = newTypeId('evt', second.getTime() + 1, random(99))
  for (const id of [unknown, kept])
    expect(codeOf(await world.call(org.testKey, 'GET', `/events/${id}`))).toBe('event-not-found')

  const archive = await findArchive(db, nameIn('events', second))
  const bytes = await contentOf(blobs, archive?.files.at(-1) ?? '')
  const manifest = Manifest.parse(JSON.parse(Buffer.from(bytes).toString()))
  expect(manifest).toMatchObject({
    table: 'events',
    rows: 8,
    columns,
    previous: { partition: nameIn('events', first) },
  })
  expect(Buffer.from(archive?.manifestHash ?? []).toString('hex')).toBe(
    createHash('sha256').update(bytes).digest('hex'),
  )
  const [file] = manifest.files
  const content = await contentOf(blobs, file?.key ?? '')
  expect(createHash('sha256').update(content).digest('hex')).toBe(file?.sha256)
  expect(Buffer.from(content.subarray(0, 4)).toString()).toBe('PAR1')
  expect(await readParquet(columns, content)).toEqual(rows)

  const [record] = await db.many(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from audit_log where organisation_id = 'operator' and action = 'archive'`,
  )
  expect(record?.count).toBe(6n)
  expect(await verifyAudit(db, 'operator')).toMatchObject({ intact: true })
  expect((await admin('--before', utcMonthOf(third), '--run', 'yes')).stdout).toBe('Nothing ends before that month.\n')
})

test('a month stays while the API answers it, and while a delivery is pending', async () => {
  const { db } = world.database
  const month = months[2] ?? now
  const [id = ''] = await fill(db, new Date(month.getTime() + 7 * 86_400_000), 1)
  await db.run(
    sql`update webhook_deliveries set status = 'pending', ended_at = null, due_at = now() where event_id = ${id}`,
  )
  const { stdout } = await admin('--before', utcMonthOf(startOfMonth(month, 1)), '--run', 'yes')
  for (const table of ['events', 'webhook_deliveries']) {
    expect(stdout).toContain(`${nameIn(table, month)}  a delivery is pending`)
    expect(await existing(db, nameIn(table, month))).toBe(true)
  }
  expect(stdout).toContain(`${nameIn('webhook_attempts', month)}  archived`)
  expect((await admin('--before', utcMonthOf(startOfMonth(now, 3)))).stdout).toMatch(
    /events_first .* answered until 20/,
  )
  const refused = archivePartition(depsOf(db), await plannedOf(db, nameIn('events', month)))
  await expect(refused).rejects.toThrow('a delivery is pending')
  await db.run(
    sql`update webhook_deliveries set status = 'dead', ended_at = now(), due_at = null where event_id = ${id}`,
  )
  expect((await admin('--before', utcMonthOf(startOfMonth(month, 1)), '--run', 'yes')).exitCode).toBe(0)
  expect(await existing(db, nameIn('events', month))).toBe(false)
})

test('the command says what is missing or wrong', async () => {
  expect((await admin('--before', '2026-13')).stderr).toContain('must be a month such as 2026-10')
  const env = { DATABASE_URL: world.database.url }
  const { exitCode, stderr } = await runAdmin(['admin', 'archive', '--before', '2020-01', '--run', 'yes'], env)
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('set FILES_DIR')])
})

function depsOf(db: Db, blobs: BlobStore = world.server.deps.blobs) {
  const { clock, random: source } = world.server.deps
  const requestId = newId('req', { clock, random: source })
  return { db, blobs, clock, random: source, actor: { kind: 'operator' as const }, requestId }
}

/** No longer answers the months that have just ended. */
const later = { now: () => startOfMonth(now, 3) }

async function plannedOf(db: Db, partition: string) {
  const found = (await planArchive(db, startOfMonth(now), { now: later.now() })).find(
    (one) => one.partition === partition,
  )
  if (found === undefined) throw new Error(`${partition} is not in the plan`)
  return found
}

test('rows that are deleted while their files are written are not in the files', async () => {
  const { db } = world.database
  const month = months[3] ?? now
  const name = nameIn('webhook_attempts', month)
  await fill(db, month, 4)
  const { blobs } = world.server.deps
  let isFirst = true
  const sweeping: BlobStore = {
    ...blobs,
    async put(content, as) {
      if (isFirst) await db.run(plain(`delete from ${name} where id in (select id from ${name} order by id limit 1)`))
      isFirst = false
      return blobs.put(content, as)
    },
  }
  const { rows, files } = await archivePartition({ ...depsOf(db, sweeping), clock: later }, await plannedOf(db, name))
  expect([rows, files.length]).toEqual([3n, 2])
  for (const key of files) expect((await contentOf(blobs, key)).length).toBeGreaterThan(0)
})

test('a detaching that a long transaction stopped is ended by the next run', async () => {
  const { db, url } = world.database
  const name = nameIn('events', months[3] ?? now)
  const hasty = openDb({ url, connectionsMax: 3, statementTimeoutMs: 400, log: createLog({ level: 'silent' }) })
  await db.tx(async (tx) => {
    await tx.run(sql`select count(*) from events`)
    const run = archivePartition({ ...depsOf(hasty), clock: later }, await plannedOf(db, name))
    await expect(run).rejects.toThrow('statement timeout')
  })
  await hasty.close()
  const pending = (await listPartitions(db, { table: 'events' })).find((one) => one.name === name)
  expect(pending).toMatchObject({ isDetaching: true })
  const begun = await plannedOf(db, name)
  expect(begun.isBegun).toBe(true)
  await archivePartition({ ...depsOf(db), clock: later }, begun)
  expect([await existing(db, name), (await findArchive(db, name))?.state]).toEqual([false, 'archived'])
})

/** A process that is killed before one of the things that it does to the database or the storage. */
function killedAfter(actionsMax: number, db: Db, blobs: BlobStore) {
  let actions = 0
  const mortal = <A extends readonly unknown[], R>(act: (...args: A) => Promise<R>) => {
    return (...args: A): Promise<R> => {
      actions += 1
      return actions > actionsMax ? Promise.reject(new Error('killed')) : act(...args)
    }
  }
  const over = <Q extends Pick<Db, 'one' | 'many' | 'maybeOne' | 'run'>>(own: Q): Q => ({
    ...own,
    one: mortal(own.one) as Q['one'],
    many: mortal(own.many) as Q['many'],
    maybeOne: mortal(own.maybeOne) as Q['maybeOne'],
    run: mortal(own.run),
  })
  const mortalDb: Db = { ...over(db), tx: (work, options) => db.tx((tx) => work(over(tx)), options) }
  return {
    db: mortalDb,
    blobs: { ...blobs, put: mortal(blobs.put), open: mortal(blobs.open), delete: mortal(blobs.delete) },
  }
}

test('a run that planned before another one ended leaves the finished archive as it is', async () => {
  const { db } = world.database
  const name = nameIn('webhook_deliveries', months[3] ?? now)
  const planned = await plannedOf(db, name)
  const archive = await archivePartition({ ...depsOf(db), clock: later }, planned)
  await expect(archivePartition({ ...depsOf(db), clock: later }, planned)).rejects.toThrow('is archived already')
  expect(await findArchive(db, name)).toEqual({ ...archive, state: 'archived' })
  for (const key of archive.files) expect((await contentOf(world.server.deps.blobs, key)).length).toBeGreaterThan(0)
})

test.each(['a file of rows', 'the manifest'])(
  'rows are not dropped if %s is missing or changed when the next run continues: it is written again',
  async (which) => {
    const { db } = world.database
    const { blobs } = world.server.deps
    const month = months[which === 'the manifest' ? 5 : 6] ?? now
    const name = nameIn('events', month)
    await fill(db, month, 3)
    const columns = await listColumns(db, name)
    const rows = await listRows(db, name, columns, { after: '', limit: 10 })
    const undetached: Db = {
      ...db,
      run: (statement) => (/detach/.test(statement.text) ? Promise.reject(new Error('killed')) : db.run(statement)),
    }
    const planned = await plannedOf(db, name)
    await expect(archivePartition({ ...depsOf(undetached), clock: later }, planned)).rejects.toThrow('killed')
    const files = (await findArchive(db, name))?.files ?? []
    const lost = which === 'the manifest' ? files.at(-1) : files[0]
    if (lost === undefined || !isBlobKey(lost)) throw new Error('no file was written')
    await blobs.delete(lost)
    const archive = await archivePartition({ ...depsOf(db), clock: later }, await plannedOf(db, name))
    expect(archive.files).not.toContain(lost)
    const manifest = Manifest.parse(
      JSON.parse(Buffer.from(await contentOf(blobs, archive.files.at(-1) ?? '')).toString()),
    )
    expect(await readParquet(columns, await contentOf(blobs, manifest.files[0]?.key ?? ''))).toEqual(rows)
  },
)

test('a run that is killed before any of its steps leaves the rows in a table or whole in files, and the next run ends it', async () => {
  const { db } = world.database
  const { blobs } = world.server.deps
  const month = months[4] ?? now
  const name = nameIn('webhook_attempts', month)
  const bound = (await listPartitions(db, { table: 'webhook_attempts' })).find((one) => one.name === name)
  let kills = 0
  for (let steps = 0; ; steps += 1) {
    await fill(db, month, 3)
    const columns = await listColumns(db, name)
    const rows = await listRows(db, name, columns, { after: '', limit: 10 })
    const planned = await plannedOf(db, name)
    const dying = killedAfter(steps, db, blobs)
    const outcome = await archivePartition({ ...depsOf(dying.db, dying.blobs), clock: later }, planned).catch(
      (error: unknown) => error,
    )
    const isKilled = outcome instanceof Error && outcome.message === 'killed'
    if (outcome instanceof Error && !isKilled) throw outcome
    kills += Number(isKilled)
    if (await existing(db, name)) expect(await listRows(db, name, columns, { after: '', limit: 10 })).toEqual(rows)
    else expect((await findArchive(db, name))?.state).toBe('archived')
    if (isKilled && (await existing(db, name))) {
      await archivePartition({ ...depsOf(db), clock: later }, await plannedOf(db, name))
    }
    const archive = await findArchive(db, name)
    expect(archive).toMatchObject({ state: 'archived', rows: 3n })
    const manifest = Manifest.parse(
      JSON.parse(Buffer.from(await contentOf(blobs, archive?.files.at(-1) ?? '')).toString()),
    )
    expect(await readParquet(columns, await contentOf(blobs, manifest.files[0]?.key ?? ''))).toEqual(rows)
    const stored: BlobKey[] = []
    for await (const keys of blobs.list(new Date(Date.now() + 60_000))) stored.push(...keys)
    expect(stored.filter((key) => archive?.files.includes(key))).toHaveLength(2)
    if (!isKilled) break
    await db.run(sql`delete from archives where partition = ${name}`)
    const bounds = `from ('${bound?.from}') to ('${bound?.until}')`
    await db.run(plain(`create table ${name} partition of webhook_attempts for values ${bounds}`))
    await db.run(plain(`truncate events, webhook_deliveries`))
  }
  expect(kills).toBeGreaterThan(20)
}, 120_000)
