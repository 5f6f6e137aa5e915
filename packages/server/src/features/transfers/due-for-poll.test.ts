import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { fillTable } from '../../../test/fill-table.ts'
import { rowsRead } from '../../../test/rows-read.ts'
import { sql, type Tx } from '../../platform/db/db.ts'
import { isAnyDueForPoll, listDueForPoll } from './partner-store.ts'
import { listToRevoke } from './refill-store.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const hung = 12_000
const [other, beginning, later] = [hung + 1, hung + 2, hung + 3]

const Listed = z.object({ id: z.string(), partner: z.string(), organisationId: z.string(), hasStep: z.boolean() })
type Listed = z.output<typeof Listed>

/** The rows of the list, which its last statement returns. Only some of their columns are filled. */
function listed(tx: Tx): Promise<Listed[]> {
  return rowsOf(tx, Listed, (reading) => listDueForPoll(reading, { now: new Date(), cursors: new Map() }))
}

async function rowsOf<T>(tx: Tx, wanted: z.ZodType<T>, list: (reading: Tx) => Promise<unknown>): Promise<T[]> {
  let rows: readonly unknown[] = []
  const reading: Tx = {
    ...tx,
    many: async (row, statement) => {
      rows = await tx.many(z.looseObject({}), statement)
      return z.array(row).safeParse(rows).data ?? []
    },
  }
  await list(reading)
  return z.array(wanted).parse(rows)
}

test('a transfer without a partner, which no list has, is not due for a poll', async () => {
  const { db } = database
  const isDue = async () =>
    (await db.one(z.object({ isDue: z.boolean() }), sql`select ${isAnyDueForPoll(new Date())} as is_due`)).isDue
  const due = {
    organisation_id: `'alone'`,
    from_network: `'base'`,
    look_at: `now() - interval '1 day'`,
    id: `'wtx_alone'`,
  }
  await fillTable(db, 'transfers', due, { last: 1 })
  expect(await isDue()).toBe(false)
  await db.run(sql`update transfers set partner = 'relay' where id = 'wtx_alone'`)
  expect(await isDue()).toBe(true)
  await db.run(sql`delete from transfers`)
})

test('600 organisations with 20 due transfers each at a partner that does not answer hide no transfer of another partner, and no step', async () => {
  const { db } = database
  const transfers = {
    organisation_id: `case when n <= ${hung} then 'org_' || n % 600 else 'last' end`,
    partner: `case when n = ${other} then 'lifi' else 'relay' end`,
    from_network: `'base'`,
    look_at: `case when n = ${later} then now() + interval '1 day' else now() - interval '1 day' + n * interval '1 second' end`,
    left_at: `case when n = ${beginning} then null else now() end`,
    id: `'wtx_' || n`,
  }
  await fillTable(db, 'transfers', transfers, { last: later })
  const steps = { transfer_id: `'wtx_${beginning}'`, transaction_id: 'null' }
  await fillTable(db, 'transfer_steps', steps, { last: 1 })
  const { rows, read } = await db.tx(
    async (tx) => {
      const before = await rowsRead(tx, '^transfers$')
      return { rows: await listed(tx), read: (await rowsRead(tx, '^transfers$')) - before }
    },
    { readsInOrder: true },
  )
  const own = rows.filter(({ organisationId }) => organisationId === 'last')
  expect(own.map(({ id, hasStep }) => [id, hasStep]).sort()).toEqual([
    [`wtx_${other}`, false],
    [`wtx_${beginning}`, true],
  ])
  const waiting = rows.filter(({ organisationId }) => organisationId !== 'last')
  expect(waiting).toHaveLength(100)
  expect(new Set(waiting.map(({ organisationId }) => organisationId)).size).toBe(100)
  expect(Number(read)).toBeLessThan(1_500)
}, 60_000)

test('approvals of one organisation that stay in place hide none of another, and few rows are read', async () => {
  const { db } = database
  await db.run(sql`delete from transfer_steps`)
  await db.run(sql`delete from transfers`)
  const left = 3_000
  const transfers = {
    organisation_id: `case when n <= ${left} then 'many' else 'one' end`,
    from_network: `'base'`,
    revoke_at: `now() - interval '1 day' + n * interval '1 second'`,
    id: `'wtx_' || n`,
  }
  await fillTable(db, 'transfers', transfers, { last: left + 1 })
  const cursors = new Map()
  const { rows, read } = await db.tx(
    async (tx) => {
      const before = await rowsRead(tx, '^transfers$')
      const rows = await rowsOf(tx, Revocable, (on) => listToRevoke(on, 'base', { now: new Date(), cursors }))
      return { rows, read: (await rowsRead(tx, '^transfers$')) - before }
    },
    { readsInOrder: true },
  )
  expect(rows).toHaveLength(100)
  expect(rows.filter(({ organisationId }) => organisationId === 'one').map(({ id }) => id)).toEqual([`wtx_${left + 1}`])
  expect(Number(read)).toBeLessThan(1_000)
}, 60_000)

const Revocable = z.object({ id: z.string(), organisationId: z.string() })
