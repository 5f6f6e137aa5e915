import { networkByName } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Deps } from '../ctx.ts'
import { openDb, sql } from '../db/db.ts'
import { insertShares, takeLeases } from '../leases/store.ts'
import { createLog } from '../log.ts'
import { type BoundTask, repeatWhile } from '../recurring-task.ts'
import { startLoop } from './loop.ts'
import { bindTasks, type Runner, scopeOf, startRunner } from './runner.ts'

let database: TestDatabase
let deps: Deps
const runners: Runner[] = []

beforeAll(async () => {
  database = await freshDatabase()
  deps = toyDeps(database.db)
})
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.stop()
  await database.db.run(sql`delete from leases`)
})
afterAll(() => database.drop())

function start(recurring: readonly BoundTask[], { leaseMs = 60_000, own = deps } = {}): Runner {
  const runner = startRunner(own, recurring, leaseMs)
  runners.push(runner)
  return runner
}

/** A task that records when it ran, by a monotonic clock. */
function aTask(everyMs = 10) {
  const ranAtMs: number[] = []
  const task: BoundTask = { name: 'toy.task', everyMs, run: async () => void ranAtMs.push(performance.now()) }
  return { task, ranAtMs }
}

test('of several processes one at a time runs a task, and when it stops another does immediately', async () => {
  let inside = 0
  let insideMost = 0
  const counts = [0, 0, 0]
  const own = counts.map((_, index) =>
    start([
      {
        name: 'toy.shared',
        everyMs: 5,
        run: async () => {
          inside += 1
          insideMost = Math.max(insideMost, inside)
          await database.db.run(sql`select pg_sleep(0.01)`)
          counts[index] = (counts[index] ?? 0) + 1
          inside -= 1
        },
      },
    ]),
  )
  const running = () => counts.filter((count) => count > 0).length
  await expect.poll(() => Math.max(...counts)).toBeGreaterThan(5)
  expect(running()).toBe(1)
  const first = counts.findIndex((count) => count > 0)
  await own[first]?.stop()
  const before = counts[first]
  await expect.poll(running, { timeout: 25_000 }).toBe(2)
  expect([insideMost, counts[first]]).toEqual([1, before])
})

test('a task whose process vanished with its connections open is run by another when the lease ends, and not before', async () => {
  const { task, ranAtMs } = aTask()
  const leaseMs = 1_500
  const shares = [{ scope: scopeOf(task), shard: 0 }]
  await insertShares(database.db, shares)
  const vanished = openDb({ url: database.url, connectionsMax: 1, log: createLog({ level: 'silent' }) })
  const beganAtMs = performance.now()
  await takeLeases(vanished, shares, { ownerToken: 'vanished', leaseMs })
  start([task], { leaseMs })
  await expect.poll(() => ranAtMs.length, { timeout: 10_000 }).toBeGreaterThan(0)
  await vanished.close()
  expect((ranAtMs[0] ?? 0) - beganAtMs).toBeGreaterThan(leaseMs - 50)
})

test('a process whose leases ended while it could not renew them begins nothing, even if the database has no other holder', async () => {
  const { task, ranAtMs } = aTask()
  // Statements of this process no longer reach the database; its timers still run.
  const { promise: never, reject } = Promise.withResolvers<never>()
  never.catch(() => undefined)
  let isCut = false
  const cut: Deps['db'] = {
    ...database.db,
    many: (row, statement) => (isCut ? never : database.db.many(row, statement)),
    one: (row, statement) => (isCut ? never : database.db.one(row, statement)),
    run: (statement) => (isCut ? never : database.db.run(statement)),
  }
  const loops = startRunner({ ...deps, db: cut }, [task], 2_000)
  await expect.poll(() => ranAtMs.length).toBeGreaterThan(2)
  isCut = true
  const cutAtMs = performance.now()
  const Past = z.object({ isPast: z.boolean() })
  const ended = sql`select until < clock_timestamp() - interval '500 ms' as is_past from leases where scope = ${scopeOf(task)}`
  await expect.poll(() => database.db.one(Past, ended), { timeout: 10_000 }).toEqual({ isPast: true })
  expect(ranAtMs.length).toBeGreaterThan(2)
  expect(Math.max(...ranAtMs) - cutAtMs, 'nothing later than the length of a lease').toBeLessThan(2_500)
  isCut = false
  reject(new Error('the process is back'))
  await loops.stop()
})

test('an hourly task runs as soon as its lease is taken', async () => {
  const { task, ranAtMs } = aTask(3_600_000)
  start([task])
  await expect.poll(() => ranAtMs.length).toBe(1)
})

test('a failed task is run again, is counted as failed, and delays no other', async () => {
  const { task, ranAtMs } = aTask()
  let tries = 0
  const failing: BoundTask = {
    name: 'toy.fail',
    everyMs: 10,
    run: async () => {
      tries += 1
      throw new Error('always')
    },
  }
  start([failing, task])
  await expect.poll(() => Math.min(tries, ranAtMs.length)).toBeGreaterThan(4)
  // A run is counted when it ends, so the present one may not be counted yet.
  const counted = async (labels: string): Promise<number> => {
    const text = await deps.metrics.registry.metrics()
    return Number(new RegExp(`^purser_tasks_total\\{${labels}\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
  }
  expect(await counted('task="toy.fail",outcome="failed"')).toBeGreaterThan(3)
  expect(await counted('task="toy.task",outcome="done"')).toBeGreaterThan(3)
})

test('stopping waits for the current work', async () => {
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
  const runner = start([slow])
  await started.promise
  const stopped = runner.stop()
  gate.resolve()
  await stopped
  expect(done).toBe(true)
})

test('a loop that is woken during a run runs once more immediately, and one that returns a time waits for that', async () => {
  let runs = 0
  const first = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const loop = startLoop({
    name: 'toy.loop',
    everyMs: 3_600_000,
    log: deps.log,
    run: async () => {
      runs += 1
      first.resolve()
      await gate.promise
      return runs < 5 ? 1 : undefined
    },
  })
  await first.promise
  loop.wake()
  gate.resolve()
  await expect.poll(() => runs).toBe(5)
  loop.wake()
  await expect.poll(() => runs).toBe(6)
  await loop.stop()
})

test('the work of a network waits for no other network, and is not begun twice on one', async () => {
  const response = Promise.withResolvers<void>()
  const [base, ethereum] = [networkNamed('base'), networkNamed('ethereum')]
  const ran: string[] = []
  const [loop] = bindTasks(deps, [
    {
      name: 'toy.by-network',
      everyMs: 10,
      networks: () => [base, ethereum],
      isDue: () => sql`true`,
      async runOn(_, { name }) {
        ran.push(name)
        if (name === 'base') await response.promise
        if (name === 'ethereum') throw new Error('a node does not answer')
      },
    },
  ])
  const begun: Promise<void>[] = []
  for (const _ of [1, 2, 3]) {
    await loop?.run((work) => begun.push(work))
    await begun.at(-1)
  }
  expect(ran).toEqual(['base', 'ethereum', 'ethereum', 'ethereum'])
  response.resolve()
  await Promise.all(begun)
  await loop?.run()
  expect(ran.slice(4)).toEqual(['base', 'ethereum'])
})

test('work is repeated while there is more, up to its bound, and until the process stops', async () => {
  const timesOf = async (stopsAt: number, timesMax?: number) => {
    const stopping = new AbortController()
    let times = 0
    const piece = async () => {
      times += 1
      if (times === stopsAt) stopping.abort()
      return times < 5
    }
    await repeatWhile({ stopping: stopping.signal }, piece, timesMax)
    return times
  }
  expect([await timesOf(9), await timesOf(9, 3), await timesOf(2, 3)]).toEqual([5, 3, 2])
})

test('the work of a network sees that the process stops', async () => {
  const seen: (AbortSignal | undefined)[] = []
  const [loop] = bindTasks(deps, [
    {
      name: 'toy.by-network',
      everyMs: 10,
      networks: () => [networkNamed('base')],
      isDue: () => sql`true`,
      runOn: async ({ stopping }) => void seen.push(stopping),
    },
  ])
  const { signal } = new AbortController()
  const begun: Promise<void>[] = []
  await loop?.run(Object.assign((work: Promise<void>) => void begun.push(work), { stopping: signal }))
  await Promise.all(begun)
  expect(seen).toEqual([signal])
})

function networkNamed(name: string) {
  const network = networkByName(name)
  if (network === undefined) throw new Error('no such network')
  return network
}

test('a runner that stops tells the work detach its runs to begin nothing further, and waits for what is in progress', async () => {
  const begun = Promise.withResolvers<AbortSignal | undefined>()
  const inProgress = Promise.withResolvers<void>()
  const runner = start([
    {
      name: 'toy.detach',
      everyMs: 10,
      async run(detach) {
        detach?.(inProgress.promise)
        begun.resolve(detach?.stopping)
      },
    },
  ])
  const stopping = await begun.promise
  expect(stopping?.aborted).toBe(false)
  const stopped = runner.stop()
  expect(stopping?.aborted).toBe(true)
  inProgress.resolve()
  await stopped
})
