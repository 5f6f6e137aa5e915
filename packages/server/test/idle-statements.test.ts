import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type DevChain, type Postgres, startChain, startPostgres } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { openDb, sql } from '../src/platform/db/db.ts'
import { migrate } from '../src/platform/db/migrate.ts'
import { createLog } from '../src/platform/log.ts'
import type { TestDatabase } from './database.ts'
import { aWorld, type World } from './world.ts'

const perSecondMax = 20
/** Runs that follow a start are over after the first of these. */
const startMs = 5_000
const watchedMs = 8_000
/** Work that becomes due in one interval, as that of each quarter of an hour, does not become due in all of these. */
const intervalsMax = 3

let place: string
let postgres: Postgres | undefined
let chain: DevChain | undefined
let database: TestDatabase
let world: World | undefined

// A PostgreSQL of its own, which counts the statements of its clients.
beforeAll(async () => {
  place = mkdtempSync(path.join(tmpdir(), 'purser-idle-'))
  chain = await startChain({ network: 'base-sepolia' })
  postgres = await startPostgres({
    dataDir: place,
    settings: {
      fsync: 'off',
      shared_preload_libraries: 'pg_stat_statements',
      'pg_stat_statements.track_utility': 'off',
    },
  })
  const { url } = postgres
  await migrate({ url })
  const db = openDb({ url, connectionsMax: 2, log: createLog({ level: 'silent' }) })
  database = { db, url, drop: () => db.close() }
  await db.run(sql`create extension pg_stat_statements`)
})
afterAll(async () => {
  await world?.stop()
  await postgres?.stop()
  await chain?.stop()
  rmSync(place, { recursive: true, force: true })
})

const Counted = z.object({ query: z.string(), calls: z.bigint() })

interface Watched {
  readonly perSecond: number
  readonly list: string
}

/** Returns the first of a few intervals with fewer statements a second than the limit, or else the last. */
async function watch(perSecondMost: number): Promise<Watched> {
  await delay(startMs)
  for (let interval = 1; ; interval += 1) {
    const watched = await watchOnce()
    if (watched.perSecond < perSecondMost || interval === intervalsMax) return watched
  }
}

/** The statements of a few seconds, each with its number a second, the most frequent first. */
async function watchOnce(): Promise<Watched> {
  await database.db.run(sql`select pg_stat_statements_reset()`)
  const beganMs = performance.now()
  await delay(watchedMs)
  const rows = await database.db.many(
    Counted,
    sql`select query, sum(calls)::bigint as calls from pg_stat_statements where query not like '%pg_stat_statements%' group by query order by 2 desc`,
  )
  const seconds = (performance.now() - beganMs) / 1_000
  const rates = rows.map(({ query, calls }) => ({ query, rate: Number(calls) / seconds }))
  const lines = rates.map(({ query, rate }) => `${rate.toFixed(2)} ${query.replace(/\s+/g, ' ').slice(0, 120)}`)
  return { perSecond: rates.reduce((sum, { rate }) => sum + rate, 0), list: lines.join('\n') }
}

test('an idle process of all roles with one network sends fewer than 20 statements a second, and a second process no more', async () => {
  const idle = await aWorld({
    database,
    chains: [chain ?? []].flat(),
    boot: { depositPollMsMax: 3_000, probe: undefined },
  })
  world = idle
  const one = await watch(perSecondMax)
  expect(one.perSecond, one.list).toBeLessThan(perSecondMax)
  // Work is looked for all the time, or the figure says nothing.
  expect(one.perSecond, one.list).toBeGreaterThan(5)
  await idle.another({ role: 'work' })
  const two = await watch(2 * perSecondMax)
  expect(two.perSecond, two.list).toBeLessThan(2 * perSecondMax)
})
