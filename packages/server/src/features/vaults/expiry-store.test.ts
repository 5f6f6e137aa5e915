import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { fillTable, statement } from '../../../test/fill-table.ts'
import { sql, type Tx } from '../../platform/db/db.ts'
import { listTenantsWithDueVaults } from './expiry-store.ts'
import type { DueVaultsPlace } from './ports.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const later = `now() + interval '2 days'`
const padded = `lpad(n::text, 26, '0')`

/** Steps in indexes of vaults, and rows of vaults, that the transaction has read: a step may need no row. */
async function readBy(tx: Tx): Promise<number> {
  const { count } = await tx.one(
    z.object({ count: z.bigint() }),
    sql`select (idx_scan + seq_tup_read + idx_tup_fetch)::bigint as count from pg_stat_xact_user_tables where relname = 'vaults'`,
  )
  return Number(count)
}

/** The tenants of one list, and how much it read. */
function listed(place: DueVaultsPlace) {
  return database.db.tx(
    async (tx) => {
      const before = await readBy(tx)
      const tenants = await listTenantsWithDueVaults(tx, new Date(), place)
      const names = tenants.map(({ organisationId, environment }) => `${organisationId}/${environment}`)
      return { names, read: (await readBy(tx)) - before }
    },
    { readsInOrder: true },
  )
}

test('the list of tenants with due vaults reads no others: of 3,000 organisations with vaults those of two', async () => {
  const { db } = database
  const rows = { id: `'vlt_' || n`, organisation_id: `'org_' || ${padded}` }
  const isDue = (at: number, what: string) => `case when n = ${at} then now() - interval '1 hour' else ${what} end`
  const times = { expires_at: isDue(20, later), expiring_due: isDue(2_980, later) }
  const environment = `case when n = 20 then 'live' else 'test' end`
  await fillTable(db, 'vaults', { ...rows, ...times, environment }, { last: 3_000 })
  const { names, read } = await listed({ after: undefined })
  const name = (at: number, of: string) => `org_${String(at).padStart(26, '0')}/${of}`
  expect(names.sort()).toEqual([name(20, 'live'), name(2_980, 'test')])
  expect(read).toBeLessThan(10)

  await db.run(statement('truncate vaults cascade'))
})

test('12,000 due vaults of one organisation hide none of 450 others, and each list reads few', async () => {
  const { db } = database
  const [busy, others] = [12_000, 450]
  const owner = `'org_' || case when n <= ${busy} then lpad('0', 26, '0') else ${padded} end`
  const at = `now() - interval '1 day' + n * interval '1 second'`
  const environment = `case when n % 2 = 0 then 'live' else 'test' end`
  const rows = { id: `'vlt_' || n`, organisation_id: owner, environment }
  await fillTable(db, 'vaults', { ...rows, expires_at: at }, { last: busy + others })
  const place: DueVaultsPlace = { after: undefined }
  const reached = new Set<string>()
  // 200 organisations are visited by each list.
  for (let count = 0; count < 3; count += 1) {
    const { names, read } = await listed(place)
    expect(new Set(names).size).toBe(names.length)
    expect(read).toBeLessThan(1_500)
    for (const name of names) reached.add(name)
  }
  expect(reached.size).toBe(others + 2)
  expect(place.after).toBeUndefined()
})
