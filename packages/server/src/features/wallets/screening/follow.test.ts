import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { fillTable, statement } from '../../../../test/fill-table.ts'
import { createFakeScreening, type FakeScreening } from '../../../../test/screening-double.ts'
import { ShiftedClock } from '../../../../test/webhooks/clock.ts'
import { type Db, sql } from '../../../platform/db/db.ts'
import { followList } from './follow.ts'

const pending = 2_500
const ofSender = 2_200
const wallets = 1_300
const bad = `0x${'b'.repeat(40)}`
const later = `0x${'c'.repeat(40)}`

let database: TestDatabase
let screening: FakeScreening
const clock = new ShiftedClock()

beforeAll(async () => {
  database = await freshDatabase()
  const { db } = database
  await db.run(statement('create table marked_rows (rows integer not null)'))
  await db.run(
    statement(`create function count_marked() returns trigger language plpgsql as $$
      begin insert into marked_rows select count(*) from changed; return null; end $$`),
  )
  for (const table of ['wallet_transactions', 'byo_wallets'])
    await db.run(
      statement(`create trigger count_marked after update on ${table} referencing new table as changed
        for each statement execute function count_marked()`),
    )
})
afterAll(() => database?.drop())

/** Deposits of one pending sender, of one that becomes listed and of one that is listed later; and pending wallets. */
beforeEach(async () => {
  const { db } = database
  screening = createFakeScreening(() => clock.now())
  await db.run(statement('truncate wallet_transactions, byo_wallets, screening_follow cascade'))
  const deposit = { direction: `'in'`, aml_due_at: `'infinity'` }
  const due = `now() + interval '1 day'`
  const ofPending = {
    ...deposit,
    id: `'wtx_a' || n`,
    tx_hash: `'a' || n`,
    aml_status: `'pending'`,
    aml_due_at: due,
    from_address: `'0x' || n`,
  }
  await fillTable(db, 'wallet_transactions', ofPending, { last: pending })
  const fromBad = {
    id: `'wtx_b' || n`,
    tx_hash: `'b' || n`,
    aml_status: `'clear'`,
    from_address: `'0x' || upper('${'b'.repeat(40)}')`,
    created_at: 'now()',
  }
  await fillTable(db, 'wallet_transactions', { ...deposit, ...fromBad }, { last: ofSender })
  const fromLater = {
    id: `'wtx_c' || n`,
    tx_hash: `'c' || n`,
    aml_status: `'clear'`,
    from_address: `'${later}'`,
    created_at: 'now()',
  }
  await fillTable(db, 'wallet_transactions', { ...deposit, ...fromLater }, { last: 1 })
  const wallet = { id: `'byw_' || n`, aml_status: `'pending'`, aml_due_at: due, address: `'0x' || n` }
  await fillTable(db, 'byo_wallets', wallet, { last: wallets })
  await followAll()
  await db.run(statement(`update wallet_transactions set aml_due_at = ${due} where aml_status = 'pending'`))
  await db.run(statement(`update byo_wallets set aml_due_at = ${due}`))
  await db.run(statement('truncate marked_rows'))
})

const followAll = (db: Db = database.db): Promise<void> => followList({ clock, db, screening })

const Count = z.object({ count: z.number() })

/** The number of rows that are due, of those whose id begins so. */
async function dueOf(kind: 'wtx_a' | 'wtx_b' | 'wtx_c' | 'byw_'): Promise<number> {
  const table = kind === 'byw_' ? 'byo_wallets' : 'wallet_transactions'
  const text = `select count(*)::integer as count from ${table} where starts_with(id, '${kind}') and aml_due_at <= now() + interval '1 hour'`
  return (await database.db.one(Count, statement(text))).count
}

const allDue = async (): Promise<number[]> => Promise.all((['wtx_a', 'wtx_b', 'byw_'] as const).map(dueOf))

/** The database of a process that dies before this transaction. */
function dyingAt(transaction: number): Db {
  let begun = 0
  const tx: Db['tx'] = (work, options) => {
    begun += 1
    if (begun >= transaction) return Promise.reject(new Error('the process died'))
    return database.db.tx(work, options)
  }
  return { ...database.db, tx }
}

test('a new list makes all rows that it concerns due, and no transaction marks more than 1,000', async () => {
  screening.swapList([bad])
  await followAll()
  expect(await allDue()).toEqual([pending, ofSender, wallets])
  const most = await database.db.one(Count, sql`select max(rows) as count from marked_rows`)
  expect(most.count).toBeLessThanOrEqual(1_000)
  expect(await dueOf('wtx_c')).toBe(0)
})

test('a process that dies between the steps loses none: another one continues, and marks no row again', async () => {
  screening.swapList([bad])
  await expect(followAll(dyingAt(4))).rejects.toThrow('the process died')
  expect(await dueOf('wtx_b')).toBeGreaterThanOrEqual(1_000)
  await followAll()
  expect(await allDue()).toEqual([pending, ofSender, wallets])
  const all = await database.db.one(Count, sql`select sum(rows)::integer as count from marked_rows`)
  expect(all.count).toBe(pending + ofSender + wallets)
})

test('a list that comes during the steps is followed after them', async () => {
  screening.swapList([bad])
  await expect(followAll(dyingAt(3))).rejects.toThrow('the process died')
  screening.swapList([later])
  await followAll()
  expect(await allDue()).toEqual([pending, ofSender, wallets])
  await followAll()
  expect(await dueOf('wtx_c')).toBe(1)
})

test('many addresses that changed at once are all compared', async () => {
  screening.swapList([...Array.from({ length: 450 }, (_, n) => `0x${n.toString(16).padStart(40, 'a')}`), bad, later])
  await followAll()
  expect([await dueOf('wtx_b'), await dueOf('wtx_c')]).toEqual([ofSender, 1])
})
