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

/** A route of which few keep a row of their own. */
const longRoute = (number: number): string => `/${'x'.repeat(2_000)}/${String(number).padStart(2, '0')}`

/** Filters that depend on a number. */
const filtersOf = (number: number): RollupFilters =>
  [{ route: '/a' }, { walletId: 'byw_a' }, { route: longRoute(7) }, { route: longRoute(20), walletId: 'byw_a' }][
    Math.floor(number / 15_000) % 4
  ] ?? {}

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
  /** Whether some routes may have no rows of their own, so that only a filter by route counts them. */
  readonly isCrowded?: boolean
}

/** Both answers: from the rollups, and from the payments one by one. */
async function compare({ grain, filters = {}, isCrowded = false, ...period }: Comparison): Promise<void> {
  const totals = (from: Sql) => sql`
    select shown, token, status, sum(payments)::text as payments, sum(raw_amount)::text as raw
    from ${from} as counts cross join lateral (select case when ${isCrowded && filters.route === undefined} then null else route end as shown) as routes
    group by shown, token, status order by shown, status`
  const single = sql`(select *, 1 as payments from payments
    where organisation_id = 'org_a' and created_at >= ${period.from ?? new Date(0)} and created_at < ${period.to ?? new Date(8e12)}
      and (${filters.route ?? null}::text is null or route = ${filters.route ?? null}) and (${filters.walletId ?? null}::text is null or wallet_id = ${filters.walletId ?? null}))`
  const rolled = await db.many(Row, totals(countsOf(tenant, period, grain, filters)))
  expect(asText(rolled)).toBe(asText(await db.many(Row, totals(single))))
  // Settlement times have no filters.
  if (grain === 'day' || Object.keys(filters).length > 0) return
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
  fc.record({ kind: fc.constant('crowd' as const), at: offset, first: fc.nat({ max: 40 }) }),
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
      const isCrowded = steps.some(({ kind }) => kind === 'crowd')
      for (const one of steps) {
        if (one.kind === 'pay') ids.push(await pay(db, one))
        else if (one.kind === 'crowd') {
          for (let number = 0; number < 12; number++)
            ids.push(await pay(db, { at: one.at, route: longRoute((one.first + number) % 40) }))
        } else if (one.kind === 'change')
          await setStatus(db, ids[one.which % Math.max(1, ids.length)] ?? '', one.status)
        else if (one.kind === 'seal') {
          // Payments of quarters that are not counted yet leave no row, where they are made in time.
          await db.run(sql`delete from payment_rollup_changes using payment_rollup_state where at >= sealed_until`)
          await sealUntil(one.at)
        } else if (one.kind === 'recount') await recountChanged(db)
        else
          await compare({
            from: new Date(Math.min(one.from, one.to)),
            to: new Date(Math.max(one.from, one.to)),
            grain: one.grain,
            ...(one.grain === 'none' ? {} : { filters: filtersOf(one.from) }),
            isCrowded,
          })
      }
      const compareAll = async () => {
        for (const grain of ['day', 'quarter'] as const) await compare({ grain, isCrowded })
        for (const route of ['/a', longRoute(0), longRoute(39)]) await compare({ grain: 'day', filters: { route } })
      }
      await compareAll()
      await sealUntil(start + 3 * 86_400_000)
      await recountChanged(db)
      await compareAll()
    }),
    { numRuns: 25 },
  )
}, 120_000)

test('a change that another transaction has not committed is in neither answer, and afterwards in both', async () => {
  const at = start + 10 * minute
  const id = await pay(db, { at })
  await sealUntil(start + 86_400_000)
  await recountChanged(db)
  const [changed, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const writer = db.tx(async (tx) => {
    await setStatus(tx, id, 'voided')
    await pay(tx, { at })
    changed.resolve()
    await finish.promise
  })
  await changed.promise
  await compare({ grain: 'day' })
  await recountChanged(db)
  await compare({ grain: 'day' })
  finish.resolve()
  await writer
  await compare({ grain: 'day' })
  await recountChanged(db)
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
      while (await countNextQuarter(db));
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

/** Inserts payments of one quarter, each of another route, whose numbers begin after `after`. */
async function payOften(at: number, count: number, after = 0): Promise<void> {
  const id = await pay(db, { at })
  await db.run(sql`
    insert into payments
    select (jsonb_populate_record(one, jsonb_build_object('id', left(one.id, -5) || 'u' || lpad(n::text, 4, '0'),
      'log_id', left(one.log_id, -5) || 'u' || lpad(n::text, 4, '0'), 'tx_hash', n::text, 'route', 'https://a.example.com/users/' || n + ${after}::int))).*
    from payments one, generate_series(1, ${count}::int) n where one.id = ${id}`)
}

test('a tenant that is paid for thousands of routes has few rollups of them, and their totals stay exact', async () => {
  for (const quarter of [0, 1, 2, 3]) await payOften(start + quarter * 15 * minute, 1_000)
  await pay(db, { at: start, route: '/most' })
  await pay(db, { at: start, route: '/most' })
  await sealUntil(start + 2 * 86_400_000)
  await recountChanged(db)
  const { quarters, days } = await db.one(
    z.object({ quarters: z.bigint(), days: z.bigint() }),
    sql`select count(*) filter (where span = 15) as quarters, count(*) filter (where span = 1440) as days from payment_rollups`,
  )
  expect(Number(quarters)).toBeLessThan(4 * 150)
  expect(Number(days)).toBeLessThan(600)
  await compare({ grain: 'day', isCrowded: true })
  await compare({ grain: 'quarter', isCrowded: true })
  for (const route of ['/most', 'https://a.example.com/users/1', 'https://a.example.com/users/999', '/none'])
    for (const walletId of [undefined, 'byw_a']) await compare({ grain: 'day', filters: { route, walletId } })
  const shown = await db.many(
    Row,
    sql`select route, sum(payments)::int as payments from ${countsOf(tenant, {}, 'day')} as counts where route = '/most' group by route`,
  )
  expect(shown).toEqual([{ route: '/most', payments: 2 }])
})

test('a route with its own rows in each quarter and none in the day is counted by a filter', async () => {
  for (let quarter = 0; quarter < 10; quarter++) await payOften(start + quarter * 15 * minute, 90, 90 * quarter)
  await sealUntil(start + 2 * 86_400_000)
  await recountChanged(db)
  const ofOthers = sql`select span, sum(payments)::int as payments from payment_rollups where other_routes group by span`
  expect(await db.many(Row, ofOthers)).toEqual([{ span: 1440, payments: expect.any(Number) }])
  for (const number of [1, 90, 899, 900])
    await compare({ grain: 'day', filters: { route: `https://a.example.com/users/${number}` } })
})

test('a day of a tenant that cannot be counted again delays no other tenant', async () => {
  for (const organisationId of ['org_a', 'org_b']) await pay(db, { at: start, organisationId })
  await sealUntil(start + 2 * 86_400_000)
  await recountChanged(db)
  for (const organisationId of ['org_a', 'org_b']) await pay(db, { at: start + minute, organisationId })
  await db.run({
    text: `alter table payment_rollups add constraint refused check (organisation_id <> 'org_a') not valid`,
    values: [],
  })
  try {
    await expect(recountChanged(db)).rejects.toThrow('refused')
  } finally {
    await db.run({ text: 'alter table payment_rollups drop constraint refused', values: [] })
  }
  const changed = await db.many(Row, sql`select organisation_id as id from payment_rollup_changes`)
  expect(changed).toEqual([{ id: 'org_a' }])
  await compare({ grain: 'day' })
  await recountChanged(db)
  await compare({ grain: 'day' })
})

const Node: z.ZodType<{ loops: number; removed: number; table: string; nodes: readonly object[] }> = z
  .looseObject({ 'Actual Loops': z.number(), Plans: z.array(z.looseObject({})).default([]) })
  .transform(({ Plans, ...node }) => ({
    loops: node['Actual Loops'],
    // A condition that no index and no hash decides.
    removed:
      Number(node['Rows Removed by Join Filter'] ?? 0) +
      (node['Node Type'] === 'CTE Scan' ? Number(node['Rows Removed by Filter'] ?? 0) : 0),
    table: String(node['Relation Name'] ?? ''),
    nodes: Plans,
  }))

test('the cost of a summary of one route grows with its quarters, not with their square, and reads the months of its quarters alone', async () => {
  const [days, first] = [60, start - 100 * 86_400_000]
  // A route that is among the most paid of every second quarter; the others have rows of other routes.
  await db.run(sql`
    insert into payment_rollups (organisation_id, environment, span, at, route, other_routes, protocol, api_key_id, token, decimals, status, payments, raw_amount)
    select 'org_a', 'test', span, ${new Date(first)}::timestamptz + n * span * interval '1 minute', case when is_other then null else '/popular' end, is_other,
      'x402', 'key_a', 'USDC', 6, 'settled', 1, 1
    from (values (15::smallint), (1440)) as spans (span), generate_series(0, ${days * 96}::int - 1) as n, (values (true), (false)) as others (is_other)
    where n * span < ${days}::int * 1440 and (is_other or n % 2 = 0)`)
  await db.run(
    sql`update payment_rollup_state set sealed_until = ${new Date(start)}, marked_until = ${new Date(start)}`,
  )
  await db.run(sql`analyze payment_rollups`)
  const { text, values } = sql`select count(*) from ${countsOf(tenant, {}, 'day', { route: '/popular' })} as counts`
  const explained = await db.one(z.object({ 'QUERY PLAN': z.tuple([z.object({ Plan: z.unknown() })]) }), {
    text: `explain (analyze, format json) ${text}`,
    values,
  })
  let removed = 0
  const reads = new Map<string, number>()
  const visit = (plan: unknown): void => {
    const node = Node.parse(plan)
    removed += node.removed * node.loops
    if (node.table.startsWith('payments_')) reads.set(node.table, (reads.get(node.table) ?? 0) + node.loops)
    for (const inner of node.nodes) visit(inner)
  }
  visit(explained['QUERY PLAN'][0].Plan)
  expect(removed).toBeLessThan(2 * days * 96)
  // Only the open end of the period reads the months to come.
  const [, ...later] = [...reads].sort()
  expect(later.map(([, loops]) => loops)).toEqual(later.map(() => 1))
  expect(later).not.toEqual([])
})
