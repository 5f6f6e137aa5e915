import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { anEmptyDatabase, freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { createLog } from '../log.ts'
import { type Db, openDb, sql } from './db.ts'
import { aMigration, isMigrated, listMigrations, migrate, requireMigrated } from './migrate.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(sql`create table toys (id integer, name text)`)
})
afterAll(() => database.drop())

test('several processes may migrate one empty database concurrently, and none serves it before', async () => {
  const { db, url, drop } = await anEmptyDatabase()
  await expect(requireMigrated(db)).rejects.toThrow('the database has no tables of Purser; run purser migrate')
  expect(await isMigrated(db)).toBe(false)
  const migrated = await Promise.all([0, 1, 2, 3].map(() => migrate({ url })))
  const all = (await listMigrations()).map(({ name }) => name)
  expect(migrated.sort((left, right) => right.length - left.length)).toEqual([all, [], [], []])
  await requireMigrated(db)
  const last = all.at(-1) ?? ''
  await db.run(sql`delete from schema_migrations where name = ${last}`)
  await expect(requireMigrated(db)).rejects.toThrow(`lacks 1 migrations, from ${last} on; run purser migrate`)
  await drop()
})

test.each([
  ["locale_provider icu icu_locale 'da' encoding 'UTF8'", 'The database does not sort ids as ASCII.'],
  ["locale_provider icu icu_locale 'cs' encoding 'UTF8'", 'The database does not sort ids as ASCII.'],
  ["locale_provider libc locale 'C' encoding 'LATIN1'", 'The database stores LATIN1 and not UTF-8.'],
  ["locale_provider icu icu_locale 'en-US' encoding 'UTF8'", undefined],
])('an empty database with %s has refusal %s', async (options, refusal) => {
  const { url, drop } = await anEmptyDatabase(options)
  const migrating = migrate({ url, migrations: [aMigration('9001_first.sql', 'create table first (id integer);')] })
  if (refusal === undefined) expect(await migrating).toEqual(['9001_first.sql'])
  else await expect(migrating).rejects.toThrow(refusal)
  await drop()
})

test('a run that fails keeps the files before the fault, and the next continues there', async () => {
  const [first, second] = [
    aMigration('9001_first.sql', 'alter table toys add column first integer;'),
    aMigration('9002_second.sql', 'alter table toys add column second integer;\nselect 1 / 0;'),
  ]
  await expect(migrate({ url: database.url, migrations: [first, second] })).rejects.toThrow('division by zero')
  const mended = aMigration('9002_second.sql', 'alter table toys add column second integer;')
  expect(await migrate({ url: database.url, migrations: [first, mended] })).toEqual(['9002_second.sql'])
  await expect(migrate({ url: database.url, migrations: [first, second] })).rejects.toThrow(
    'migration 9002_second.sql was changed after it had run',
  )
})

test('a migration that waits for a lock lets the requests behind it pass, and runs once it gets the lock', async () => {
  const change = aMigration('9003_locked.sql', 'alter table toys add column third integer;')
  let running: Promise<string[]> | undefined
  await database.db.tx(async (tx) => {
    await tx.many(z.object({}), sql`select id from toys`)
    running = migrate({ url: database.url, migrations: [change], lockMsMax: 50 })
    const isWaiting = sql`select count(*) > 0 as is from pg_locks where relation = 'toys'::regclass and not granted`
    const seesIt = async () => (await database.db.one(z.object({ is: z.boolean() }), isWaiting)).is
    await expect.poll(seesIt, { timeout: 20_000, interval: 5 }).toBe(true)
    // Waits behind the migration, until the migration gives up.
    expect(await database.db.many(z.object({ id: z.number() }), sql`select id from toys`)).toEqual([])
  })
  expect(await running).toEqual(['9003_locked.sql'])
})

test('a lock that is not released ends the run after its patience, without a change', async () => {
  const change = aMigration('9004_blocked.sql', 'alter table toys add column fourth integer;')
  await database.db.tx(async (tx) => {
    await tx.many(z.object({}), sql`select id from toys`)
    const blocked = migrate({ url: database.url, migrations: [change], lockMsMax: 10, patienceMs: 0 })
    await expect(blocked).rejects.toThrow('lock timeout')
  })
  expect(await migrate({ url: database.url, migrations: [change] })).toEqual(['9004_blocked.sql'])
})

test('an index is built while a transaction writes, and one that an interrupted run left is built again', async () => {
  const { db, url } = database
  await db.run(sql`create index toys_by_name on toys (name)`)
  await db.run(sql`update pg_index set indisvalid = false where indexrelid = 'toys_by_name'::regclass`)
  const text = 'create index concurrently if not exists toys_by_name on toys (name);'
  const build = aMigration('9005_index.concurrent.sql', text)
  let running: Promise<string[]> | undefined
  await db.tx(async (tx) => {
    await tx.run(sql`insert into toys (id, name) values (1, 'bear')`)
    running = migrate({ url, migrations: [build] })
    // Other writes go on while the building waits for this transaction.
    await db.run(sql`insert into toys (id, name) values (2, 'car')`)
  })
  expect(await running).toEqual(['9005_index.concurrent.sql'])
  const valid = sql`select indisvalid as is from pg_index where indexrelid = 'toys_by_name'::regclass`
  expect(await db.one(z.object({ is: z.boolean() }), valid)).toEqual({ is: true })
})

test('a block that commits each of its steps runs beside an index, and may', async () => {
  const { db, url } = database
  const text = `do $$ begin
  for step in 1..3 loop
    insert into toys (id, name) values (100 + step, 'step');
    commit;
  end loop;
end $$;
create index concurrently if not exists toys_by_step on toys (id, name);`
  const build = aMigration('9005_steps.concurrent.sql', text)
  expect(await migrate({ url, migrations: [build] })).toEqual(['9005_steps.concurrent.sql'])
  const made = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from toys where name = 'step'`,
  )
  expect(made.count).toBe(3n)
})

test('an index of a table with partitions is built on each one and attached, also after a run that was interrupted', async () => {
  const { db, url } = database
  for (const text of [
    'create table boxes (id text primary key, color text) partition by range (id)',
    `create table boxes_first partition of boxes for values from (minvalue) to ('b')`,
    `create table boxes_open partition of boxes for values from ('b') to (maxvalue)`,
    // What an interrupted run leaves: the index of the table, one that is attached, and one that is not valid.
    'create index boxes_by_color on only boxes (color, id)',
    'create index boxes_first_by_color on boxes_first (color, id)',
    'alter index boxes_by_color attach partition boxes_first_by_color',
    'create index boxes_open_by_color on boxes_open (color, id)',
    `update pg_index set indisvalid = false where indexrelid = 'boxes_open_by_color'::regclass`,
  ])
    await db.run({ text, values: [] })
  const text = `create index if not exists boxes_by_color on only boxes (color, id);
create index concurrently if not exists {boxes}_by_color on {boxes} (color, id);
alter index boxes_by_color attach partition {boxes}_by_color;
`
  const build = aMigration('9006_boxes.concurrent.sql', text)
  expect(await migrate({ url, migrations: [build] })).toEqual(['9006_boxes.concurrent.sql'])
  const valid = await db.many(
    z.object({ name: z.string(), isValid: z.boolean() }),
    sql`select indexrelid::regclass::text as name, indisvalid as is_valid from pg_index
      where indexrelid::regclass::text like 'boxes%by_color' order by name`,
  )
  expect(valid).toEqual(
    ['boxes_by_color', 'boxes_first_by_color', 'boxes_open_by_color'].map((name) => ({ name, isValid: true })),
  )
  const attached = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from pg_inherits where inhparent = 'boxes_by_color'::regclass`,
  )
  expect(attached.count).toBe(2n)
})

test('a start repeats its first statement while a slow database opens no connection in time, five times at most', async () => {
  let failures = 0
  const slow = (failuresMax: number): Db => {
    failures = 0
    return new Proxy(database.db, {
      get: (db, name, receiver) => {
        if (failures === failuresMax) return Reflect.get(db, name, receiver)
        failures += 1
        return () => Promise.reject(new Error('timeout expired'))
      },
    })
  }
  await expect(requireMigrated(slow(100))).rejects.toThrow('timeout expired')
  expect(failures).toBe(5)
  await requireMigrated(slow(4))
  expect(failures).toBe(4)
})

/** Statements that lock an existing table against writes, with its name. */
const locking =
  /\b(?:alter table(?: if exists)?(?: only)?|create (?:or replace )?trigger \w+ [\w, ]+? on|create (?:unique )?index (?:if not exists )?\w+ on(?: only)?) (\w+)/gi

/** Returns the existing tables that a migration locks against writes, each once. */
function tablesLockedBy(text: string): readonly (string | undefined)[] {
  const made = new Set([...text.matchAll(/create table (?:if not exists )?(\w+)/gi)].map(([, table]) => table))
  return [...new Set([...text.matchAll(locking)].map(([, table]) => table).filter((table) => !made.has(table)))]
}

test('a migration that locks several tables commits each of its statements: the locks of one transaction deadlock with requests', async () => {
  // Migrations that were released before this rule stay as they are.
  const migrations = (await listMigrations()).filter(({ name }) => name > '0250' && !name.endsWith('.concurrent.sql'))
  const locked = migrations.map(({ name, text }) => ({ name, tables: tablesLockedBy(text) }))
  expect(locked.filter(({ tables }) => tables.length === 1).length).toBeGreaterThan(3)
  expect(locked.filter(({ tables }) => tables.length > 1)).toEqual([])
})

test('the tables that a migration locks are found', () => {
  const text = `create table new_rows (id text); alter table only payments add column a int; create index on_new on new_rows (id);
    create or replace trigger t after insert or update on transfers execute function f(); create unique index if not exists i on only payments (a)`
  expect(tablesLockedBy(text)).toEqual(['payments', 'transfers'])
})

test('the contents of vaults lose their foreign keys beside a request that has a vault and goes on to its contents', async () => {
  const { db, url, drop } = await freshDatabase()
  for (const table of ['vault_events', 'vault_documents'])
    await db.run({
      text: `alter table ${table} add constraint ${table}_vault_id_fkey foreign key (vault_id) references vaults (id) on delete cascade`,
      values: [],
    })
  await db.run(sql`drop table deleted_vaults`)
  await db.run(sql`drop function queue_vault_contents cascade`)
  await db.run(sql`delete from schema_migrations where name like '0287\\_%'`)
  let running: Promise<string[]> | undefined
  await db.tx(async (tx) => {
    // The request would be the one that a deadlock ends.
    await tx.run(sql`set local deadlock_timeout = '10ms'`)
    await tx.many(z.object({}), sql`select id from vaults for update`)
    running = migrate({ url })
    const isWaiting = sql`select count(*) > 0 as is from pg_locks where relation = 'vaults'::regclass and not granted`
    const seesIt = async () => (await db.one(z.object({ is: z.boolean() }), isWaiting)).is
    await expect.poll(seesIt, { timeout: 20_000, interval: 5 }).toBe(true)
    await tx.run(sql`delete from vault_events`)
    await tx.run(sql`delete from vault_documents`)
  })
  expect(await running).toEqual(['0287_contents_of_deleted_vaults.concurrent.sql'])
  const foreign = sql`select count(*) as count from pg_constraint where contype = 'f' and confrelid = 'vaults'::regclass
    and conrelid in ('vault_events'::regclass, 'vault_documents'::regclass)`
  expect(await db.one(z.object({ count: z.bigint() }), foreign)).toEqual({ count: 0n })
  await drop()
})

test('an index has a name of its own: `if not exists` makes none beside another one of that name', async () => {
  const statement =
    /create (?:unique )?index (?:concurrently )?(?<unless>if not exists )?(?<made>[\w{}]+)\s+on\b|drop index (?:concurrently )?(?:if exists )?(?<gone>\w+)/g
  const known = new Set<string>()
  const skipped: string[] = []
  for (const { name, text } of await listMigrations())
    for (const { groups: { unless, made, gone } = {} } of text.replaceAll(/--.*/g, '').matchAll(statement)) {
      if (unless !== undefined && made !== undefined && known.has(made)) skipped.push(`${made} of ${name}`)
      if (made !== undefined) known.add(made)
      if (gone !== undefined) known.delete(gone)
    }
  // Migration 0350 makes that one.
  expect(skipped).toEqual(['wallet_transactions_frozen of 0199_frozen_rows.concurrent.sql'])
})

test('the oldest frozen deposits of a place are read from an index in their order', async () => {
  const { db, drop } = await freshDatabase()
  const plan = await db.tx(async (tx) => {
    await tx.run(sql`set local enable_seqscan = off`)
    await tx.run(sql`set local enable_sort = off`)
    return tx.many(
      z.object({ 'QUERY PLAN': z.string() }),
      sql`explain select id from wallet_transactions where wallet_id = 'w' and network = 'n' and token = 't' and direction = 'in' and frozen_raw_amount > 0
        and block_number < 5 order by block_number, log_index, id limit 5`,
    )
  })
  const text = plan.map((line) => line['QUERY PLAN']).join('\n')
  expect(text).toContain('wallet_transactions_frozen_in_order')
  expect(text).not.toContain('Sort')
  await drop()
})

test('a migration may take longer than the time limit of its role, inside a transaction and outside of one', async () => {
  const database = await freshDatabase()
  try {
    const name = new URL(database.url.replace('@/', '@localhost/')).pathname.slice(1)
    await database.db.run({ text: `alter database ${name} set statement_timeout = '200ms'`, values: [] })
    const slow = ['9998_slow.sql', '9999_slow.concurrent.sql'].map((file) => aMigration(file, 'select pg_sleep(0.6);'))
    const migrations = [...(await listMigrations()), ...slow]
    const names = await migrate({ url: database.url, migrations })
    expect(names).toEqual(slow.map((one) => one.name))
    // A pool of transactions cannot end the limit.
    await expect(migrate({ url: database.url, pooler: 'transaction', migrations })).rejects.toThrow(
      'DATABASE_DIRECT_URL',
    )
  } finally {
    await database.drop()
  }
})

test('a transaction that takes any time is not cut at the limit of the other statements', async () => {
  const database = await freshDatabase()
  const limits = { statementTimeoutMs: 300, silentMsMax: 100 }
  const db = openDb({ url: database.url, connectionsMax: 1, log: createLog({ level: 'silent' }), ...limits })
  try {
    const sleep = sql`select pg_sleep(3)`
    await db.tx((tx) => tx.run(sleep), { takesAnyTime: true })
    await expect(db.tx((tx) => tx.run(sleep))).rejects.toThrow()
    await expect(db.run(sleep)).rejects.toThrow()
  } finally {
    await db.close()
    await database.drop()
  }
})
