import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { counting } from '../../../test/counting-db.ts'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { type Sql, sql } from '../db/db.ts'
import { createLog } from '../log.ts'
import { createProbe, startDueLoop } from './due-work.ts'

let database: TestDatabase
const stops: (() => Promise<void>)[] = []
const log = createLog({ level: 'silent' })

beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(sql`create table toy_work (name text primary key)`)
})
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
  await database.db.run(sql`delete from toy_work`)
})
afterAll(() => database.drop())

const waits = (name: string): Sql => sql`exists (select from toy_work where name = ${name})`

/** A probe, a way to watch for work of a name, and the statements that it sent. */
function aProbe() {
  const { db, statements } = counting(database.db)
  const probe = createProbe({ db, log })
  const watch = (isDue: () => Sql, everyMs = 0): number[] => {
    const wokenAtMs: number[] = []
    stops.push(probe.watch({ isDue, everyMs, wake: () => wokenAtMs.push(performance.now()) }))
    return wokenAtMs
  }
  return { probe, statements, watch }
}

const enqueue = (name: string) => database.db.run(sql`insert into toy_work values (${name})`)

test('one statement asks for all watchers, and only those that have work are woken, by any process that commits it', async () => {
  const { statements, watch } = aProbe()
  const [first, second] = [watch(() => waits('first')), watch(() => waits('second'))]
  await expect.poll(() => statements.length).toBeGreaterThan(3)
  expect([first.length, second.length]).toEqual([0, 0])
  await enqueue('second')
  await expect.poll(() => second.length).toBeGreaterThan(2)
  expect(first).toEqual([])
  expect(new Set(statements.slice(1)).size).toBe(1)
  await enqueue('first')
  await expect.poll(() => first.length).toBeGreaterThan(2)
})

test('a watcher whose work stays due is woken at its own interval', async () => {
  const { watch } = aProbe()
  await enqueue('slow')
  const [often, seldom] = [watch(() => waits('slow')), watch(() => waits('slow'), 400)]
  await expect.poll(() => seldom.length, { timeout: 10_000 }).toBe(3)
  // The probe notes the time a moment before it wakes the watcher.
  expect((seldom[1] ?? 0) - (seldom[0] ?? 0)).toBeGreaterThan(350)
  expect(often.length).toBeGreaterThan(3)
})

test('while the statement fails, because of one condition or of the database, every watcher looks by itself', async () => {
  const { watch } = aProbe()
  const works = watch(() => waits('absent'))
  const broken = watch(() => sql`exists (select from no_such_table)`)
  await expect.poll(() => Math.min(works.length, broken.length), { timeout: 10_000 }).toBeGreaterThan(1)
})

test('a loop runs at its start and then only for work, and after it has stopped nothing is sent', async () => {
  const { probe, statements } = aProbe()
  const found: string[] = []
  const run = async (): Promise<undefined> => void found.push('run')
  const onDue = (): unknown => found.push('due')
  const loop = startDueLoop({ name: 'toy', everyMs: 50, probe, isDue: () => waits('toy'), onDue, log, run })
  await expect.poll(() => statements.length).toBeGreaterThan(4)
  expect(found).toEqual(['run'])
  await enqueue('toy')
  await expect.poll(() => found.length).toBeGreaterThan(4)
  expect(found.slice(0, 3)).toEqual(['run', 'due', 'run'])
  await loop.stop()
  const sent = statements.length
  await database.db.run(sql`select pg_sleep(0.3)`)
  expect(statements).toHaveLength(sent)
})
