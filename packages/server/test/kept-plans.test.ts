import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sumReserved } from '../src/features/funds/store.ts'
import { amountsOnHold } from '../src/features/wallets/screening/deposit-store.ts'
import { sql, type Tx } from '../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from './database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const tenant = { organisationId: 'org_1', environment: 'test' } as const
const owner = `0x${'a'.repeat(40)}` as const
const at = {
  network: 'base-sepolia',
  owner,
  asset: 'USDC',
  block: 1n,
  nonce: 1n,
  used: [7n],
  allowed: [{ seq: 8n, raw: 9n }],
  maxFee: 1n,
  l1Fee: 0n,
} as const
const requested = { tenant, walletId: 'mwt_1', network: 'base-sepolia', token: owner, upTo: 5n } as const

/** Executions with a plan for all values. */
async function genericPlansOf(tx: Tx, pattern: string): Promise<bigint> {
  const { plans } = await tx.one(
    z.object({ plans: z.bigint() }),
    sql`select generic_plans as plans from pg_prepared_statements where statement like ${pattern} and name <> ''`,
  )
  return plans
}

test('the amounts of a wallet are read with a plan that is kept, whether for one place or for three', async () => {
  const plans = await database.db.tx(async (tx) => {
    for (let turn = 0; turn < 12; turn++) {
      const count = 1 + (turn % 3)
      await sumReserved(
        tx,
        Array.from({ length: count }, () => ({ ...at, except: undefined })),
      )
      await amountsOnHold(
        tx,
        Array.from({ length: count }, () => requested),
      )
    }
    return [
      await genericPlansOf(tx, '%sums.wei, statement_timestamp() as read_at%'),
      await genericPlansOf(tx, '%as not_final, tips.is_booked%'),
    ]
  })
  // PostgreSQL plans a statement for its values five times before it compares.
  expect(plans).toEqual([7n, 7n])
})
