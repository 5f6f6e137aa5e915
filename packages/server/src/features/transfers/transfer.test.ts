import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { sql } from '../../platform/db/db.ts'
import { markConfirmed } from './outcome-store.ts'
import type { TransferPorts } from './ports.ts'
import { lockTransfer, type TransferId } from './store.ts'
import { createReportState, TransferWaiters, transferState } from './transfer.ts'

const first: TransferId = 'wtx_01h455vb4pex5vsknk084sn02q'
const second: TransferId = 'wtx_01h455vb4pex5vsknk084sn02r'
const third: TransferId = 'wtx_01h455vb4pex5vsknk084sn02s'
const fourth: TransferId = 'wtx_01h455vb4pex5vsknk084sn02t'
const fifth: TransferId = 'wtx_01h455vb4pex5vsknk084sn02v'
let database: TestDatabase
let reportState: TransferPorts['reportState']

beforeAll(async () => {
  database = await freshDatabase()
  const { db } = database
  reportState = createReportState(db)
  await db.run(
    sql`insert into organisations (id, name, type, plan, created_at) values ('org_01h455vb4pex5vsknk084sn02q', 'Acme', 'team', 'enterprise', now())`,
  )
  await db.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at)
    select id, 'org_01h455vb4pex5vsknk084sn02q', 'test', 'mwt_01h455vb4pex5vsknk084sn02q', '0xfrom', '0xto', 'base', 'base-sepolia', 'base', 'base-sepolia', 'USDC', 'USDC', 6, 1, 'direct', '',
      'pending', now() from unnest(${[first, second, third, fourth, fifth]}::text[]) as id`)
})
afterAll(() => database?.drop())

/** Number of transactions that wait for a row lock of another. */
async function waiting(): Promise<number> {
  const row = await database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return Number(row.count)
}

test('concurrent callers all get a response, even if a block updates their transfers in the opposite order', async () => {
  const { db } = database
  let requested: Promise<readonly string[]> | undefined
  await db.tx(async (tx) => {
    await lockTransfer(tx, second)
    requested = Promise.all([first, second].map(async (id) => (await reportState(id)).id))
    requested.catch(() => undefined)
    await expect.poll(waiting).toBeGreaterThan(0)
    // Of two transactions that deadlock PostgreSQL aborts the one that waited longest: the responses.
    await lockTransfer(tx, first)
  })
  expect(await requested).toEqual([first, second])
})

test('a repeat waits for what is left of the first wait, and after an approval for all of it', async () => {
  const { db } = database
  const start = new Date('2026-11-30T10:00:00Z')
  const accepted = sql`update transfers set created_at = ${start}, released_at = null where id = ${fifth}`
  const waits: number[] = []
  const repeatAt = (seconds: number) =>
    transferState(
      {
        db,
        reportState,
        tenant: { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'test' },
        clock: { now: () => new Date(start.getTime() + seconds * 1_000) },
        transferWaitMs: 20_000,
        outcomeWaiters: {
          wait: async (_, waitMs) => {
            waits.push(waitMs)
            return undefined
          },
          isAwaited: () => false,
          report: () => undefined,
          resolve: () => undefined,
          wake: () => undefined,
        },
      },
      fifth,
    )
  await db.run(accepted)
  // A process whose clock is behind waits no longer than the first request.
  for (const seconds of [-5, 0, 15, 20, 3_600]) expect(await repeatAt(seconds)).toMatchObject({ id: fifth })
  const approvedAt = new Date(start.getTime() + 3_600_000)
  await db.run(sql`update transfers set released_at = ${approvedAt} where id = ${fifth}`)
  await repeatAt(3_605)
  expect(waits).toEqual([20_000, 20_000, 5_000, 0, 0, 15_000])
  await db.run(accepted)
})

test('a caller who gets a response while a block is recorded gets its outcome, and that outcome is stored as the response', async () => {
  const { db } = database
  const answered = sql`select answered from transfers where id = ${third}`
  let requested: Promise<{ readonly status: string }> | undefined
  await db.tx(async (tx) => {
    await lockTransfer(tx, third)
    requested = reportState(third)
    requested.catch(() => undefined)
    await expect.poll(waiting).toBeGreaterThan(0)
    await tx.run(sql`update transfers set status = 'confirmed', confirmed_at = now() where id = ${third}`)
  })
  expect((await requested)?.status).toBe('confirmed')
  expect(await db.one(z.object({ answered: z.string() }), answered)).toEqual({ answered: 'confirmed' })
  await db.run(sql`update transfers set status = 'failed', reason = 'reverted', ended_at = now() where id = ${third}`)
  expect((await reportState(third)).status).toBe('failed')
  expect(await db.one(z.object({ answered: z.string() }), answered), 'the first answer stays').toEqual({
    answered: 'confirmed',
  })
})

test('a caller who waits in the process that records the block gets the state that is stored as the response', async () => {
  const { db } = database
  const waiters = new TransferWaiters(db)
  await db.run(sql`update transfers set answered = 'pending' where id = ${fifth}`)
  const waited = [fourth, fifth].map((id) => waiters.wait(id, 60_000))
  const seen = [fourth, fifth, second].map((transferId) => {
    return { transferId, hash: '0x1', rawReceived: undefined, isReported: waiters.isAwaited(transferId) }
  })
  const reported = await db.tx((tx) => markConfirmed(tx, seen, new Date()))
  expect(reported.map(({ id }) => id).toSorted(), 'nobody waits for the second').toEqual([fourth, fifth])
  waiters.report(reported)
  const expected = [
    { id: fourth, status: 'confirmed', reportedState: 'confirmed' },
    { id: fifth, status: 'confirmed', reportedState: 'pending' },
  ]
  expect(await Promise.all(waited)).toMatchObject(expected)
  const stored = sql`select id, status, answered as reported_state from transfers where id = any(${[fourth, fifth, second]}::text[]) order by id`
  const Stored = z.object({ id: z.string(), status: z.string(), reportedState: z.string().nullable() })
  const inOrder = [{ id: second, status: 'confirmed', reportedState: 'pending' }, ...expected]
  expect(await db.many(Stored, stored), 'the first answer stays').toEqual(inOrder)
  expect(waiters.isAwaited(fourth)).toBe(false)
})
