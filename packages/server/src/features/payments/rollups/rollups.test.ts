import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { newTypeId } from '../../../../../protocol/src/index.ts'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { type Db, type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import type { OrganisationId } from '../../../platform/ids.ts'
import {
  countNextQuarter,
  countsOf,
  type Grain,
  markQuarters,
  type RollupFilters,
  recountChanged,
  settledOnChain,
  settlementTimesOf,
} from './rollup-store.ts'

let database: TestDatabase
let db: Db
const tenant = { organisationId: 'org_a' as OrganisationId, environment: 'test' as const }
/** Three days ago at noon: all of the history is older than an hour. */
const start = Math.floor(Date.now() / 86_400_000) * 86_400_000 - 2.5 * 86_400_000
const minute = 60_000

beforeAll(async () => {
  database = await freshDatabase()
  db = database.db
})
afterAll(() => database?.drop())
beforeEach(() => empty())

async function empty(): Promise<void> {
  for (const table of ['payments', 'payment_rollups', 'settlement_times', 'payment_rollup_changes'])
    await db.run({ text: `delete from ${table}`, values: [] })
  await db.run(sql`update payment_rollup_state set sealed_until = 'epoch', marked_until = 'epoch'`)
}

let made = 0

interface Made {
  readonly at: number
  readonly route?: string
  readonly status?: string
  readonly organisationId?: string
}

/** Records a payment whose ids were made up to half a minute before its time. */
async function pay(on: Queryable, { at, route = '/a', status = 'settled', organisationId = 'org_a' }: Made) {
  const number = ++made
  const random = new Uint8Array(10)
  new DataView(random.buffer).setUint32(6, number)
  const idAt = at - (number % 3) * 10_000
  const id = newTypeId('pay', idAt, random)
  await on.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, wallet_id, route, protocol, door, scheme, chain, network, token, asset, decimals,
      raw_amount, pay_to, status, tx_hash, settled_at, created_at)
    values (${id}, ${newTypeId('plog', idAt, random)}, ${organisationId}, 'test', 'key_a', ${number % 2 === 0 ? 'byw_a' : null}, ${route}, 'x402', 'verify', 'exact',
      'base', 'base-sepolia', 'USDC', '0xtoken', 6, ${number}::int, '0xto', ${status}, ${`0x${number}`}, ${new Date(at + number * 37)}, ${new Date(at)})`)
  return id
}

const setStatus = (on: Queryable, id: string, status: string): Promise<unknown> =>
  on.run(sql`update payments set status = ${status} where id = ${id}`)

const Row = z.record(z.string(), z.unknown())
const asText = (rows: readonly unknown[]): string =>
  JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? value.toString() : value))

interface Comparison {
  readonly from?: Date | undefined
  readonly to?: Date | undefined
  readonly grain: Grain
  readonly filters?: RollupFilters
}

/** Both answers: from the rollups, and from the payments one by one. */
async function compare({ grain, filters = {}, ...period }: Comparison): Promise<void> {
  const totals = (from: Sql) => sql`
    select route, token, status, sum(payments)::text as payments, sum(raw_amount)::text as raw from ${from} as counts
    group by route, token, status order by route, status`
  const single = sql`(select *, 1 as payments from payments
    where organisation_id = 'org_a' and created_at >= ${period.from ?? new Date(0)} and created_at < ${period.to ?? new Date(8e12)}
      and (${filters.route ?? null}::text is null or route = ${filters.route ?? null}) and (${filters.walletId ?? null}::text is null or wallet_id = ${filters.walletId ?? null}))`
  const rolled = await db.many(Row, totals(countsOf(tenant, period, grain, filters)))
  expect(asText(rolled)).toBe(asText(await db.many(Row, totals(single))))
  if (grain === 'day') return
  const times = (from: Sql) =>
    sql`select ms, sum(payments)::text as payments from ${from} as times group by ms order by ms`
  const measured = sql`(select settlement_ms(created_at, settled_at) as ms, 1 as payments from ${single} as single where ${settledOnChain})`
  expect(asText(await db.many(Row, times(settlementTimesOf(tenant, period, grain))))).toBe(
    asText(await db.many(Row, times(measured))),
  )
}

const rolledRows = async (): Promise<number> =>
  Number((await db.one(z.object({ rows: z.bigint() }), sql`select count(*) as rows from payment_rollups`)).rows)

async function sealUntil(unixMs: number): Promise<void> {
  await db.run(sql`
    update payment_rollup_state set marked_until = greatest(sealed_until, ${new Date(unixMs)}::timestamptz), marked_xid = '3'::xid8`)
  while (await countNextQuarter(db));
}

const offset = fc.integer({ min: 0, max: 2 * 1_440 * 4 }).map((quarters) => start + (quarters * minute) / 4)
const step = fc.oneof(
  fc.record({
    kind: fc.constant('pay' as const),
    at: offset,
    route: fc.constantFrom('/a', '/b'),
    status: fc.constantFrom('verified', 'settling', 'settled', 'settlement_failed', 'voided'),
    organisationId: fc.constantFrom('org_a', 'org_a', 'org_b'),
  }),
  fc.record({
    kind: fc.constant('change' as const),
    which: fc.nat(),
    status: fc.constantFrom('settled', 'settlement_failed', 'voided'),
  }),
  fc.record({ kind: fc.constant('seal' as const), at: offset.map((at) => Math.floor(at / 900_000) * 900_000) }),
  fc.record({ kind: fc.constant('recount' as const) }),
  fc.record({
    kind: fc.constant('compare' as const),
    from: offset,
    to: offset,
    grain: fc.constantFrom('day', 'quarter', 'none'),
  }),
)

test('after any history of payments, changes and counts, every period of the rollups equals a count of the payments', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      await empty()
      const ids: string[] = []
      for (const one of steps) {
        if (one.kind === 'pay') ids.push(await pay(db, one))
        else if (one.kind === 'change') await setStatus(db, ids[one.which % Math.max(1, ids.length)] ?? '', one.status)
        else if (one.kind === 'seal') {
          // Payments of quarters that are not counted yet leave no row, where they are made in time.
          await db.run(sql`delete from payment_rollup_changes using payment_rollup_state where at >= sealed_until`)
          await sealUntil(one.at)
        } else if (one.kind === 'recount') while (await recountChanged(db));
        else
          await compare({
            from: new Date(Math.min(one.from, one.to)),
            to: new Date(Math.max(one.from, one.to)),
            grain: one.grain,
            ...(one.grain === 'day'
              ? { filters: one.from % 2_000 === 0 ? { route: '/a' } : { walletId: 'byw_a' } }
              : {}),
          })
      }
      for (const grain of ['day', 'quarter'] as const) await compare({ grain })
      await sealUntil(start + 3 * 86_400_000)
      while (await recountChanged(db));
      for (const grain of ['day', 'quarter'] as const) await compare({ grain })
    }),
    { numRuns: 25 },
  )
}, 120_000)

test('a change that another transaction has not committed is in neither answer, and afterwards in both', async () => {
  const at = start + 10 * minute
  const id = await pay(db, { at })
  await sealUntil(start + 86_400_000)
  while (await recountChanged(db));
  const [changed, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const writer = db.tx(async (tx) => {
    await setStatus(tx, id, 'voided')
    await pay(tx, { at })
    changed.resolve()
    await finish.promise
  })
  await changed.promise
  await compare({ grain: 'day' })
  while (await recountChanged(db));
  await compare({ grain: 'day' })
  finish.resolve()
  await writer
  await compare({ grain: 'day' })
  while (await recountChanged(db));
  await compare({ grain: 'day' })
})

test('quarters are counted only when every transaction that began before their mark has ended', async () => {
  await pay(db, { at: start })
  const [begun, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const writer = db.tx(async (tx) => {
    await pay(tx, { at: start + minute })
    begun.resolve()
    await finish.promise
  })
  await begun.promise
  await markQuarters(db)
  expect(await countNextQuarter(db)).toBe(false)
  finish.resolve()
  await writer
  while (await countNextQuarter(db));
  expect(await rolledRows()).toBeGreaterThan(0)
  await compare({ grain: 'day' })
})

test('an open transaction of another database, and one that wrote no payment, keep no quarter from being counted', async () => {
  await pay(db, { at: start })
  const elsewhere = await freshDatabase()
  const [begun, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const writers = [
    elsewhere.db.tx(async (tx) => {
      await pay(tx, { at: start })
      begun.resolve()
      await finish.promise
    }),
    db.tx(async (tx) => {
      await tx.run(sql`select pg_current_xact_id()`)
      await begun.promise
      await markQuarters(db)
      expect(await countNextQuarter(db)).toBe(true)
    }),
  ]
  await writers[1]
  finish.resolve()
  await writers[0]
  await elsewhere.drop()
  expect(await rolledRows()).toBeGreaterThan(0)
})

test('a payment of the last hour leaves no row when it is made or changes, and an older one does', async () => {
  const changes = async () =>
    Number((await db.one(z.object({ n: z.bigint() }), sql`select count(*) as n from payment_rollup_changes`)).n)
  const id = await pay(db, { at: Date.now() - minute, status: 'verified' })
  await setStatus(db, id, 'settled')
  expect(await changes()).toBe(0)
  await markQuarters(db)
  const { until } = await db.one(
    z.object({ until: z.date() }),
    sql`select marked_until as until from payment_rollup_state`,
  )
  expect(until.getTime()).toBeLessThan(Date.now() - 64 * minute)
  await pay(db, { at: Date.now() - 61 * minute })
  expect(await changes()).toBe(1)
})

test('two processes that count at once count each payment once', async () => {
  for (let count = 0; count < 20; count++) await pay(db, { at: start + count * 50 * minute })
  await markQuarters(db)
  const all = async (): Promise<void> => {
    for (let turn = 0; turn < 60; turn++) {
      await countNextQuarter(db)
      await recountChanged(db)
    }
  }
  await Promise.all([all(), all()])
  await compare({ grain: 'day' })
  await compare({ grain: 'quarter' })
})
