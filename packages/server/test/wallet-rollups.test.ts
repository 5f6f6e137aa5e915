import { expect, test } from 'vitest'
import { z } from 'zod'
import { type Db, type Sql, sql } from '../src/platform/db/db.ts'
import { listMigrations, migrate } from '../src/platform/db/migrate.ts'
import { anEmptyDatabase, freshDatabase } from './database.ts'
import { listWrongRollups } from './wrong-rollups.ts'

/** Books movements as the watcher does, one for each of these numbers: of one of 900 wallets, in one of many blocks. */
function book(db: Db, first: number, last: number): Promise<number> {
  return db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at)
    select 'wtx_' || lpad(n::text, 26, '0'), 'org_' || n % 900 % 7, 'test', 'cad_' || n % 900, 'base-sepolia', 'base', '0x' || n, 0,
      case when n % 3 = 0 then 'out' else 'in' end, 'transfer', case when n % 11 = 0 then 'withdrawn' else 'pending' end, '0xtoken', 'USDC', 6, n,
      '0x1', '0x2', n * 5000 % 400000, '0xblock', now(), now()
    from generate_series(${first}::integer, ${last}::integer) as n`)
}

const change = async (db: Db, change: Sql, n: number): Promise<number> =>
  db.run(sql`update wallet_transactions set ${change} where tx_hash = ${`0x${n}`}`)

test('a balance of a span of blocks follows each row that comes, is withdrawn, comes back or moves to another block', async () => {
  const { db, drop } = await freshDatabase()
  await book(db, 1, 2_000)
  expect(await listWrongRollups(db)).toEqual([])
  const steps = [
    sql`status = 'withdrawn'`,
    sql`status = 'withdrawn', block_number = block_number + 20000`,
    sql`status = 'pending'`,
    sql`block_number = block_number + 1`,
    sql`status = 'pending', block_number = block_number + 40000`,
    sql`status = 'confirmed', aml_status = 'clear'`,
  ]
  for (let n = 1; n <= 60; n += 1) {
    const step = steps[n % steps.length]
    if (step !== undefined) await change(db, step, n % 12)
    expect(await listWrongRollups(db), String(n)).toEqual([])
  }
  await drop()
})

test('an ordinary confirmation or screening writes no balance', async () => {
  const { db, drop } = await freshDatabase()
  await book(db, 1, 20)
  const state = () =>
    db.many(z.looseObject({}), sql`select xmin::text, ctid::text from wallet_rollups order by wallet_id, span`)
  const before = await state()
  await db.run(
    sql`update wallet_transactions set status = 'confirmed', confirmed_at = now(), aml_status = 'clear' where status = 'pending'`,
  )
  expect(await state()).toEqual(before)
  await drop()
})

test('a migration adds up old rows while the previous version books, and adds nothing twice when it was interrupted', async () => {
  const { db, url, drop } = await anEmptyDatabase()
  const all = await listMigrations()
  const first = all.findIndex(({ name }) => name.endsWith('_wallet_rollups.sql'))
  await migrate({ url, migrations: all.slice(0, first) })
  await book(db, 1, 3_000)
  let booked = 3_000
  let isMigrating = true
  const booking = (async () => {
    while (isMigrating) {
      await book(db, booked + 1, booked + 10)
      await change(db, sql`status = 'withdrawn'`, booked - 5)
      booked += 10
    }
  })()
  await migrate({ url })
  isMigrating = false
  await booking
  expect(booked).toBeGreaterThan(3_000)
  expect(await listWrongRollups(db)).toEqual([])
  const spans = sql`select count(*) as count from wallet_rollups`
  const { count } = await db.one(z.object({ count: z.bigint() }), spans)
  expect(count).toBeGreaterThan(900n)
  await db.run(sql`delete from schema_migrations where name like '%rollups_of_old_wallet%'`)
  await migrate({ url })
  expect(await listWrongRollups(db)).toEqual([])
  await drop()
}, 60_000)
