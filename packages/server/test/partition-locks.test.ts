import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import { listPartitions, partitionedTables, plain } from '../src/platform/db/partitions.ts'
import { freshDatabase } from './database.ts'
import { addPastMonths } from './past-months.ts'

const conf = readFileSync(new URL('../../../deploy/postgres/postgresql.conf', import.meta.url), 'utf8')
const guide = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
const locksMax = Number(/^max_locks_per_transaction = (\d+)$/m.exec(conf)?.[1])

test('PostgreSQL has locks enough for every connection to plan a statement over 60 months at once', async () => {
  const { db, drop } = await freshDatabase()
  // A new database has two or three partitions, which depends on the day of the month.
  const made = (await Promise.all(partitionedTables.map((one) => listPartitions(db, one)))).map(({ length }) => length)
  await addPastMonths(db, new Date(), 62 - Math.max(...made))
  for (const { table } of partitionedTables) {
    const locks = await db.tx(async (tx) => {
      await tx.run(plain(`explain select * from ${table} order by id limit 1`))
      const own = sql`select count(*) as count from pg_locks where pid = pg_backend_pid()`
      return (await tx.one(z.object({ count: z.bigint() }), own)).count
    })
    expect(Number(locks), table).toBeLessThan(locksMax)
    if (table === 'payments')
      expect(guide).toContain(`${(Math.round(Number(locks) / 10) * 10).toLocaleString('en-US')} locks`)
  }
  expect(guide).toContain(`max_locks_per_transaction = ${locksMax}`)
  await drop()
}, 60_000)
