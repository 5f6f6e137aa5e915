import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { lockFreeVaults, lockVault } from './store.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(sql`
    insert into organisations (id, name, type, plan, created_at) values (${tenant.organisationId}, 'Acme', 'team', 'enterprise', now())`)
  await database.db.run(sql`
    insert into vaults (id, organisation_id, environment, metadata, expires_at, event_hash, event_at, counted_as, created_at)
    values (${vaultId}, ${tenant.organisationId}, 'test', '{}', now() + interval '1 day', '', now(), 'active', now())`)
})
afterAll(() => database?.drop())

const tenant: Tenant = { organisationId: id('org').parse(`org_${'1'.repeat(26)}`), environment: 'test' }
const vaultId = id('vlt').parse(`vlt_${'0'.repeat(26)}`)

const Locks = z.object({ number: z.bigint() })

/** The numbers of the advisory locks that this work takes. */
async function locksOf(work: (tx: Tx) => Promise<unknown>): Promise<bigint[]> {
  const rows = await database.db.tx(async (tx) => {
    await work(tx)
    return tx.many(
      Locks,
      sql`
      select (classid::bigint << 32) | objid::bigint as number from pg_locks
      where locktype = 'advisory' and pid = pg_backend_pid()`,
    )
  })
  return rows.map(({ number }) => number)
}

test('both ways to lock a vault take one lock, whose number does not follow from the id in the path by the hash of PostgreSQL', async () => {
  const one = await locksOf((tx) => lockVault(tx, tenant, vaultId))
  const free = await locksOf((tx) => lockFreeVaults(tx, tenant, [vaultId]))
  expect(one).toHaveLength(1)
  expect(free).toEqual(one)
  const name = `vault:${tenant.organisationId}/${tenant.environment}/${vaultId}`
  const { number } = await database.db.one(Locks, sql`select hashtextextended(${name}, 0) as number`)
  expect(one).not.toContain(number)
})
