import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { lockRedeemable, markDelivered } from '../src/features/payments/delivery/store.ts'
import { lockRefundable } from '../src/features/payments/refunds/store.ts'
import { lockBuying } from '../src/features/payments/session-store.ts'
import { isAnyToCheck, listToCheck, markHashes, markingSettling } from '../src/features/payments/settlement-store.ts'
import { findPayment, listNamedPayments } from '../src/features/payments/store.ts'
import { sql, type Tx } from '../src/platform/db/db.ts'
import { firstIdAt } from '../src/platform/db/page.ts'
import { keepPartitions } from '../src/platform/db/partitions.ts'
import type { Tenant } from '../src/platform/tenant.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { rowsRead } from './rows-read.ts'

let database: TestDatabase

const tenant: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'test' }
const count = 5_000
const now = new Date()
const idAt = (n: number) => firstIdAt('pay', now.getTime() - n * 10) as `pay_${string}`

// One connection, so that it keeps the plans that it made while the month was empty.
beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 1 })
  await keepPartitions(database.db, now)
})
afterAll(() => database.drop())

/** As the loop that checks payments reads them. */
const inOrder = { readsInOrder: true }
const some = [idAt(1), idAt(2)]
const named = some.map((paymentId) => ({ tenant, paymentId }))
const statements: readonly (readonly [name: string, work: (tx: Tx) => Promise<unknown>])[] = [
  ['a payment', (tx) => findPayment(tx, tenant, idAt(1))],
  ['payments', (tx) => listNamedPayments(tx, named)],
  ['settling', (tx) => tx.run(markingSettling(some, now))],
  ['hashes', (tx) => markHashes(tx, [{ paymentId: idAt(1), hash: '0x1' }])],
  ['deliveries', (tx) => markDelivered(tx, tenant, some, now)],
  ['a session', (tx) => lockBuying(tx, tenant, idAt(1))],
  ['those to check', (tx) => listToCheck(tx, 'base', { now, most: 5, cursors: new Map() })],
  [
    'whether any is to check',
    (tx) => tx.many(z.looseObject({}), sql`select 1 as one where ${isAnyToCheck(['base'], now)}`),
  ],
  ['a redemption', (tx) => lockRedeemable(tx, tenant, { id: idAt(1) })],
  ['a redemption by claim', (tx) => lockRedeemable(tx, tenant, { claimKeys: [`claim ${idAt(1)}`] })],
  ['a refund', (tx) => lockRefundable(tx, tenant, idAt(1))],
]

test('a payment is found by its id alone, with plans from an empty month, however many the tenant has', async () => {
  for (const [, work] of statements) for (let run = 0; run < 7; run += 1) await database.db.tx(work, inOrder)
  const ids = Array.from({ length: count }, (_, n) => idAt(n))
  await database.db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, door, scheme, claim_key, chain, network, token, asset, decimals,
      raw_amount, payer, pay_to, status, check_at, created_at)
    select id, 'plog_' || substr(id, 5), ${tenant.organisationId}, 'test', 'key_01h455vb4pex5vsknk084sn02q', 'x402', 'verify', 'exact', 'claim ' || id, 'base', 'base', 'USDC', '0x0', 6, 1, '0x1', '0x2',
      case when n % 2 = 0 then 'verified' else 'settling' end, ${now}::timestamptz - n * interval '1 millisecond', ${now} from unnest(${ids}::text[]) with ordinality as given (id, n)`)
  const rowsOf: [string, bigint][] = []
  for (const [name, work] of statements) {
    const rows = await database.db.tx(async (tx) => {
      const before = await rowsRead(tx, '^payments')
      // Only the rows read matter, so the rows need not be complete payments.
      await work(tx).catch(() => undefined)
      return (await rowsRead(tx, '^payments')) - before
    }, inOrder)
    rowsOf.push([name, rows])
  }
  expect(rowsOf.filter(([, rows]) => rows >= 40n)).toEqual([])
}, 60_000)
