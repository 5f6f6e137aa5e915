import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ExhaustedQuota, listEvictable } from '../src/features/payments/eviction-store.ts'
import { listUnmined } from '../src/features/payments/monthly-count-store.ts'
import { type Db, sql } from '../src/platform/db/db.ts'
import { keepPartitions } from '../src/platform/db/partitions.ts'
import type { Tenant } from '../src/platform/tenant.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { defineIdAt, readsCounted } from './rows-read.ts'

const tenant: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'test' }
/** Noon, so that all rows are of one day. */
const now = new Date(new Date().setUTCHours(12, 0, 0, 0))
/** Rows of each kind. */
const rows = 4_000
let database: TestDatabase

// One connection, so that it keeps the plans that it made while the month was empty.
beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 1 })
  const { db } = database
  await keepPartitions(db, now)
  await defineIdAt(db)
  await db.run(sql`
    insert into organisations (id, name, type, plan, created_at) values (${tenant.organisationId}, 'Acme', 'team', 'pro', now())`)
})
afterAll(() => database?.drop())

const lackings: readonly ExhaustedQuota[] = ['plan-limit', 'gas-budget']
const payment = { network: 'base', createdAt: now }
const pull = { network: 'tempo', createdAt: now }

function listAll(db: Db) {
  return Promise.all(
    lackings.flatMap((exhausted) => [
      listEvictable(db, tenant, payment, { exhausted, until: now, most: 20 }),
      listUnmined(db, tenant, pull, { exhausted, until: now, most: 20 }),
    ]),
  )
}

test('evictable payments are found by an index, however many payments are open or watched, with plans from an empty month', async () => {
  for (let run = 0; run < 7; run += 1) await listAll(database.db)
  await database.db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, door, scheme, claim_key, chain, network, token, asset, decimals,
      raw_amount, payer, pay_to, status, gas_reserved_nano_usd, check_at, valid_before, created_at)
    select id_at('pay', ${now.getTime()}::bigint - n * 2), id_at('plog', ${now.getTime()}::bigint - n * 2), ${tenant.organisationId}, 'test', 'key_01h455vb4pex5vsknk084sn02q', 'x402',
      'verify', 'exact', 'claim ' || n, 'base', 'base', 'USDC', '0x0', 6, 1, '0x1', '0x2', case when n % 2 = 0 then 'verified' else 'voided' end, n % 2,
      ${now}::timestamptz + interval '1 hour', ${now}::timestamptz + interval '1 hour', ${now}::timestamptz - n * interval '2 milliseconds'
    from generate_series(1, ${2 * rows}) as n`)
  await database.db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, door, scheme, claim_key, chain, network, token, asset, decimals,
      raw_amount, payer, pay_to, status, tx_hash, has_place, gas_reserved_nano_usd, check_at, valid_before, created_at)
    select id_at('pay', ${now.getTime()}::bigint - n * 2 - 1), id_at('plog', ${now.getTime()}::bigint - n * 2 - 1), ${tenant.organisationId}, 'test', 'key_01h455vb4pex5vsknk084sn02q', 'mpp',
      'verify', 'exact', 'pull ' || n, 'tempo', 'tempo', 'USDC', '0x0', 6, 1, '0x1', '0x2', 'settling', '0x' || n, n % 2 = 0, 7,
      ${now}::timestamptz + interval '1 hour', ${now}::timestamptz + interval '1 hour', ${now}::timestamptz - n * interval '2 milliseconds'
    from generate_series(1, ${2 * rows}) as n`)
  await database.db.run(sql`update payments set gas_reserved_nano_usd = 7 where status = 'verified'`)
  const { db, rows: read } = readsCounted(database.db, '^payments')
  const found = await listAll(db)
  expect(found.map((list) => list.length)).toEqual([20, 20, 20, 20])
  expect(read()).toBeLessThan(200n)
})
