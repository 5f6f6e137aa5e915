import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { instantOf } from '../clock.ts'
import type { Deps } from '../ctx.ts'
import { sql } from '../db/db.ts'
import { job } from '../job.ts'
import { enqueue, leaseJobs } from './queue.ts'
import { startRunner } from './runner.ts'

let database: TestDatabase
let deps: Deps

beforeAll(async () => {
  database = await freshDatabase()
  deps = toyDeps(database.db)
})
afterAll(() => database.drop())

const Payload = z.strictObject({ name: z.string() })
const retry = { attemptsMax: 2, delayMsFirst: 1, delayMsMax: 1 }

function countJobs(where: 'dead' | 'waiting'): Promise<{ count: bigint }> {
  const dead = where === 'dead'
  return database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from jobs where (dead_at is not null) = ${dead}`,
  )
}

test('a job runs if and only if the transaction that queued it commits, once', async () => {
  const ran: string[] = []
  const noted = job({ name: 'toy.note', payload: Payload, retry, run: async (_ctx, { name }) => void ran.push(name) })
  await database.db.tx((tx) => enqueue(deps, tx, noted, { name: 'kept' }))
  await database.db
    .tx(async (tx) => {
      await enqueue(deps, tx, noted, { name: 'undone' })
      throw new Error('no')
    })
    .catch(() => undefined)
  const runners = [startRunner(deps, [noted], []), startRunner(deps, [noted], [])]
  await expect.poll(() => countJobs('waiting')).toEqual({ count: 0n })
  await Promise.all(runners.map((runner) => runner.stop()))
  expect(ran).toEqual(['kept'])
})

test('a job that keeps failing is tried as often as it says and then lies dead, with its error', async () => {
  let tries = 0
  const failing = job({
    name: 'toy.fail',
    payload: Payload,
    retry,
    run: async () => {
      tries += 1
      throw new Error('always')
    },
  })
  await database.db.tx((tx) => enqueue(deps, tx, failing, { name: 'x' }))
  const runner = startRunner(deps, [failing], [])
  await expect.poll(() => countJobs('dead')).toEqual({ count: 1n })
  await runner.stop()
  expect(tries).toBe(2)
})

test('a job leased by a process that died is given to another when the lease ends, and not before', async () => {
  const lost = job({ name: 'toy.lost', payload: Payload, retry, run: async () => undefined })
  await database.db.tx((tx) => enqueue(deps, tx, lost, { name: 'y' }))
  const now = deps.clock.now().getTime()
  const lease = (atMs: number) => leaseJobs(database.db, instantOf(atMs), { most: 10, leaseMs: 1_000 })
  expect((await lease(now + 10)).map((entry) => entry.name)).toEqual(['toy.lost'])
  expect(await lease(now + 900)).toEqual([])
  expect((await lease(now + 2_000)).map((entry) => entry.attempt)).toEqual([2])
})

test('stopping waits for the work under way', async () => {
  const gate = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  let done = false
  const slow = {
    name: 'toy.slow',
    everyMs: 60_000,
    run: async () => {
      started.resolve()
      await gate.promise
      done = true
    },
  }
  const runner = startRunner(deps, [], [slow])
  await started.promise
  const stopped = runner.stop()
  gate.resolve()
  await stopped
  expect(done).toBe(true)
})
