import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { type Fleet, keepFleet } from './fleet.ts'
import { mulberry32, seed } from './seed.ts'
import { type Env, endEveryService, serveEnv } from './service.ts'
import { foundOrganisation } from './stage.ts'
import { countOf, expectBlobs, expectCounters, expectSealed, leftToSweep, makeUploadsOld } from './vault-books.ts'
import { startVaultLoad, type VaultLoad } from './vault-load.ts'

const processes = 2
const kills = 8

let database: TestDatabase
let env: Env
let fleet: Fleet
let key: string

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  env = serveEnv(database.url)
  key = (await foundOrganisation(database.url)).testKey
  fleet = keepFleet(processes, env)
})
afterAll(async () => {
  await endEveryService()
  await database?.drop()
})

test('kill -9 of either of two processes in the middle of uploads, writes and seals: every vault is sealed once, whole, with exactly what was acknowledged', {
  timeout: 720_000,
}, async () => {
  const random = mulberry32(seed)
  const begun = performance.now()
  await fleet.start()
  const load = startVaultLoad({ fleet, key, atOnce: 5, random })
  for (let kill = 0; kill < kills; kill++) {
    await someMoment(random, load)
    // At times no process is left.
    if (random() < 0.2) await Promise.all([fleet.kill(0), fleet.kill(1)])
    else await fleet.kill(Math.floor(random() * processes))
  }
  await load.stop()
  expect(await countOf(database.db, sql`select count(*) as count from vault_uploads`)).toBeGreaterThan(0)

  const reader = { base: await fleet.where(0), key, env, db: database.db }
  const totals = await expectSealed(reader, load.lives)
  await expectCounters(reader)
  await makeUploadsOld(reader)
  // A process sweeps as soon as it starts.
  await fleet.kill(1)
  await expect.poll(() => leftToSweep(reader), { timeout: 180_000, interval: 200 }).toBe(0)
  const stored = await expectBlobs(reader)
  await expectCounters(reader)
  console.log(
    `seed ${seed}, ${kills} kills, ${Math.round(performance.now() - begun)} ms: ${load.lives.length} vaults, ${stored} blobs, ${JSON.stringify(totals)} ${JSON.stringify(load.counts)}`,
  )
  expect(Object.keys(load.counts), 'the kills met requests under way').toEqual(
    expect.arrayContaining(['file lost', 'document lost']),
  )
  expect(await fleet.end('SIGTERM')).toEqual([0, 0])
})

/** Waits for one of these: some answers, an upload in progress, a written seal. Then waits a little longer. */
async function someMoment(random: () => number, load: VaultLoad): Promise<void> {
  const moments = [
    { grown: 1 + Math.floor(random() * 12), count: async () => load.acknowledged() },
    { grown: 0, count: () => countOf(database.db, sql`select least(count(*), 1) as count from vault_uploads`) },
    {
      grown: 1,
      count: () => countOf(database.db, sql`select count(*) as count from vaults where sealed_at is not null`),
    },
  ]
  const moment = moments[Math.floor(random() * moments.length)]
  if (moment === undefined) throw new Error('no such moment')
  const enough = Math.max(1, (await moment.count()) + moment.grown)
  await expect.poll(moment.count, { timeout: 90_000, interval: 10 }).toBeGreaterThanOrEqual(enough)
  await delay(random() * 60)
}
