import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type AuditFilters, listAuditRecords, listOperatorRecords } from '../src/features/organisations/audit-store.ts'
import { verifyAuditLog } from '../src/features/organisations/index.ts'
import { appendAudit, verifyAudit } from '../src/platform/audit.ts'
import { systemClock } from '../src/platform/clock.ts'
import { sql, type Tx } from '../src/platform/db/db.ts'
import { listMigrations, migrate } from '../src/platform/db/migrate.ts'
import { firstIdAt } from '../src/platform/db/page.ts'
import { listPartitions, partitionedTables, plain } from '../src/platform/db/partitions.ts'
import type { OrganisationId } from '../src/platform/ids.ts'
import { systemRandom } from '../src/platform/random.ts'
import type { Tenant } from '../src/platform/tenant.ts'
import { anEmptyDatabase, freshDatabase, type TestDatabase } from './database.ts'
import { monthPlans, scansOf } from './month-plans.ts'
import { addPastMonths } from './past-months.ts'
import { rowsRead } from './rows-read.ts'

let database: TestDatabase
let months: Date[]

const now = new Date()
const monthsBefore = 60
const rowsPerMonth = 300
const organisationId: OrganisationId = 'org_01h455vb4pex5vsknk084sn02q'
const tenant: Tenant = { organisationId, environment: 'live' }
const key = 'key_01h455vb4pex5vsknk084sn02q'

beforeAll(async () => {
  database = await freshDatabase()
  const { db } = database
  months = await addPastMonths(
    db,
    now,
    monthsBefore,
    partitionedTables.filter(({ table }) => table === 'audit_log'),
  )
  for (const [at, month] of months.entries()) {
    const times = Array.from({ length: rowsPerMonth }, (_, n) => new Date(month.getTime() + n * 8_000_000))
    const ids = times.map((time) => firstIdAt('aud', time.getTime()))
    await db.run(sql`
      insert into audit_log (organisation_id, sequence, id, environment, action, actor, request_id, target, details, created_at, previous_hash, hash)
      select ${organisationId}, ${at * rowsPerMonth} + n, id, case when n % 4 > 0 then 'test' end, 'action.' || n % 3,
        ${JSON.stringify({ kind: 'api-key', apiKeyId: key })}::jsonb, 'req_x', 'target' || n % 20, '{}', at, '', ''
      from unnest(${ids}::text[], ${times.map((time) => time.toISOString())}::timestamptz[]) with ordinality as given (id, at, n)`)
  }
  for (const { name, untilAt } of await listPartitions(db, { table: 'audit_log' }))
    if (untilAt !== undefined && untilAt <= now) await db.run(plain(`vacuum (analyze) ${name}`))
}, 120_000)
afterAll(() => database?.drop())

const middle = (): Date => months[30] ?? now
const day = (): AuditFilters => ({ from: middle(), to: new Date(middle().getTime() + 86_400_000) })
const list =
  (filters: AuditFilters | (() => AuditFilters), after?: string) =>
  (tx: Tx): Promise<unknown> =>
    listAuditRecords(tx, tenant, typeof filters === 'function' ? filters() : filters, { limit: 10, after })

/** Each with the most rows that it may read: those of a page, and one of each month where their orders are merged. */
const statements: readonly (readonly [name: string, work: (tx: Tx) => Promise<unknown>])[] = [
  ['the log', list({})],
  ['the log after a cursor', list({}, '9000')],
  ['an action', list({ action: 'action.1' })],
  ['no action', list({ action: 'never' })],
  ['a target', list({ target: 'target7' })],
  ['a target and an action', list({ target: 'target7', action: 'action.1' })],
  ['an actor', list({ actor: key })],
  ['no actor', list({ actor: 'key_x' })],
  ['a period', list(day)],
  ['the past', list({ to: new Date('2001-01-01T00:00:00Z') })],
  ['an actor in a period', list({ actor: key, from: new Date(now.getTime() - 86_400_000 * 1_000) })],
  ['the operator’s log', (tx) => listOperatorRecords(tx, 50)],
  ['a check', (tx) => verifyAudit(tx, 'org_01h455vb4pex5vsknk084sn02r')],
]

test.each(statements)('%s: no month of 60 is read whole', async (_name, work) => {
  for (const { plan } of await monthPlans(database.db, /\baudit_log\b/, work)) {
    expect(scansOf('audit_log', months, plan), plan).toEqual([])
    expect(plan).not.toMatch(/-> {2}Sort|Bitmap/)
  }
})

const Rows = z.object({ rows: z.bigint() })

test.each(statements)('a page of %s reads its rows and a few of each month', async (_name, work) => {
  for (const mode of ['force_generic_plan', 'force_custom_plan']) {
    const rows = await database.db.tx(async (tx) => {
      await tx.run(sql`select set_config('plan_cache_mode', ${mode}, true)`)
      const before = await rowsRead(tx, '^audit_log')
      await work(tx)
      return (await rowsRead(tx, '^audit_log')) - before
    })
    expect(rows).toBeLessThanOrEqual(BigInt(4 * (monthsBefore + 4)))
  }
})

const record = (sequence: number, at: Date) => sql`
  insert into audit_log (organisation_id, sequence, id, action, actor, request_id, details, created_at, previous_hash, hash)
  values ('org_once', ${sequence}, ${firstIdAt('aud', at.getTime())}, 'x', '{}', 'req_x', '{}', ${at}, '', '')`

test('no log has two records of one sequence or id, in whatever months', async () => {
  const { db } = database
  const [first = now, second = now, third = now, fourth = now] = months
  await db.run(record(1, new Date(first.getTime() + 1)))
  await db.run(record(2, new Date(second.getTime() + 1)))
  for (const [sequence, at] of [
    [1, third],
    [2, third],
    [2, second],
  ] as const)
    await expect(db.run(record(sequence, new Date(at.getTime() + 2)))).rejects.toThrow('has a record')
  await expect(db.run(record(3, new Date(first.getTime() + 1)))).rejects.toThrow('audit_log')
  await db.run(record(3, new Date(third.getTime() + 1)))
  const twice = sql`
    insert into audit_log (organisation_id, sequence, id, action, actor, request_id, details, created_at, previous_hash, hash)
    select 'org_once', 4, id, 'x', '{}', 'req_x', '{}', now(), '', '' from unnest(${[7, 8].map((ms) => firstIdAt('aud', fourth.getTime() + ms))}::text[]) as id`
  await expect(db.run(twice)).rejects.toThrow('has a record')
  // Of two at once the second waits for the first.
  const at = new Date(fourth.getTime() + 9)
  let other: Promise<unknown> | undefined
  await db.tx(async (tx) => {
    await tx.run(record(4, at))
    other = db.run(record(4, new Date(at.getTime() + 1))).catch((error: unknown) => error)
    const waits = sql`select count(*) as rows from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await expect.poll(async () => (await db.one(Rows, waits)).rows, { timeout: 20_000, interval: 5 }).toBe(1n)
  })
  expect(String(await other)).toContain('has a record')
  await db.run(sql`delete from audit_log where organisation_id = 'org_once'`)
  await expect(db.run(record(4, at))).rejects.toThrow('has a record')
})

test('a migration keeps the records, while processes of the previous version append to the same log, and the log stays intact', async () => {
  const { db, url, drop } = await anEmptyDatabase()
  const all = await listMigrations()
  await migrate({ url, migrations: all.filter(({ name }) => name < '0175') })
  const requestId = 'req_01h455vb4pex5vsknk084sn02q'
  const ctx = { clock: systemClock, random: systemRandom, tenant, actor: { kind: 'system' }, requestId } as const
  // The statement of the previous version is that of today.
  const append = (records: number) =>
    db.tx(async (tx) => appendAudit(ctx, tx, ...Array.from({ length: records }, (_, n) => ({ action: `n${n}` }))))
  for (let n = 0; n < 100; n += 1) await append(3)
  let appended = 300
  let isMigrating = true
  const appending = Array.from({ length: 3 }, async () => {
    while (isMigrating) {
      await append(2)
      appended += 2
    }
  })
  await migrate({ url })
  isMigrating = false
  await Promise.all(appending)
  expect(appended).toBeGreaterThan(300)
  await append(1)
  expect(await verifyAuditLog({ db }, organisationId)).toEqual({ intact: true, records: BigInt(appended + 1) })
  const names = sql`select indexrelid::regclass::text as name from pg_index where indrelid = 'audit_log_first'::regclass order by 1`
  const indexes = await db.many(z.object({ name: z.string() }), names)
  expect(indexes.map(({ name }) => name)).toEqual(
    ['by_action', 'by_actor', 'by_sequence', 'by_target', 'by_time', 'pkey'].map((name) => `audit_log_first_${name}`),
  )
  await drop()
}, 60_000)
