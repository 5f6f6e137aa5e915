import { newTypeId } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { deleteQuietCallers } from '../src/features/payments/caller-store.ts'
import { deleteExpiredMails } from '../src/features/people/mail-store.ts'
import { deleteExpiredProofs, deleteExpiredSignIns } from '../src/features/people/store.ts'
import { expireRequests } from '../src/features/requests/recorder.ts'
import { queueStaleUploads } from '../src/features/vaults/files/store.ts'
import { deleteExpiredTokens } from '../src/features/vaults/tokens/store.ts'
import {
  deleteOldAttempts,
  deleteOldDeliveries,
  deleteOldEvents,
  deleteOldWebhooks,
  endOldDeliveries,
} from '../src/features/webhooks/event-store.ts'
import { deleteHintsBefore } from '../src/features/withdrawals/payout-hints/store.ts'
import type { Db, Queryable } from '../src/platform/db/db.ts'
import type { Sweep } from '../src/platform/db/delete-expired.ts'
import { deleteExpiredIdempotencyKeys } from '../src/platform/http/idempotency.ts'
import { deleteExpiredUse } from '../src/platform/http/kept-bytes.ts'
import { systemCtx } from '../src/platform/work/runner.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { type Expressions, fillTable, statement } from './fill-table.ts'
import { readsCounted } from './rows-read.ts'
import { toyDeps } from './toy-deps.ts'

let database: TestDatabase

const old = new Date('2026-11-01T00:00:00Z')
const past = `timestamptz '2026-10-01T00:00:00Z'`
const backlog = 2_500
const perStatementMax = 1_000

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

/** A database that notes how many rows each statement changes or lists. */
function noting(own: Queryable): { readonly db: Queryable; readonly changed: number[] } {
  const changed: number[] = []
  const many: Queryable['many'] = async (schema, one) => {
    const rows = await own.many(schema, one)
    changed.push(rows.length)
    return rows
  }
  const run: Queryable['run'] = async (one) => {
    const count = await own.run(one)
    changed.push(count)
    return count
  }
  return { db: { ...own, run, many }, changed }
}

const countOf = async (table: string): Promise<bigint> =>
  (await database.db.one(z.object({ count: z.bigint() }), statement(`select count(*) as count from ${table}`))).count

const attemptId = newTypeId('att', Date.parse('2026-10-01T00:00:00Z'), new Uint8Array(10)).slice(0, -6)

const sweeps: readonly (readonly [table: string, old: Expressions, sweep: (sweep: Sweep) => Promise<unknown>])[] = [
  ['idempotency_keys', { created_at: past }, (sweep) => deleteExpiredIdempotencyKeys(sweep, old)],
  ['vault_tokens', { expires_at: past }, (sweep) => deleteExpiredTokens(sweep, old)],
  [
    'challenge_callers',
    { last_asked_at: past, ip: `('10.0.' || n / 250 || '.' || n % 250)::inet` },
    (sweep) => deleteQuietCallers(sweep, old),
  ],
  ['payout_hints', { heard_at: past }, (sweep) => deleteHintsBefore(sweep, old)],
  ['webhook_attempts', { id: `'${attemptId}' || lpad(n::text, 6, '0')` }, (sweep) => deleteOldAttempts(sweep, old)],
  ['webhooks', { deleted_at: past }, (sweep) => deleteOldWebhooks(sweep, old)],
  ['idempotency_use', { hour: past }, (sweep) => deleteExpiredUse(sweep, old)],
]

test.each(sweeps)(
  'a backlog of %s is listed and deleted in statements of a bounded size',
  async (table, columns, sweep) => {
    await fillTable(database.db, table, columns, { last: backlog })
    const { db, changed } = noting(database.db)
    await sweep({ db, stopping: AbortSignal.abort() })
    expect(changed, 'a stopping process begins no further statement').toEqual([perStatementMax])
    await sweep({ db })
    expect(await countOf(table)).toBe(0n)
    expect(Math.max(...changed)).toBeLessThanOrEqual(perStatementMax)
  },
)

test('abandoned uploads are queued for deletion a bounded number at a time', async () => {
  await fillTable(database.db, 'vault_uploads', { created_at: past }, { last: backlog })
  expect(await queueStaleUploads(database.db, { before: old, now: old })).toBe(perStatementMax)
  expect(await countOf('vault_uploads')).toBe(BigInt(backlog - perStatementMax))
})

/** Deliveries whose ids are of that month, numbered from `first`; none is pending. */
const fillDeliveries = (
  month: number,
  own: Expressions,
  numbers: { readonly first?: number; readonly last: number },
) => {
  const id = newTypeId('del', Date.UTC(2026, month - 1), new Uint8Array(10)).slice(0, -6)
  const ended = { status: `'succeeded'`, ended_at: past, id: `'${id}' || lpad(n::text, 6, '0')` }
  return fillTable(database.db, 'webhook_deliveries', { ...ended, ...own }, numbers)
}

test('webhooks that were deleted long ago are removed without a read of deliveries, and their deliveries are removed by age', async () => {
  await fillDeliveries(11, { webhook_id: `'kept' || n % 500` }, { last: 20_000 })
  await fillDeliveries(10, { webhook_id: `'gone'` }, { last: 1_500 })
  await fillTable(database.db, 'webhooks', { id: `'gone'`, deleted_at: past }, { last: 1 })
  const { db, rows } = readsCounted(database.db, '^webhook_deliveries')
  await db.tx((tx) => deleteOldWebhooks({ db: tx }, old))
  expect(rows()).toBe(0n)
  expect(await countOf('webhooks')).toBe(0n)
  const noted = notingTx(database.db)
  await deleteOldDeliveries(noted, old)
  expect(Math.max(...noted.changed)).toBeLessThanOrEqual(perStatementMax)
  expect(await countOf('webhook_deliveries')).toBe(20_000n)
})

test('old events are deleted without a read of deliveries that ended, except an event with a pending delivery', async () => {
  const evt = newTypeId('evt', Date.parse('2026-10-01T00:00:00Z'), new Uint8Array(10)).slice(0, -6)
  await fillTable(database.db, 'events', { id: `'${evt}' || lpad(n::text, 6, '0')`, created_at: past }, { last: 40 })
  await fillDeliveries(11, { event_id: `'${evt}' || lpad((n % 40)::text, 6, '0')` }, { first: 20_001, last: 40_000 })
  const waits = { status: `'pending'`, ended_at: 'null', due_at: past, event_id: `'${evt}000007'` }
  await fillDeliveries(11, waits, { first: 40_001, last: 40_001 })
  const { db, rows } = readsCounted(database.db, '^webhook_deliveries')
  await deleteOldEvents({ db }, old)
  expect(rows()).toBeLessThan(5n)
  expect(await countOf('events')).toBe(1n)
})

test('a backlog of events is deleted in statements of a bounded size', async () => {
  const first = newTypeId('evt', Date.parse('2026-10-02T00:00:00Z'), new Uint8Array(10)).slice(0, -6)
  await fillTable(
    database.db,
    'events',
    { id: `'${first}' || lpad(n::text, 6, '0')`, created_at: past },
    { last: backlog },
  )
  const { db, changed } = notingTx(database.db)
  await deleteOldEvents({ db }, old)
  expect(await countOf(`events where created_at = ${past} and id > '${first}'`)).toBe(0n)
  expect(changed.reduce((sum, count) => sum + count, 0)).toBe(backlog)
  expect(Math.max(...changed)).toBeLessThanOrEqual(perStatementMax)
})

test('events with a pending delivery are looked at once in a run, and pending deliveries of other events never', async () => {
  const kept = newTypeId('evt', Date.parse('2026-10-03T00:00:00Z'), new Uint8Array(10)).slice(0, -6)
  const ended = newTypeId('evt', Date.parse('2026-10-04T00:00:00Z'), new Uint8Array(10)).slice(0, -6)
  const recent = newTypeId('evt', Date.parse('2026-11-20T00:00:00Z'), new Uint8Array(10)).slice(0, -6)
  for (const first of [kept, ended])
    await fillTable(
      database.db,
      'events',
      { id: `'${first}' || lpad(n::text, 6, '0')`, created_at: past },
      { last: 2_500 },
    )
  const waits = { status: `'pending'`, ended_at: 'null', due_at: past }
  const waiting = (event: string) => ({ ...waits, event_id: `'${event}' || lpad((n % 100000)::text, 6, '0')` })
  await fillDeliveries(11, waiting(kept), { first: 100_001, last: 102_500 })
  await fillDeliveries(11, waiting(recent), { first: 200_001, last: 210_000 })
  const { db, rows } = readsCounted(database.db, '^webhook_deliveries')
  await deleteOldEvents({ db }, old)
  expect(rows()).toBeLessThan(3_000n)
  expect(await countOf(`events where id like '${kept}%'`)).toBe(2_500n)
  expect(await countOf(`events where id like '${ended}%'`)).toBe(0n)
})

test('pending deliveries are looked at once in a run, however many others are deleted', async () => {
  const idOf = (month: number) => newTypeId('del', Date.UTC(2026, month - 1), new Uint8Array(10)).slice(0, -6)
  await fillDeliveries(8, { status: `'pending'`, ended_at: 'null', due_at: past }, { last: 5_000 })
  await fillDeliveries(9, {}, { last: 3_500 })
  const { db, rows } = readsCounted(database.db, '^webhook_deliveries')
  await deleteOldDeliveries({ db }, old)
  expect(rows()).toBeLessThan(20_000n)
  expect(await countOf(`webhook_deliveries where id like '${idOf(8)}%'`)).toBe(5_000n)
  expect(await countOf(`webhook_deliveries where id like '${idOf(9)}%'`)).toBe(0n)
})

test('deliveries that wait longer than retries take end a bounded number at a time; replays, younger ones and ended ones stay', async () => {
  await database.db.run(statement('delete from webhook_deliveries'))
  const eventOf = (at: string) => newTypeId('evt', Date.parse(at), new Uint8Array(10)).slice(0, -6)
  const waits = { status: `'pending'`, ended_at: 'null', due_at: past }
  const ofEvents = (at: string) => ({ event_id: `'${eventOf(at)}' || lpad((n % 3000)::text, 6, '0')` })
  const oldEvents = ofEvents('2026-10-01T00:00:00Z')
  await fillDeliveries(10, { ...waits, ...oldEvents }, { last: 2_500 })
  await fillDeliveries(
    10,
    { ...waits, event_id: `'${eventOf('2026-10-01T00:00:00Z')}000007'` },
    { first: 2_501, last: 5_000 },
  )
  await fillDeliveries(10, oldEvents, { first: 5_001, last: 9_000 })
  await fillDeliveries(11, { ...waits, ...oldEvents }, { first: 10_001, last: 11_500 })
  await fillDeliveries(11, { ...waits, ...ofEvents('2026-11-10T00:00:00Z') }, { first: 20_001, last: 30_000 })
  const noted = notingTx(database.db)
  const { db, rows } = readsCounted(noted.db, '^webhook_deliveries')
  await endOldDeliveries({ db }, { now: old, oldest: old })
  expect(noted.changed.reduce((sum, count) => sum + count, 0)).toBe(5_000)
  expect(Math.max(...noted.changed)).toBeLessThanOrEqual(perStatementMax)
  expect(rows()).toBeLessThan(35_000n)
  expect(await countOf(`webhook_deliveries where status = 'dead' and ended_at = '${old.toISOString()}'`)).toBe(5_000n)
  expect(await countOf(`webhook_deliveries where status = 'pending'`)).toBe(11_500n)
})

/** As `noting`, for what statements of transactions change. */
function notingTx(own: Db): { readonly db: Db; readonly changed: number[] } {
  const changed: number[] = []
  const tx: Db['tx'] = (work, options) =>
    own.tx((inner) => {
      const run: Queryable['run'] = async (one) => {
        const count = await inner.run(one)
        changed.push(count)
        return count
      }
      return work({ ...inner, run })
    }, options)
  return { db: { ...own, tx }, changed }
}

test('a backlog of logged requests is deleted in statements of a bounded size', async () => {
  await fillTable(database.db, 'request_log', { created_at: past }, { last: 12_000 })
  const { db, changed } = noting(database.db)
  await expireRequests.run(systemCtx(toyDeps({ ...database.db, ...db })))
  expect(await countOf('request_log')).toBe(0n)
  expect(changed).toEqual([5_000, 5_000, 2_000])
})

test('a backlog of ended sessions, proofs, links and mails is deleted in statements of a bounded size', async () => {
  const rows = `from generate_series(1, ${backlog}) as n`
  await database.db.tx(async (tx) => {
    await tx.run(statement(`set local session_replication_role = replica`))
    for (const insert of [
      `auth."session" ("id", "expiresAt", "token", "updatedAt", "userId") select n, ${past}, n, ${past}, 'x' ${rows}`,
      `auth."verification" ("id", "identifier", "value", "expiresAt") select n, n, n, ${past} ${rows}`,
      `auth.sign_in_links (token_hash, email, expires_at, created_at) select decode(lpad(to_hex(n), 64, '0'), 'hex'), n, ${past}, ${past} ${rows}`,
      `auth.sign_in_mails (kind, email, proof, sent_at) select 'link', n, n, ${past} ${rows}`,
    ])
      await tx.run(statement(`insert into ${insert}`))
  })
  const { db, changed } = noting(database.db)
  await deleteExpiredProofs({ db }, old)
  await deleteExpiredSignIns({ db }, old)
  await deleteExpiredMails({ db }, old)
  expect(changed).toEqual(Array(4).fill([1_000, 1_000, 500]).flat())
})
