import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { formOf, upload } from '../files/uploads.ts'
import { request } from '../world.ts'
import { type Fleet, keepFleet } from './fleet.ts'
import { killAt, type Moment } from './moments.ts'
import { mulberry32, seed } from './seed.ts'
import { type Env, endEveryService, serveEnv } from './service.ts'
import { foundOrganisation } from './stage.ts'
import { countOf, expectBlobs, expectCounters, leftToSweep } from './vault-books.ts'

const processes = 3
const kills = 6

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

async function post(path: string, body?: unknown): Promise<string> {
  const response = await request(await fleet.where(0), { key, method: 'POST', path, body })
  expect(response.status, JSON.stringify(response.body)).toBeLessThan(300)
  return String(response.body.id)
}

/** Vaults with one of everything in them: every third is sealed, every ninth never expires. */
async function filledVaults(count: number): Promise<{ readonly ending: string[]; readonly kept: string[] }> {
  const [ending, kept]: [string[], string[]] = [[], []]
  for (let made = 0; made < count; made += 10)
    await Promise.all(Array.from({ length: 10 }, (_, turn) => fill(made + turn)))
  return { ending, kept }

  async function fill(turn: number): Promise<void> {
    const vaultId = await post('/vaults', { ttl: '9h' })
    await post(`/vaults/${vaultId}/documents`, { name: 'a', data: { turn } })
    const body = formOf({ filename: 'a.bin', content: Buffer.alloc(2_000) })
    await upload(await fleet.where(turn), { key, vaultId, body })
    await post(`/vaults/${vaultId}/emit`, { event: 'filled' })
    if (turn % 3 === 0) await post(`/vaults/${vaultId}/seal`, {})
    if (turn % 9 === 4) await post(`/vaults/${vaultId}/persist`)
    const list = turn % 9 === 4 ? kept : ending
    list.push(vaultId)
  }
}

const Reported = z.object({ vaultId: z.string(), types: z.array(z.string()) })

/** The webhook events about the ends of vaults, in the order of happening. At one instant the warning comes first. */
async function endsReported(): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await database.db.many(
    Reported,
    sql`
    select payload ->> 'vaultId' as vault_id, array_agg(type order by created_at, type desc) as types from events
    where type in ('vault.expiring', 'vault.expired') group by 1`,
  )
  return new Map(rows.map(({ vaultId, types }) => [vaultId, types]))
}

async function expectEnds({ ending, kept }: { readonly ending: readonly string[]; readonly kept: readonly string[] }) {
  const reported = await endsReported()
  for (const id of ending) expect([id, reported.get(id)]).toEqual([id, ['vault.expiring', 'vault.expired']])
  for (const id of kept) expect([id, reported.get(id)]).toEqual([id, undefined])
  for (const table of [sql`vaults`, sql`vault_documents`, sql`vault_files`, sql`vault_events`, sql`vault_tokens`]) {
    const column = table.text === 'vaults' ? sql`id` : sql`vault_id`
    // The contents are deleted after their vault.
    await expect
      .poll(
        () =>
          countOf(database.db, sql`select count(*) as count from ${table} where ${column} = any(${ending}::text[])`),
        {
          timeout: 60_000,
        },
      )
      .toBe(0)
  }
  const whole = sql`select count(*) as count from vault_files join vault_documents using (vault_id) where vault_id = any(${kept}::text[])`
  expect(await countOf(database.db, whole)).toBe(kept.length)
  await expectCounters({ base: await fleet.where(0), key, env, db: database.db })
}

/** A process sweeps as soon as it starts; the others would within half a minute. */
async function expectSwept(): Promise<void> {
  await fleet.kill(0)
  await expect.poll(() => leftToSweep({ db: database.db, env }), { timeout: 180_000, interval: 200 }).toBe(0)
  await expectBlobs({ db: database.db, env })
}

function leftToEnd(): Promise<number> {
  return countOf(database.db, sql`select count(*) as count from vaults where expires_at is not null`)
}

function expired(): Promise<number> {
  return countOf(database.db, sql`select count(*) as count from events where type = 'vault.expired'`)
}

test('kill -9 of any of three processes while vaults expire: each expiry publishes its events once, and nothing of the vault is left', {
  timeout: 720_000,
}, async () => {
  const random = mulberry32(seed)
  const begun = performance.now()
  await fleet.start()
  const vaults = await filledVaults(120)
  // They expire one after the other from now on, each with its warning two seconds before.
  await database.db.run(sql`
    update vaults set expiring_due = at - interval '2 seconds', expires_at = at
    from (select id, clock_timestamp() + interval '2 seconds' + row_number() over (order by id) * interval '90 milliseconds' as at
      from vaults where expires_at is not null) as due
    where vaults.id = due.id`)
  for (let kill = 0; kill < kills; kill++) {
    const enough = Math.min(vaults.ending.length, (await expired()) + 1)
    await expect.poll(expired, { timeout: 90_000, interval: 5 }).toBeGreaterThanOrEqual(enough)
    await delay(random() * 40)
    if (random() < 0.3) await Promise.all([0, 1, 2].map((index) => fleet.kill(index)))
    else await fleet.kill(Math.floor(random() * processes))
  }
  await expect.poll(leftToEnd, { timeout: 180_000, interval: 100 }).toBe(0)
  await expectEnds(vaults)
  await expectSwept()
  console.log(
    `seed ${seed}, ${kills} kills, ${Math.round(performance.now() - begun)} ms: ${vaults.ending.length} ended, ${vaults.kept.length} kept`,
  )
  await fleet.end('SIGKILL')
})

const written = 'with written as'
const counter = sql`select 1 from usage_counters where kind = 'storageBytes' for update`
const halfWay: readonly (readonly [string, Moment])[] = [
  ['about to be published to webhooks', { lock: sql`lock table events in share mode`, at: 'with due as' }],
  ['published to webhooks and not to its stream', { lock: sql`lock table vault_events in share mode`, at: written }],
  [
    'published, and neither marked nor carried out',
    { lock: sql`lock table vaults in share mode`, at: '(update|delete from) vaults' },
  ],
  [
    'carried out, and its files are about to be queued',
    { lock: sql`lock table blob_deletions in share mode`, at: 'with deleted as' },
  ],
  ['carried out, and its quota not returned', { lock: counter, at: 'insert into usage_counters' }],
]

test.each(halfWay)(
  'a process killed when the expiry of vaults is %s leaves it to the next one, which publishes it once',
  {
    timeout: 180_000,
  },
  async (_, moment) => {
    const [keeper] = fleet.keepers
    if (keeper === undefined) throw new Error('no process')
    await keeper.start()
    const vaults = await filledVaults(10)
    // They become due while no process runs, so that the next one meets the lock at the first of them.
    await keeper.end('SIGKILL')
    await database.db.run(sql`
      update vaults set expiring_due = now() - interval '1 hour', expires_at = now() + interval '6 seconds' where expires_at is not null`)
    await killAt({ db: database.db, keeper }, moment, () => keeper.start())
    await keeper.start()
    await expect.poll(leftToEnd, { timeout: 90_000, interval: 100 }).toBe(0)
    await expectEnds(vaults)
  },
)

test('what expired while every process was down for ten days is published once each when they are back, and nothing else is', {
  timeout: 180_000,
}, async () => {
  await fleet.start()
  const vaults = await filledVaults(60)
  const before = await endsReported()
  await fleet.end('SIGKILL')
  // As if the clock had moved by ten days while no process ran.
  await database.db.run(sql`
    update vaults set expires_at = expires_at - interval '10 days', expiring_due = expiring_due - interval '10 days',
      created_at = created_at - interval '10 days', event_at = event_at - interval '10 days'`)
  await fleet.start()
  await expect.poll(leftToEnd, { timeout: 90_000, interval: 100 }).toBe(0)
  await expectEnds(vaults)
  const after = await endsReported()
  expect(after.size).toBe(before.size + vaults.ending.length)
  for (const [id, types] of before) expect(after.get(id)).toEqual(types)
  await expectSwept()
  expect(await fleet.end('SIGTERM')).toEqual([0, 0, 0])
})
