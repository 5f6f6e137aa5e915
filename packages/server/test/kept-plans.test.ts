import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { listAttempts, listOpen, listOpenSenders, listUnsent } from '../src/chain/lanes/store.ts'
import { readUnderWay, sumReserved } from '../src/features/funds/store.ts'
import { listDue } from '../src/features/relayer/queue-store.ts'
import { listWaiting } from '../src/features/relayer/store.ts'
import { listDecided } from '../src/features/transfers/store.ts'
import { amountsOnHold } from '../src/features/wallets/screening/deposit-store.ts'
import { listSubscribers, lockFreeQueues } from '../src/features/webhooks/delivery/fan-out-store.ts'
import { listEndpoints, storeOutcomes } from '../src/features/webhooks/delivery/queue-store.ts'
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
      await genericPlansOf(tx, '%as wei, statement_timestamp() as read_at%'),
      await genericPlansOf(tx, '%as not_final, tips.is_booked%'),
    ]
  })
  // PostgreSQL plans a statement for its values five times before it compares.
  expect(plans).toEqual([7n, 7n])
})

/** Runs of a statement with these many elements in each of its lists. */
const counts = Array.from({ length: 12 }, (_, turn) => 1 + (turn % 3))

const now = new Date()
const leased = {
  scope: 'lanes/base',
  ownerToken: 'a',
  leaseMs: 1,
  leases: [{ scope: 'lanes/base', shard: 1, epoch: 1n }],
}
const attempt = {
  deliveryId: 'del_1',
  webhookId: 'wh_1',
  attempt: 1,
  isSuccess: true,
  responseStatus: 200,
  responseBody: null,
  durationMs: 1,
  error: null,
  nextAttemptAt: null,
  createdAt: now,
  stepAfter: 1,
} as const

/** Statements that requests and loops repeat, given how many elements each of their lists has. */
const repeated: Readonly<Record<string, (tx: Tx, some: readonly number[]) => Promise<unknown>>> = {
  'open transactions': (tx, some) =>
    listOpen(
      tx,
      'base',
      some.map(() => owner),
    ),
  'unsent transactions': (tx, some) =>
    listUnsent(
      tx,
      'base',
      some.map(() => owner),
      64,
    ),
  'open senders': (tx) => listOpenSenders(tx, 'base', leased),
  attempts: (tx, some) =>
    listAttempts(
      tx,
      some.map((n) => `ctx_${n}` as const),
    ),
  'due relays': (tx) => listDue(tx, ['base']),
  'waiting relays': (tx, some) => listWaiting(tx, some.map(BigInt)),
  'decided transfers': (tx, some) =>
    listDecided(
      tx,
      some.map((n) => `wtx_${n}` as const),
    ),
  'amounts under way': (tx, some) =>
    readUnderWay(
      tx,
      'base',
      some.map((n) => ({ owner: `0x${n}`, asset: 'USDC' })),
    ),
  endpoints: (tx, some) =>
    listEndpoints(
      tx,
      { name: 'a', now },
      some.map((n) => `wh_${n}` as const),
    ),
  'free queues': (tx, some) =>
    lockFreeQueues(
      tx,
      some.map((n) => `wh_${n}` as const),
    ),
  'subscribers of postponed events': (tx, some) =>
    listSubscribers(tx, tenant, new Map(some.map((n) => [`payment.${n}`, 'wh_1'])), 10),
  outcomes: (tx, some) => {
    const attempts = some.map((n) => ({ ...attempt, id: `att_${n}` }))
    return storeOutcomes(tx, { attempts, failing: [], healthy: some.map((n) => `wh_${n}` as const), now })
  },
}

test.each(Object.entries(repeated))(
  '%s are read with a plan that is kept, whatever the length of a list',
  async (_, work) => {
    const plannedAgain = await database.db.tx(async (tx) => {
      for (const count of counts)
        await work(
          tx,
          Array.from({ length: count }, (_, n) => n + 1),
        )
      return tx.many(
        z.object({ statement: z.string(), customPlans: z.bigint() }),
        sql`select statement, custom_plans from pg_prepared_statements where custom_plans > 5 and name <> ''`,
      )
    })
    expect(plannedAgain).toEqual([])
  },
)
