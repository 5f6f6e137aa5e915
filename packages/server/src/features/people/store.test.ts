import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { sql } from '../../platform/db/db.ts'
import { deleteExpiredProofs, deleteExpiredSignIns } from './store.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

test('however many proofs strangers begin and leave, each sweep deletes all that ended, and no other', async () => {
  const { db } = database
  const now = new Date('2026-11-27T12:00:00Z')
  const at = (seconds: number) => new Date(now.getTime() + seconds * 1_000)
  for (const [first, end] of [
    [0, at(-1)],
    [5_000, at(1)],
  ] as const)
    await db.run(sql`
      insert into auth."verification" ("id", "identifier", "value", "expiresAt", "createdAt", "updatedAt")
      select 'vrf_' || n, 'passkey', 'x', ${end}, ${now}, ${now} from generate_series(${first + 1}::int, ${first + 3_500}::int) n`)
  await db.run(sql`
    insert into auth.sign_in_links (token_hash, email, created_at, expires_at)
    select decode(md5(n::text), 'hex'), 'a@example.com', ${now}, case when n <= 2500 then ${at(-1)}::timestamptz else ${at(1)} end
    from generate_series(1, 2501) n`)
  await deleteExpiredProofs({ db }, now)
  await deleteExpiredSignIns({ db }, now)
  const left = await db.one(
    z.object({ proofs: z.bigint(), links: z.bigint() }),
    sql`select (select count(*) from auth."verification") as proofs, (select count(*) from auth.sign_in_links) as links`,
  )
  expect(left).toEqual({ proofs: 3_500n, links: 1n })
})
