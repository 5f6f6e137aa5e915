import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { defineIdAt, readsCounted } from '../../../../test/rows-read.ts'
import { type Db, sql } from '../../../platform/db/db.ts'
import { findStart } from './store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

const tenant = { organisationId: 'org_1', environment: 'test' } as const

test('a stream from an instant reads the events of a minute before it, and not all that the tenant has', async () => {
  const { db } = database
  const [count, start] = [20_000, Date.parse('2026-03-01T00:00:00Z')]
  await defineIdAt(db)
  // An event each ten seconds, a hundred in each transaction.
  await db.run(sql`
    insert into events (id, organisation_id, environment, type, payload, created_at, written_by)
    select id_at('evt', ${start}::bigint + n * 10000), ${tenant.organisationId}, ${tenant.environment}, 'vault.sealed', '{}',
      ${new Date(start)}::timestamptz + n * interval '10 seconds', (3 + n / 100)::text::xid8
    from generate_series(0, ${count - 1}) as n`)
  const { db: inTransactions, rows } = readsCounted(db, '^events')
  const counted: Db = {
    ...inTransactions,
    maybeOne: (row, statement) => inTransactions.tx((tx) => tx.maybeOne(row, statement)),
  }
  const reads: number[] = []
  const places: unknown[] = []
  for (const n of [-1, 100, 10_000, 19_990, 20_100]) {
    const before = rows()
    const position = await findStart(counted, tenant, new Date(start + n * 10_000 + 5_000))
    places.push(position?.writtenBy)
    reads.push(Number(rows() - before))
  }
  expect(places).toEqual([undefined, '3', '102', '201', '202'])
  expect(Math.max(...reads)).toBeLessThan(500)
})

test('a new tenant’s first event is in the stream although a later transaction wrote one with a lesser id', async () => {
  const { db } = database
  const since = new Date('2026-04-01T00:00:00Z')
  await db.run(sql`
    insert into events (id, organisation_id, environment, type, payload, created_at, written_by)
    select id_at('evt', ${since.getTime() + 1_000}::bigint - n), 'org_2', 'test', 'vault.sealed', '{}', ${since}::timestamptz + interval '1 second',
      (3 + n)::text::xid8
    from generate_series(0, 1) as n`)
  expect(await findStart(db, { organisationId: 'org_2', environment: 'test' }, since)).toBeUndefined()
})
