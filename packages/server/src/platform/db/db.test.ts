import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { type Db, isRefusedData, sql } from './db.ts'
import type { LastWrite } from './last-writes.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

test('values never become SQL, and nested fragments keep their parameters in order', async () => {
  const evil = "'; drop table jobs; --"
  const inner = sql`select ${evil}::text as a, ${2}::int as b`
  const row = await database.db.one(
    z.object({ a: z.string(), b: z.number(), cValue: z.string() }),
    sql`select t.a, t.b, ${'third'}::text as c_value from (${inner}) t`,
  )
  expect(row).toEqual({ a: evil, b: 2, cValue: 'third' })
})

test('a transaction that throws leaves no changes and does not run its work for after the commit', async () => {
  let followed = false
  const attempt = database.db.tx(async (tx) => {
    await tx.run(sql`insert into audit_heads (organisation_id, sequence, hash) values ('org_x', 0, '')`)
    tx.afterCommit(() => {
      followed = true
    })
    throw new Error('no')
  })
  await expect(attempt).rejects.toThrow('no')
  const rows = await database.db.many(
    z.object({ sequence: z.bigint() }),
    sql`select sequence from audit_heads where organisation_id = 'org_x'`,
  )
  expect(rows).toEqual([])
  expect(followed).toBe(false)
})

test('of statements that are sent together, the error of the first that failed is that of their transaction', async () => {
  const failed = database.db.tx(async (tx) => {
    const first = tx.run(sql`select 1 / 0`)
    const behind = tx.run(sql`select 1`)
    // What waits for the first one learns of its error later than what waits for the one behind.
    const late = first.then().then().then().then()
    await Promise.all([late, behind])
  })
  await expect(failed).rejects.toThrow('division by zero')
})

const insertHead = (organisationId: string) =>
  sql`insert into audit_heads (organisation_id, sequence, hash) values (${organisationId}, 0, '')`

/** Runs a transaction whose last write is this statement. */
const endWith = (db: Db, organisationId: string, last: ReturnType<typeof sql>) =>
  db.tx(async (tx) => {
    await tx.run(insertHead(organisationId))
    const write: LastWrite<null> = { rank: 1, prepare: async () => last }
    tx.writeLast(write, [null])
  })

const hasHead = async (organisationId: string): Promise<boolean> =>
  (await database.db.run(sql`select 1 from audit_heads where organisation_id = ${organisationId}`)) === 1

test('a last write that the database refuses rolls the transaction back, although its commit was sent with it', async () => {
  await expect(endWith(database.db, 'org_refused', insertHead('org_refused'))).rejects.toThrow('duplicate key')
  expect(await hasHead('org_refused')).toBe(false)
  await endWith(database.db, 'org_accepted', insertHead('org_other'))
  expect([await hasHead('org_accepted'), await hasHead('org_other')]).toEqual([true, true])
})

test('a last write that the driver cannot encode rolls the transaction back', async () => {
  const circular: { self?: unknown } = {}
  circular.self = circular
  await expect(endWith(database.db, 'org_circular', sql`select ${circular}::jsonb`)).rejects.toThrow('circular')
  expect(await hasHead('org_circular')).toBe(false)
})

test('a transaction of a last write alone commits, and one without a statement does nothing', async () => {
  const write: LastWrite<null> = { rank: 1, prepare: async () => insertHead('org_alone') }
  await database.db.tx(async (tx) => tx.writeLast(write, [null]))
  expect(await hasHead('org_alone')).toBe(true)
  expect(await database.db.tx(async () => 'nothing')).toBe('nothing')
})

test('a statement that fails as the first of its transaction leaves the connection usable', async () => {
  const alone = await freshDatabase({ connectionsMax: 1 })
  await expect(alone.db.tx((tx) => tx.run(sql`select 1 / ${0}::int`))).rejects.toThrow('division by zero')
  expect(await alone.db.tx((tx) => tx.one(z.object({ n: z.number() }), sql`select 1 as n`))).toEqual({ n: 1 })
  await alone.drop()
})

test('statements that are sent together run in order, and the error of the first is the one that is thrown', async () => {
  const pair = database.db.tx(async (tx) => {
    await Promise.all([tx.run(sql`select 1 / ${0}::int`), tx.run(insertHead('org_pair'))])
  })
  await expect(pair).rejects.toThrow('division by zero')
  expect(await hasHead('org_pair')).toBe(false)
})

test('statements that read by keys have one plan for lists of every length, which reads an index of a small table', async () => {
  await database.db.run(sql`create table keyed (id integer primary key)`)
  await database.db.run(sql`insert into keyed select generate_series(1, 20)`)
  const keyed = (ids: readonly number[]) =>
    sql`select id from keyed where id in (select * from unnest(${ids}::integer[]))`
  const Plans = z.object({ custom: z.bigint(), generic: z.bigint() })
  const plans = sql`select custom_plans as custom, generic_plans as generic from pg_prepared_statements where statement like '%from keyed where id in%'
    and statement not like '%pg_prepared%'`
  const Scans = z.object({ whole: z.bigint() })
  const scans = sql`select seq_scan as whole from pg_stat_xact_user_tables where relname = 'keyed'`
  const read = await database.db.tx(
    async (tx) => {
      const before = await tx.one(Scans, scans)
      for (let count = 1; count <= 8; count++)
        await tx.many(z.object({ id: z.number() }), keyed(Array.from({ length: count }, (_, place) => place + 1)))
      return { plans: await tx.one(Plans, plans), whole: (await tx.one(Scans, scans)).whole - before.whole }
    },
    { readsByKeys: true },
  )
  expect(read).toEqual({ plans: { custom: 0n, generic: 8n }, whole: 0n })
})

test.each([
  [
    'a value too long for an index',
    sql`insert into given select string_agg(md5(n::text), '') from generate_series(1, 300) as n`,
    true,
  ],
  ['a value that is no number', sql`insert into given select ('x' || md5('1'))::int::text`, true],
  ['a column that does not exist', sql`insert into given (other) values (1)`, true],
  ['a statement that ran too long', sql`insert into given select pg_sleep(10)::text`, false],
] as const)('%s may be the fault of one row', async (_, statement, isOfRow) => {
  const attempt = database.db.tx(async (tx) => {
    await tx.run(sql`create temporary table given (value text primary key) on commit drop`)
    await tx.run(sql`set local statement_timeout = 200`)
    await tx.run(statement)
  })
  expect(isRefusedData(await attempt.catch((error: unknown) => error))).toBe(isOfRow)
})
