import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { listAttempts } from '../src/features/webhooks/delivery-store.ts'
import { findEvent, listEvents } from '../src/features/webhooks/event-store.ts'
import type { Queryable, Sql } from '../src/platform/db/db.ts'
import { sql } from '../src/platform/db/db.ts'
import { firstIdAt } from '../src/platform/db/page.ts'
import { listPartitions, plain, startOfMonth } from '../src/platform/db/partitions.ts'
import type { Tenant } from '../src/platform/tenant.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { addPastMonths } from './past-months.ts'

let database: TestDatabase
let months: Date[]

const now = new Date()
const monthsBefore = 12
const rowsPerMonth = 2_000
const tenant: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'test' }
const limit = 10
const page = { limit, after: undefined }
const oldest = new Date(0)
/** Rows of a page with what each is joined to, and the first row of each partition, where an order over all of them is merged. */
const readsMax = BigInt(2 * (limit + 1) + monthsBefore + 4)

beforeAll(async () => {
  database = await freshDatabase()
  const { db } = database
  months = await addPastMonths(db, now, monthsBefore)
  for (const month of months) {
    const times = Array.from({ length: rowsPerMonth }, (_, n) => new Date(month.getTime() + n * 1_200_000))
    const idsOf = (prefix: string): string[] => times.map((at) => firstIdAt(prefix, at.getTime()))
    const given = sql`unnest(${idsOf('evt')}::text[], ${idsOf('del')}::text[], ${idsOf('att')}::text[], ${times.map((at) => at.toISOString())}::timestamptz[])
      with ordinality as given (evt, del, att, at, n)`
    const own = sql`${tenant.organisationId}, ${tenant.environment}`
    await db.run(sql`insert into events (id, organisation_id, environment, type, payload, created_at)
      select evt, ${own}, case when n % 3 = 0 then 'vault.sealed' else 'payment.received' end, '{}', at from ${given}`)
    await db.run(sql`insert into webhook_deliveries (id, organisation_id, environment, webhook_id, event_id, type, status, ended_at, created_at)
      select del, ${own}, 'wh_1', evt, 'payment.received', 'succeeded', at, at from ${given}`)
    await db.run(sql`insert into webhook_attempts (id, organisation_id, environment, webhook_id, delivery_id, attempt, status, duration_ms, created_at)
      select att, ${own}, 'wh_1', del, 1, case when n % 50 = 0 then 'failed' else 'succeeded' end, 5, at from ${given}`)
  }
  for (const table of ['events', 'webhook_deliveries', 'webhook_attempts'])
    await db.run(plain(`vacuum (analyze) ${table}`))
}, 60_000)
afterAll(() => database?.drop())

const Line = z.object({ line: z.string() })

/** The plans of the statements that the work sends, with what was read, by either kind of plan. */
function explained(mode: string, work: (db: Queryable) => Promise<unknown>): Promise<{ plan: string; reads: bigint }> {
  return database.db.tx(async (tx) => {
    await tx.run(sql`select set_config('plan_cache_mode', ${mode}, true)`)
    const read = sql`select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint as count from pg_stat_xact_user_tables`
    const reads = async () => (await tx.one(z.object({ count: z.bigint() }), read)).count
    const before = await reads()
    const lines: string[] = []
    const explain = async (statement: Sql): Promise<[]> => {
      const rows = await tx.many(z.record(z.string(), z.string()), {
        ...statement,
        text: `explain (analyze) ${statement.text}`,
      })
      lines.push(...rows.map((row) => Line.parse({ line: Object.values(row)[0] }).line))
      return []
    }
    const explaining: Queryable = {
      ...tx,
      many: (_row, statement) => explain(statement),
      maybeOne: async (_row, statement) => void (await explain(statement)),
    }
    await work(explaining)
    return { plan: lines.join('\n'), reads: (await reads()) - before }
  })
}

const middle = (): Date => months[6] ?? now
const lists: readonly (readonly [name: string, list: (db: Queryable) => Promise<unknown>])[] = [
  ['events', (db) => listEvents(db, tenant, { oldest }, page)],
  [
    'events after an old cursor',
    (db) => listEvents(db, tenant, { oldest }, { limit, after: firstIdAt('evt', middle().getTime()) }),
  ],
  ['events of a type', (db) => listEvents(db, tenant, { oldest, type: 'vault.sealed' }, page)],
  ['events of no type', (db) => listEvents(db, tenant, { oldest, type: 'vault.expired' }, page)],
  [
    'events of a past month',
    (db) => listEvents(db, tenant, { oldest, from: middle(), to: startOfMonth(middle(), 1) }, page),
  ],
  ['attempts', (db) => listAttempts(db, tenant, { webhookId: 'wh_1' }, page)],
  ['failed attempts', (db) => listAttempts(db, tenant, { webhookId: 'wh_1', status: 'failed' }, page)],
]

test.each(lists)('a page of %s over a year reads its rows and at most one more of each month', async (_name, list) => {
  for (const mode of ['force_generic_plan', 'force_custom_plan']) {
    const { reads, plan } = await explained(mode, list)
    expect(reads, `${mode}\n${plan}`).toBeLessThanOrEqual(readsMax)
  }
})

test('a list of a period and a look-up by id read the partition of their month alone', async () => {
  const month = middle()
  const period = { from: new Date(month.getTime() + 86_400_000), to: new Date(month.getTime() + 2 * 86_400_000) }
  const id = firstIdAt('evt', month.getTime()) as `evt_${string}`
  const own = (await listPartitions(database.db, { table: 'events' })).find(
    ({ fromAt }) => fromAt?.getTime() === month.getTime(),
  )
  for (const list of [
    (db: Queryable) => listEvents(db, tenant, { oldest, ...period }, page),
    (db: Queryable) => findEvent(db, tenant, id, oldest),
  ])
    for (const mode of ['force_generic_plan', 'force_custom_plan']) {
      const { plan } = await explained(mode, list)
      const read = plan.split('\n').filter((line) => /\bon events_/.test(line) && !line.includes('never executed'))
      expect(read, plan).toHaveLength(1)
      expect(read[0]).toContain(own?.name)
    }
})
