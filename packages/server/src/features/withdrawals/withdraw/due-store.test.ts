import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { fillTable } from '../../../../test/fill-table.ts'
import { rowsRead } from '../../../../test/rows-read.ts'
import { sql } from '../../../platform/db/db.ts'
import { type DueRow, listDue } from './due-store.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const busy = 12_000
const others = 300
const last = busy + others + 3
const idOf = (prefix: string, n: number): string => `${prefix}_${String(n).padStart(26, '0')}`

/** The list, and how many rows of withdrawals it reads. */
function listed(starts: Map<string, string>, now = new Date()): Promise<{ rows: DueRow[]; read: bigint }> {
  return database.db.tx(
    async (tx) => {
      const before = await rowsRead(tx, '^withdrawals$')
      return { rows: await listDue(tx, now, starts), read: (await rowsRead(tx, '^withdrawals$')) - before }
    },
    { readsInOrder: true },
  )
}

test('12,000 due withdrawals of one organisation hide none of others and of other sources, and the list reads by index', async () => {
  const { db } = database
  const [sent, onOther, later] = [busy + others + 1, busy + others + 2, last]
  const withdrawals = {
    id: `'wdr_' || lpad(n::text, 26, '0')`,
    organisation_id: `'org_' || lpad(case when n <= ${busy} then '0' else n::text end, 26, '0')`,
    environment: `case when n = ${sent} then 'live' else 'test' end`,
    network: `case when n = ${onOther} then 'polygon-amoy' else 'base-sepolia' end`,
    partner: `'bridge'`,
    transfer_id: `case when n = ${sent} then 'wtx_1' end`,
    next_look_at: `case when n = ${later} then now() + interval '1 day' else now() - interval '1 day' + n * interval '1 second' end`,
  }
  await fillTable(db, 'withdrawals', withdrawals, { last })

  const starts = new Map<string, string>()
  const first = await listed(starts)
  const sources = Object.fromEntries(
    [...Map.groupBy(first.rows, ({ source }) => source)].map(([source, rows]) => [source, rows.length]),
  )
  expect(sources).toEqual({ 'step base-sepolia': 200, 'step polygon-amoy': 1, 'status bridge live': 1 })
  expect(new Set(first.rows.map(({ organisationId }) => organisationId)).size).toBe(202)
  expect(first.rows.find(({ source }) => source === 'status bridge live')?.environment).toBe('live')
  // The next list goes on behind the organisations of the first.
  const second = await listed(starts)
  const reached = new Set([...first.rows, ...second.rows].map(({ organisationId }) => organisationId))
  expect(reached.size).toBe(1 + others + 2)
  expect(reached).not.toContain(idOf('org', later))
  for (const { read } of [first, second]) expect(Number(read)).toBeLessThan(2_500)

  await db.run(sql`update withdrawals set next_look_at = now() + interval '1 day' where next_look_at is not null`)
  await db.run({ text: 'vacuum (analyze) withdrawals', values: [] })
  const idle = await listed(starts)
  expect(idle.rows).toEqual([])
  expect(Number(idle.read)).toBeLessThan(50)
}, 60_000)
