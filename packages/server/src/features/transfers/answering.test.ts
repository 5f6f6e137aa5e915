import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { sql } from '../../platform/db/db.ts'
import { answeredState } from './answering.ts'
import { lockTransfer, type TransferId } from './store.ts'

const first: TransferId = 'wtx_01h455vb4pex5vsknk084sn02q'
const second: TransferId = 'wtx_01h455vb4pex5vsknk084sn02r'
const third: TransferId = 'wtx_01h455vb4pex5vsknk084sn02s'
let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  const { db } = database
  await db.run(
    sql`insert into organisations (id, name, type, plan, created_at) values ('org_01h455vb4pex5vsknk084sn02q', 'Acme', 'team', 'enterprise', now())`,
  )
  await db.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at)
    select id, 'org_01h455vb4pex5vsknk084sn02q', 'test', 'mwt_01h455vb4pex5vsknk084sn02q', '0xfrom', '0xto', 'base', 'base-sepolia', 'base', 'base-sepolia', 'USDC', 'USDC', 6, 1, 'direct', '',
      'pending', now() from unnest(${[first, second, third]}::text[]) as id`)
})
afterAll(() => database?.drop())

/** How many transactions wait for a row that another holds. */
async function waiting(): Promise<number> {
  const row = await database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return Number(row.count)
}

test('callers who are answered together are answered, also where what a block says of their transfers is written crosswise', async () => {
  const { db } = database
  let asked: Promise<readonly string[]> | undefined
  await db.tx(async (tx) => {
    await lockTransfer(tx, second)
    asked = Promise.all([first, second].map(async (id) => (await answeredState(db, id)).id))
    asked.catch(() => undefined)
    await expect.poll(waiting).toBeGreaterThan(0)
    // PostgreSQL ends whoever waited longest of two that wait for each other: the answers.
    await lockTransfer(tx, first)
  })
  expect(await asked).toEqual([first, second])
})

test('who is answered while a block is written down is told what it says, and that is kept as what he was told', async () => {
  const { db } = database
  const answered = sql`select answered from transfers where id = ${third}`
  let asked: Promise<{ readonly status: string }> | undefined
  await db.tx(async (tx) => {
    await lockTransfer(tx, third)
    asked = answeredState(db, third)
    asked.catch(() => undefined)
    await expect.poll(waiting).toBeGreaterThan(0)
    await tx.run(sql`update transfers set status = 'confirmed', confirmed_at = now() where id = ${third}`)
  })
  expect((await asked)?.status).toBe('confirmed')
  expect(await db.one(z.object({ answered: z.string() }), answered)).toEqual({ answered: 'confirmed' })
  await db.run(sql`update transfers set status = 'failed', reason = 'reverted', ended_at = now() where id = ${third}`)
  expect((await answeredState(db, third)).status).toBe('failed')
  expect(await db.one(z.object({ answered: z.string() }), answered), 'the first answer stays').toEqual({
    answered: 'confirmed',
  })
})
