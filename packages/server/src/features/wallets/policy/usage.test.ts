import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { anEmptyDatabase, freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { rowsRead } from '../../../../test/rows-read.ts'
import { instantOf } from '../../../platform/clock.ts'
import { type Db, sql } from '../../../platform/db/db.ts'
import { listMigrations, migrate } from '../../../platform/db/migrate.ts'
import { windowStartsAt } from './decide.ts'
import { addUpUsage, type Since, sumUsages, type UsageQuestion } from './usage-store.ts'

let database: TestDatabase
let db: Db

const tenant = { organisationId: 'org_1', environment: 'test' } as const
const now = new Date()
const starts = windowStartsAt(now.getTime())
const since: Since = {
  perHour: instantOf(starts.perHour),
  perDay: instantOf(starts.perDay),
  perMonth: instantOf(starts.perMonth),
}
const wallets = ['mwt_1', 'mwt_2', 'mwt_3'] as const

beforeAll(async () => {
  database = await freshDatabase()
  db = database.db
  await makeWallets(db)
})
afterAll(() => database?.drop())

async function makeWallets(on: Db): Promise<void> {
  await on.run(
    sql`insert into organisations (id, name, type, plan, created_at) values ('org_1', 'Acme', 'team', 'enterprise', now())`,
  )
  await on.run(sql`
    insert into master_wallets (id, organisation_id, environment, account, address, chain, network, supported_tokens, key_version, public_key,
      chain_code, next_child, created_at)
    select id, 'org_1', 'test', n, '0x' || n, 'base', 'base-sepolia', '{USDC}', 1, decode(repeat('02', 33), 'hex'), decode(repeat('03', 32), 'hex'), 1, now()
    from unnest(${wallets}::text[]) with ordinality as given (id, n)`)
}

/** Counts movements of a wallet, the newest now and each of the others some seconds before the next. */
function reserve(
  on: Db,
  wallet: string,
  { first, last, seconds }: { first: number; last: number; seconds: number },
): Promise<number> {
  return on.run(sql`
    insert into policy_reservations (subject_id, organisation_id, environment, master_wallet_id, operation, token, atto_amount, reserved_at)
    select ${wallet}::text || ' ' || n, 'org_1', 'test', ${wallet}, 'transfer', case when n % 5 = 0 then 'EURC' else 'USDC' end, n,
      ${now}::timestamptz - ((n - ${first}::integer) * ${seconds}::integer) * interval '1 second'
    from generate_series(${first}::integer, ${last}::integer) as n`)
}

/** Each sum, from the movements alone. */
async function sumsOf(on: Db, { masterWalletId, token, except }: UsageQuestion) {
  const Sums = z.object({ perHour: z.string(), perDay: z.string(), perMonth: z.string() })
  const sums = await on.one(
    Sums,
    sql`
    select coalesce(sum(atto_amount) filter (where reserved_at > ${since.perHour}), 0)::text as per_hour,
      coalesce(sum(atto_amount) filter (where reserved_at > ${since.perDay}), 0)::text as per_day,
      coalesce(sum(atto_amount) filter (where reserved_at > ${since.perMonth}), 0)::text as per_month
    from policy_reservations
    where master_wallet_id = ${masterWalletId} and token = ${token} and released_at is null and subject_id <> all(${except}::text[])`,
  )
  return { perHour: BigInt(sums.perHour), perDay: BigInt(sums.perDay), perMonth: BigInt(sums.perMonth) }
}

async function expectExact(on: Db): Promise<void> {
  const questions = wallets.flatMap((masterWalletId) =>
    ['USDC', 'EURC'].map((token) => ({
      masterWalletId,
      token,
      except: [1, 7, 301].map((n) => `${masterWalletId} ${n}`),
    })),
  )
  const wanted = await Promise.all(questions.map((question) => sumsOf(on, question)))
  expect(await sumUsages(on, tenant, questions, since)).toEqual(wanted)
}

test('what left in an hour, a day and a month is exact after each kind of change, before and after changes are added up', async () => {
  for (const [at, wallet] of wallets.entries())
    await reserve(db, wallet, { first: 1, last: 600, seconds: [7, 700, 7_000][at] ?? 1 })
  const steps = [
    () => reserve(db, 'mwt_1', { first: 601, last: 650, seconds: 60 }),
    () =>
      db.run(
        sql`update policy_reservations set released_at = now() where subject_id in ('mwt_1 2', 'mwt_2 3', 'mwt_1 601')`,
      ),
    () => db.run(sql`update policy_reservations set atto_amount = atto_amount * 3 where subject_id like 'mwt_1 1%'`),
    () =>
      db.run(
        sql`update policy_reservations set reserved_at = reserved_at - interval '20 minutes' where subject_id like 'mwt_1 4%'`,
      ),
    () => db.run(sql`update policy_reservations set reserved_at = ${since.perMonth} where subject_id = 'mwt_2 11'`),
    () =>
      db.run(
        sql`update policy_reservations set reserved_at = ${instantOf(Math.ceil(starts.perDay / 900_000) * 900_000)} where subject_id = 'mwt_2 12'`,
      ),
    () => db.run(sql`delete from policy_reservations where subject_id in ('mwt_3 4', 'mwt_1 2')`),
    () => db.run(sql`update policy_reservations set released_at = null where subject_id = 'mwt_2 3'`),
  ]
  for (const step of steps) {
    await step()
    await expectExact(db)
    await addUpUsage(db)
    await expectExact(db)
  }
  expect(await addUpUsage(db)).toBe(0)
})

test('a statement appends one change for each wallet, token and quarter, however many movements it counts, changes or deletes', async () => {
  while ((await addUpUsage(db)) > 0);
  const appended = async () =>
    (await db.one(z.object({ count: z.bigint() }), sql`select count(*) as count from policy_usage_changes`)).count
  await reserve(db, 'mwt_3', { first: 20_001, last: 20_500, seconds: 0 })
  expect(await appended(), 'inserted').toBe(2n)
  await db.run(sql`update policy_reservations set atto_amount = atto_amount + 1 where subject_id like 'mwt_3 20___'`)
  expect(await appended(), 'changed').toBe(4n)
  await db.run(sql`update policy_reservations set operation = operation where subject_id like 'mwt_3 20___'`)
  expect(await appended(), 'unchanged').toBe(4n)
  await db.run(sql`delete from policy_reservations where subject_id like 'mwt_3 20___'`)
  expect(await appended(), 'deleted').toBe(6n)
  await expectExact(db)
})

test('a week of 8,000 movements is summed from fewer than 1,000 rows', async () => {
  await reserve(db, 'mwt_1', { first: 1_001, last: 11_000, seconds: 60 })
  while ((await addUpUsage(db)) > 0);
  await db.run(sql`vacuum (analyze) policy_reservations`)
  await db.run(sql`vacuum (analyze) policy_usage`)
  await expectExact(db)
  for (const mode of ['force_generic_plan', 'force_custom_plan']) {
    const rows = await db.tx(async (tx) => {
      await tx.run(sql`select set_config('plan_cache_mode', ${mode}, true)`)
      const before = await rowsRead(tx, '^policy_')
      await sumUsages(tx, tenant, [{ masterWalletId: 'mwt_1', token: 'USDC', except: ['mwt_1 7'] }], since)
      return (await rowsRead(tx, '^policy_')) - before
    })
    expect(rows, mode).toBeLessThan(1_000n)
  }
})

test('changes that twenty transactions make at once are all counted, and no writer waits for another', async () => {
  const added = Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      db.tx(async (tx) => {
        await tx.run(sql`
        insert into policy_reservations (subject_id, organisation_id, environment, master_wallet_id, operation, token, atto_amount, reserved_at)
        values (${`at once ${n}`}, 'org_1', 'test', 'mwt_2', 'transfer', 'USDC', ${n + 1}, ${now})`)
        if (n % 3 === 0)
          await tx.run(sql`update policy_reservations set atto_amount = 100 where subject_id = ${`at once ${n}`}`)
      }),
    ),
  )
  const adding = Array.from({ length: 10 }, () => addUpUsage(db))
  await Promise.all([added, ...adding])
  await expectExact(db)
  while ((await addUpUsage(db)) > 0);
  await expectExact(db)
})

test('a migration counts old movements while the previous version reserves', async () => {
  const empty = await anEmptyDatabase()
  const all = await listMigrations()
  const first = all.findIndex(({ name }) => name.endsWith('_policy_usage.sql'))
  await migrate({ url: empty.url, migrations: all.slice(0, first) })
  await makeWallets(empty.db)
  for (const [at, wallet] of wallets.entries())
    await reserve(empty.db, wallet, { first: 1, last: 400, seconds: [7, 700, 7_000][at] ?? 1 })
  let isMigrating = true
  const reserving = (async () => {
    for (let n = 500; isMigrating; n += 1) {
      await reserve(empty.db, 'mwt_1', { first: n, last: n, seconds: 1 })
      if (n % 3 === 0)
        await empty.db.run(sql`update policy_reservations set released_at = now() where subject_id = ${`mwt_1 ${n}`}`)
    }
  })()
  await migrate({ url: empty.url })
  isMigrating = false
  await reserving
  await expectExact(empty.db)
  await addUpUsage(empty.db)
  await expectExact(empty.db)
  await empty.drop()
}, 60_000)
