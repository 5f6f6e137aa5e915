import { afterAll, beforeAll, expect, test } from 'vitest'
import { findUse } from '../src/archive/use-store.ts'
import { sql } from '../src/platform/db/db.ts'
import { keepPartitions, listPartitions } from '../src/platform/db/partitions.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { fillTable } from './fill-table.ts'
import { rowsRead } from './rows-read.ts'

let database: TestDatabase

const now = new Date()
const sessions = 5_000

beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 1 })
  await keepPartitions(database.db, now)
  // They ended a day ago, one a second.
  await fillTable(
    database.db,
    'sessions',
    {
      id: `'sess_' || n`,
      payment_id: `'pay_' || lpad(n::text, 26, '0')`,
      expires_at: `now() - interval '1 day' - n * interval '1 second'`,
    },
    { last: sessions },
  )
})
afterAll(() => database.drop())

test('whether a month of payments is in use is answered from its open sessions, however many have ended', async () => {
  const { db } = database
  const [first] = await listPartitions(db, { table: 'payments' })
  if (first === undefined) throw new Error('payments have no partition')
  const month = { ...first, from: 'pay_' }
  const use = () =>
    db.tx(async (tx) => {
      const before = await rowsRead(tx, '^sessions$')
      const found = await findUse(tx, { table: 'payments' }, month)
      return { found, rows: (await rowsRead(tx, '^sessions$')) - before }
    })
  const ended = await use()
  expect(ended.found).not.toBe('a session is open')
  expect(ended.rows).toBeLessThan(10n)
  await db.run(sql`update sessions set expires_at = now() + interval '1 hour' where id = 'sess_7'`)
  expect((await use()).found).toBe('a session is open')
})

test('whether a month of events is in use is answered from its pending deliveries, however many have ended', async () => {
  const { db } = database
  const [first] = await listPartitions(db, { table: 'events' })
  if (first === undefined) throw new Error('events have no partition')
  const month = { ...first, from: 'evt_', until: 'evt_z' }
  const delivery = (status: string) => ({
    id: `'del_' || lpad(n::text, 26, '0')`,
    event_id: `'evt_' || lpad(n::text, 26, '0')`,
    status: `'${status}'`,
  })
  await fillTable(db, 'webhook_deliveries', delivery('succeeded'), { last: 20_000 })
  const use = () =>
    db.tx(async (tx) => {
      const before = await rowsRead(tx, '^webhook_deliveries')
      const found = await findUse(tx, { table: 'events' }, month)
      return { found, rows: (await rowsRead(tx, '^webhook_deliveries')) - before }
    })
  const ended = await use()
  expect(ended.found).toBeUndefined()
  expect(ended.rows).toBeLessThan(10n)
  await fillTable(db, 'webhook_deliveries', delivery('pending'), { first: 20_001, last: 20_001 })
  expect((await use()).found).toBe('a delivery is pending')
})
