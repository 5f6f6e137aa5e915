import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { sql } from './db.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

test('values never become SQL, and nested fragments keep their parameters in order', async () => {
  const evil = "'; drop table jobs; --"
  const inner = sql`select ${evil}::text as a, ${2}::int as b`
  const row = await database.db.one(
    z.object({ a: z.string(), b: z.number(), cValue: z.string() }),
    sql`select t.a, t.b, ${'third'}::text as c_value from (${inner}) t`,
  )
  expect(row).toEqual({ a: evil, b: 2, cValue: 'third' })
})

test('a transaction that throws leaves no changes and does not run its work for after the commit', async () => {
  let followed = false
  const attempt = database.db.tx(async (tx) => {
    await tx.run(sql`insert into audit_heads (organisation_id, sequence, hash) values ('org_x', 0, '')`)
    tx.afterCommit(() => {
      followed = true
    })
    throw new Error('no')
  })
  await expect(attempt).rejects.toThrow('no')
  const rows = await database.db.many(
    z.object({ sequence: z.bigint() }),
    sql`select sequence from audit_heads where organisation_id = 'org_x'`,
  )
  expect(rows).toEqual([])
  expect(followed).toBe(false)
})
