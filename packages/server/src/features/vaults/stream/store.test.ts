import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { sql } from '../../../platform/db/db.ts'
import { firstIdAt } from '../../../platform/db/page.ts'
import { id } from '../../../platform/ids.ts'
import { listExpiries } from './store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

const Fetched = z.object({ rows: z.bigint().transform(Number) })

test('the expiries of many swept vaults are found by one reading of the events of their tenant', async () => {
  const now = new Date('2026-06-01T12:00:00Z')
  const tenant = { organisationId: id('org').parse(`org_${'0'.repeat(26)}`), environment: 'test' } as const
  const vaultOf = (n: number) => id('vlt').parse(`vlt_${String(n).padStart(26, '0')}`)
  const prefix = firstIdAt('evt', now.getTime() - 1_000).slice(0, -6)
  await database.db.run(sql`
    insert into events (id, organisation_id, environment, type, payload, created_at)
    select ${prefix} || lpad(n::text, 6, '0'), ${tenant.organisationId}, 'test', 'vault.expired',
      jsonb_build_object('vaultId', 'vlt_' || lpad(n::text, 26, '0'), 'expiredAt', ${now.toISOString()}::text), ${now}
    from generate_series(1, 3000) as n`)
  const gone = Array.from({ length: 300 }, (_, at) => ({ tenant, vaultId: vaultOf(2_851 + at) }))
  const { found, rows } = await database.db.tx(async (tx) => {
    const read = () =>
      tx.one(
        Fetched,
        sql`select coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint as rows from pg_stat_xact_user_tables where relname like 'events%'`,
      )
    const before = await read()
    const found = await listExpiries(tx, gone, now)
    return { found, rows: (await read()).rows - before.rows }
  })
  expect(found.map(({ position }) => position).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 150 }, (_, at) => at + 1),
  )
  expect(new Set(found.map(({ expiredAt }) => expiredAt.getTime()))).toEqual(new Set([now.getTime()]))
  expect(rows).toBeLessThan(10_000)
})
