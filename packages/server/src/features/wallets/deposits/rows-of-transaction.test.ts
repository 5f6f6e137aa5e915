import { networkByName } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { fillTable } from '../../../../test/fill-table.ts'
import { readBy } from '../../../../test/rows-read.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { Queryable, Tx } from '../../../platform/db/db.ts'
import { listKnownRows, listTransactionsOf, lockRowsOf } from './transaction-store.ts'

const network = networkByName('base')?.name ?? 'base'
const txHash = `0x${'a'.repeat(64)}`
const tenant: Tenant = { organisationId: 'org_2', environment: 'test' }

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
  // Two rows are of the tenant. Others have rows of it, and few rows of each of many other transactions.
  const rows = {
    id: `'wtx_' || n`,
    network: `'base'`,
    tx_hash: `case when n <= 6002 then '${txHash}' else 'hash' || n / 10 end`,
    organisation_id: `case when n in (7, 5000) then 'org_2' else 'org_' || 10 + n % 40 end`,
    wallet_id: `'byw_' || n`,
    log_index: 'n',
    direction: `'in'`,
    status: `'confirmed'`,
    raw_amount: '1',
  }
  await fillTable(database.db, 'wallet_transactions', rows, { last: 12_000 })
})
afterAll(() => database?.drop())

const lookUps: readonly (readonly [name: string, read: (db: Queryable) => Promise<unknown>])[] = [
  ['the rows that are shown', (db) => listTransactionsOf(db, tenant, { network, txHash, limit: 100 })],
  ['the rows that a rescan knows', (db) => listKnownRows(db, network, txHash, tenant.organisationId)],
  ['the rows that a booking locks', (db) => lockRowsOf(db as Tx, network, [txHash], [tenant.organisationId])],
]

test.each(['force_generic_plan', 'force_custom_plan'] as const)(
  'the rows of a transaction are found without the 6,000 that others have of it (%s)',
  async (mode) => {
    for (const [name, read] of lookUps) {
      const { rows: found, scanned } = await readBy(database.db, read, mode)
      expect([name, found]).toEqual([name, 2])
      expect(Number(scanned), name).toBeLessThan(20)
    }
  },
)
