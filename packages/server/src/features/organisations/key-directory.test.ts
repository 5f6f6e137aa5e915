import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type World } from '../../../test/world.ts'
import { type Db, sql } from '../../platform/db/db.ts'
import { createKeyDirectory } from './index.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

const hashOf = (key: string) => createHash('sha256').update(key).digest()

function countingDb(db: Db): { readonly db: Db; readonly statements: string[] } {
  const statements: string[] = []
  const counted: Db = {
    ...db,
    many: (row, statement) => {
      statements.push(statement.text)
      return db.many(row, statement)
    },
    run: (statement) => {
      statements.push(statement.text)
      return db.run(statement)
    },
  }
  return { db: counted, statements }
}

function aClock(at: string) {
  let now = new Date(at)
  return {
    now: () => now,
    set(next: string) {
      now = new Date(next)
    },
  }
}

/** Returns the last use of the test key and then of the live key: two ids of one millisecond have no fixed order. */
async function lastUsed(organisationId: string): Promise<(string | null)[]> {
  const rows = await world.database.db.many(
    z.object({ lastUsedAt: z.date().nullable() }),
    sql`select last_used_at from api_keys where organisation_id = ${organisationId} order by environment desc`,
  )
  return rows.map((row) => row.lastUsedAt?.toISOString() ?? null)
}

test('a hundred parallel requests share one statement, and each gets its own identity or none', async () => {
  const orgs = await Promise.all([world.organisation(), world.organisation()])
  const { db, statements } = countingDb(world.database.db)
  const directory = createKeyDirectory({ db, clock: aClock('2026-01-01T00:00:00Z') })
  const keys = Array.from({ length: 100 }, (_, n) => [orgs[0].testKey, orgs[1].liveKey, `unknown ${n}`][n % 3] ?? '')
  const found = await Promise.all(keys.map((key) => directory.findKey(hashOf(key))))
  expect(statements.filter((text) => text.includes('select key_hash'))).toHaveLength(1)
  found.forEach((identity, n) => {
    const org = [orgs[0], orgs[1]][n % 3]
    if (org === undefined) expect(identity).toBeUndefined()
    else expect(identity).toMatchObject({ organisationId: org.id, environment: n % 3 === 0 ? 'test' : 'live' })
  })
  await directory.stop()
})

test('when a key was last used is known to the minute, written at most once a minute, and not lost on stopping', async () => {
  const org = await world.organisation()
  const clock = aClock('2026-01-01T10:00:59.900Z')
  const { db, statements } = countingDb(world.database.db)
  const directory = createKeyDirectory({ db, clock })
  const writes = () => statements.filter((text) => text.includes('update api_keys')).length
  for (let n = 0; n < 20; n++) await directory.findKey(hashOf(org.testKey))
  await directory.stop()
  expect(await lastUsed(org.id)).toEqual(['2026-01-01T10:00:00.000Z', null])
  expect(writes()).toBe(1)
  clock.set('2026-01-01T10:01:00.000Z')
  for (let n = 0; n < 20; n++) await directory.findKey(hashOf(org.testKey))
  await directory.stop()
  expect(await lastUsed(org.id)).toEqual(['2026-01-01T10:01:00.000Z', null])
  expect(writes()).toBe(2)
})

test('a process whose clock is behind does not set back when a key was last used', async () => {
  const org = await world.organisation()
  for (const at of ['2026-01-01T10:05:00Z', '2026-01-01T10:03:00Z']) {
    const directory = createKeyDirectory({ db: world.database.db, clock: aClock(at) })
    await directory.findKey(hashOf(org.liveKey))
    await directory.stop()
  }
  expect(await lastUsed(org.id)).toEqual([null, '2026-01-01T10:05:00.000Z'])
})

test('no request waits for the record of its use, and a failed record fails no request', async () => {
  const org = await world.organisation()
  const pending = Promise.withResolvers<number>()
  const clock = aClock('2026-01-01T10:00:00Z')
  const directory = createKeyDirectory({ db: { ...world.database.db, run: () => pending.promise }, clock })
  expect(await directory.findKey(hashOf(org.testKey))).toMatchObject({ organisationId: org.id })
  pending.reject(new Error('the database is gone'))
  await directory.stop()
  expect(await directory.findKey(hashOf(org.testKey))).toMatchObject({ organisationId: org.id })
  await directory.stop()
})
