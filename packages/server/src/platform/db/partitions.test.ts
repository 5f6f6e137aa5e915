import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { anEmptyDatabase, freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { type Db, sql } from './db.ts'
import { listMigrations, migrate } from './migrate.ts'
import { firstIdAt } from './page.ts'
import { dropEmptyPartitions, keepPartitions, listPartitions, partitionedTables, startOfMonth } from './partitions.ts'

const events = { table: 'events' } as const
const DAY_MS = 86_400_000

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const at = (text: string): Date => new Date(text)
const idAt = (instant: Date): string => firstIdAt('evt', instant.getTime())

async function insert(db: Db, ...instants: readonly Date[]): Promise<void> {
  for (const instant of instants)
    await db.run(sql`insert into events (id, organisation_id, environment, type, payload, created_at)
      values (${idAt(instant)}, 'org_x', 'test', 'vault.sealed', '{}', ${instant})`)
}

async function where(db: Db, instant: Date): Promise<string> {
  const found = sql`select tableoid::regclass::text as name from events where id = ${idAt(instant)}`
  return (await db.one(z.object({ name: z.string() }), found)).name
}

const names = async (db: Db): Promise<string[]> => (await listPartitions(db, events)).map(({ name }) => name)

test('a migrated database takes rows of this month, the next, and any time after and before', async () => {
  const { db } = database
  const now = new Date()
  for (const one of partitionedTables) {
    const partitions = await listPartitions(db, one)
    expect(partitions[0]).toMatchObject({ name: `${one.table}_first`, from: undefined })
    expect(partitions.at(-1)).toMatchObject({ until: undefined })
    expect(partitions.at(-1)?.fromAt?.getTime()).toBeGreaterThanOrEqual(startOfMonth(now, 2).getTime())
    expect(partitions[0]?.untilAt?.getTime()).toBeGreaterThan(now.getTime() + 27 * DAY_MS)
  }
  const far = at('2099-05-05T00:00:00Z')
  await insert(db, at('2001-01-01T00:00:00Z'), now, far)
  expect(await where(db, now)).toBe('events_first')
  expect(await where(db, far)).toBe((await names(db)).at(-1))
  expect(await keepPartitions(db, now)).toEqual([])
  await keepPartitions(db, startOfMonth(now, 2))
  expect(await where(db, far)).toBe((await names(db)).at(-2))
  await db.run(sql`delete from events`)
})

test('rows at the two sides of the end of a month are in two partitions, whether or not the next months were made in time', async () => {
  const { db, drop } = await freshDatabase()
  const [, , ...before] = await names(db)
  const open = (await listPartitions(db, events)).at(-1)
  const begins = open?.fromAt ?? new Date(0)
  // Nobody made a partition for the months after: the rows are in the open one, until its end is found.
  const late = [0, 1, 3, 5].map((months) => new Date(startOfMonth(begins, months).getTime() + 5 * DAY_MS))
  await insert(db, ...late)
  const now = late.at(-1) ?? begins
  const made = await keepPartitions(db, now)
  expect(await keepPartitions(db, now)).toEqual([])
  expect(made.length).toBeGreaterThan(0)
  for (const instant of late) expect(await where(db, instant)).toBe(open?.name)
  const after = (await listPartitions(db, events)).filter(({ fromAt }) => fromAt && fromAt > now)
  const border = after[0]?.fromAt ?? now
  await insert(db, new Date(border.getTime() - 1), border)
  expect(await where(db, border)).toBe(after[0]?.name)
  expect(await where(db, new Date(border.getTime() - 1))).not.toBe(after[0]?.name)
  expect(before.length).toBeLessThan((await names(db)).length)
  const parameters = sql`select reloptions::text as given from pg_class where relname like 'webhook_deliveries_from%' and relkind = 'r'`
  for (const row of await db.many(z.object({ given: z.string() }), parameters))
    expect(row.given).toBe('{fillfactor=80}')
  await drop()
})

test('a run that stopped after any of its steps leaves a table that takes rows, and the next run continues', async () => {
  const { db, drop } = await freshDatabase()
  const open = (await listPartitions(db, events)).at(-1)
  const now = startOfMonth(open?.fromAt ?? new Date(0), 1)
  await insert(db, now)
  let statements = 0
  for (let stopsAfter = 1; stopsAfter < 40; stopsAfter += 1) {
    const stopping = dying(db, stopsAfter, () => {
      statements += 1
    })
    const outcome = await keepPartitions(stopping, now).catch((error: unknown) => error)
    await insert(db, new Date(now.getTime() + stopsAfter), new Date(now.getTime() + 27 * DAY_MS + stopsAfter))
    if (Array.isArray(outcome)) break
  }
  expect(statements).toBeGreaterThan(10)
  expect(await keepPartitions(db, now)).toEqual([])
  expect((await listPartitions(db, events)).filter(({ until }) => until === undefined)).toHaveLength(1)
  await drop()
})

/** The database of a process that dies before it sends one of its statements. */
function dying(db: Db, statementsMax: number, onStatement: () => void): Db {
  let sent = 0
  const count = <A extends readonly unknown[], R>(send: (...args: A) => Promise<R>) => {
    return (...args: A): Promise<R> => {
      onStatement()
      sent += 1
      return sent > statementsMax ? Promise.reject(new Error('killed')) : send(...args)
    }
  }
  const over = <Q extends Pick<Db, 'one' | 'many' | 'run'>>(own: Q): Q => ({
    ...own,
    one: count(own.one) as Q['one'],
    many: count(own.many) as Q['many'],
    run: count(own.run),
  })
  return { ...over(db), tx: (work, options) => db.tx((tx) => work(over(tx)), options) }
}

test('a change of partitions lets the requests pass that wait behind it, and is tried again', async () => {
  const { db, drop } = await freshDatabase()
  const now = startOfMonth((await listPartitions(db, events)).at(-1)?.fromAt ?? new Date(0))
  let running: Promise<string[]> | undefined
  await db.tx(async (tx) => {
    await tx.run(sql`select count(*) from events`)
    running = keepPartitions(db, now)
    const waits = sql`select exists (select 1 from pg_locks where not granted and relation::regclass::text like 'events%') as is`
    const isWaiting = async () => (await db.one(z.object({ is: z.boolean() }), waits)).is
    await expect.poll(isWaiting, { timeout: 20_000, interval: 5 }).toBe(true)
    await insert(db, now)
  })
  expect((await running)?.length).toBeGreaterThan(0)
  await drop()
})

test('partitions that ended long ago are dropped once they are empty, the others stay', async () => {
  const { db, drop } = await freshDatabase()
  const begins = (await listPartitions(db, events)).at(-1)?.fromAt ?? new Date(0)
  const now = startOfMonth(begins, 2)
  await keepPartitions(db, startOfMonth(begins, -1))
  await keepPartitions(db, begins)
  await keepPartitions(db, now)
  await insert(db, begins)
  const all = await names(db)
  const dropped = await dropEmptyPartitions(db, now)
  expect(dropped).toContain('events_first')
  expect(dropped).toContain('webhook_attempts_first')
  expect(await names(db)).toEqual(all.filter((name) => !dropped.includes(name)))
  expect(await where(db, begins)).toBeDefined()
  await insert(db, now)
  expect(await dropEmptyPartitions(db, now)).toEqual([])
  await drop()
})

test('the tables of before keep their rows, and a process of the previous version reads and writes meanwhile', async () => {
  const { db, url, drop } = await anEmptyDatabase()
  const all = await listMigrations()
  const before = all.filter(({ name }) => name < '0160')
  await migrate({ url, migrations: before })
  const now = new Date()
  const times = [90, 60, 31, 1, 0].map((days) => new Date(now.getTime() - days * DAY_MS))
  await insert(db, ...times)
  await db.run(
    sql`insert into webhooks (id, organisation_id, environment, url, events, created_at) select 'wh_1', id, 'test', '', '{}', now() from organisations`,
  )
  const counted = sql`select count(*) as count from events where organisation_id = 'org_x'`
  let written = times.length
  let isMigrating = true
  const writing = (async () => {
    while (isMigrating) {
      await insert(db, new Date(now.getTime() + ++written))
      expect((await db.one(z.object({ count: z.bigint() }), counted)).count).toBe(BigInt(written))
    }
  })()
  await migrate({ url })
  isMigrating = false
  await writing
  expect(written).toBeGreaterThan(times.length)
  expect(await where(db, times[0] ?? now)).toBe('events_first')
  const keys = sql`select conname from pg_constraint where contype = 'f' and confrelid in ('events'::regclass, 'events_first'::regclass)`
  expect(await db.many(z.object({ conname: z.string() }), keys)).toEqual([])
  await drop()
})

test('a hash of a payment or a transfer, a fee and a counted amount change in place: pages have space for a version, and no index has the columns', async () => {
  const { db, drop } = await freshDatabase()
  const halfFull = [
    'transfers',
    'transfer_steps',
    ...(await listPartitions(db, { table: 'payments' })).map(({ name }) => name),
  ]
  const names = [...halfFull, 'policy_reservations']
  const parameters = sql`select relname::text as name, reloptions::text as given from pg_class where relname = any(${names})`
  for (const row of await db.many(z.object({ name: z.string(), given: z.string().nullable() }), parameters))
    expect(row).toMatchObject({ given: halfFull.includes(row.name) ? '{fillfactor=50}' : '{fillfactor=70}' })
  const indexes = sql`
    select c.relname::text as index from pg_depend d join pg_class c on c.oid = d.objid and c.relkind in ('i', 'I')
      join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where d.refobjid = any(${names}::regclass[]) and a.attname in ('tx_hash', 'raw_fee', 'atto_amount')`
  expect(await db.many(z.object({ index: z.string() }), indexes)).toEqual([])
  await drop()
})
