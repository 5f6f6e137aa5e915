import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../src/platform/clock.ts'
import { type Db, openDb, sql } from '../../src/platform/db/db.ts'
import { insertEvents } from '../../src/platform/events.ts'
import { createLog } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { manners } from '../webhooks/storm-manners.ts'
import { type Report, type StormReceivers, stormReceivers } from '../webhooks/storm-talk.ts'
import { request } from '../world.ts'
import { aRestartablePostgres, type RestartablePostgres } from './restartable-postgres.ts'
import { type Env, endEveryService, type Service, serveEnv, startService } from './service.ts'
import { foundOrganisation } from './stage.ts'

/** `STORM_EVENTS=100000` makes a long one. */
const eventsMax = Number(process.env.STORM_EVENTS ?? 12_000)
const batch = 500

let postgres: RestartablePostgres
let receivers: StormReceivers
let db: Db
let env: Env
let organisation: Awaited<ReturnType<typeof foundOrganisation>>

beforeAll(async () => {
  postgres = await aRestartablePostgres()
  receivers = await stormReceivers()
  env = serveEnv(postgres.url, { WEBHOOKS_ALLOW_PRIVATE: 'true' })
  db = openDb({ url: postgres.url, connectionsMax: 4, log: createLog({ level: 'silent' }) })
  const api = await startService({ ...env, ROLE: 'api' })
  organisation = await foundOrganisation(postgres.url)
  await register(api)
  await api.end('SIGTERM')
})
afterAll(async () => {
  await endEveryService()
  receivers?.stop()
  await db?.close()
  await postgres?.remove()
})

test(`${eventsMax} events to bad receivers, the work processes killed and PostgreSQL stopped and crashed in the middle: none is lost, none unsigned`, {
  timeout: 1800_000,
}, async () => {
  const work = () => Promise.all([0, 1].map(() => startService({ ...env, ROLE: 'work' })))
  const began = performance.now()
  const first = await work()
  const publishing = publishAll()
  await receivers.until(0.15 * eventsMax)
  await Promise.all(first.map((service) => service.end('SIGKILL')))
  const second = await work()
  await receivers.until(0.4 * eventsMax)
  await postgres.end('stop')
  await postgres.start()
  await receivers.until(0.6 * eventsMax)
  await postgres.end('kill')
  await postgres.start()
  const acknowledged = await publishing
  await expect.poll(countWaiting, { timeout: 900_000, interval: 500 }).toEqual({ waiting: 0, dead: 0 })
  for (const service of second) expect(await service.end('SIGTERM')).toBe(0)

  const published = await listEvents()
  const reports = await receivers.report()
  const totals = { ...totalsOf(published, reports), seconds: Math.round((performance.now() - began) / 1_000) }
  console.log(JSON.stringify(totals))
  console.table(reports.map(({ eventIds, ...rest }) => ({ ...rest, events: eventIds.length })))
  const kept = new Set(published.map(({ id }) => id))
  expect(
    acknowledged.filter((id) => !kept.has(id)),
    'acknowledged and gone',
  ).toEqual([])
  expect(await countDeliveries(), 'each event has one delivery').toBe(eventsMax)
  expect(totals).toMatchObject({ events: eventsMax, lost: 0, strange: 0, unsigned: 0, unlike: 0 })
  expect(reports.find(({ name }) => name === 'restarts')?.restarts).toBe(2)
})

type Published = z.output<typeof Published>
const Published = z.object({ id: z.string(), type: z.string() })

/** Compares what arrived with what was committed. */
function totalsOf(published: readonly Published[], reports: readonly Report[]) {
  const arrived = new Map(reports.map(({ name, eventIds }) => [name, new Set(eventIds)]))
  const nameOf = new Map(manners.map(({ name, type }) => [type, name]))
  const lost = published.filter(({ id, type }) => arrived.get(nameOf.get(type) ?? '')?.has(id) !== true).length
  const sum = (of: 'arrived' | 'duplicates' | 'unsigned' | 'unlike') =>
    reports.reduce((total, report) => total + report[of], 0)
  return {
    events: published.length,
    lost,
    /** With an id that was never published, or at a receiver that did not subscribe to it. */
    strange: reports.reduce((total, { eventIds }) => total + eventIds.length, 0) - (published.length - lost),
    requests: sum('arrived'),
    /** Delivered again after acceptance: the sender died, or lost the database, before it could record the acceptance. */
    duplicates: sum('duplicates'),
    unsigned: sum('unsigned'),
    /** Delivered again with other bytes. */
    unlike: sum('unlike'),
  }
}

/** Registers a webhook for each receiver, with its type's share of the events. */
async function register({ base }: Service): Promise<void> {
  const secrets: Record<string, string> = {}
  for (const { name, type } of manners) {
    const body = { url: `http://127.0.0.1:${receivers.ports[name]}/hook`, events: [type] }
    const made = await request(base, { key: organisation.testKey, method: 'POST', path: '/webhooks', body })
    expect(made.status).toBe(201)
    secrets[name] = String(made.body.secret)
  }
  const KeySet = z.object({ keys: z.array(z.object({ x: z.string() })) })
  const query = `?organisation=${organisation.organisationId}&environment=test`
  const { keys } = KeySet.parse(await (await fetch(`${base}/.well-known/jwks.json${query}`)).json())
  receivers.send({ kind: 'keys', secrets, publicKeys: keys.map(({ x }) => x) })
}

/** Commits all events in batches, as a feature would, through every database failure. Returns the acknowledged ids. */
async function publishAll(): Promise<readonly string[]> {
  const acknowledged: string[] = []
  for (let at = 0; at < eventsMax / batch; at++) {
    const type = manners[at % manners.length]?.type ?? ''
    const known = await publishSurely(type)
    acknowledged.push(...known)
  }
  return acknowledged
}

/** Publishes exactly once: if the answer to a commit is lost, the table shows whether the batch is there. */
async function publishSurely(type: string): Promise<readonly string[]> {
  const tenant = { organisationId: organisation.organisationId, environment: 'test' as const }
  const ctx = { clock: systemClock, random: systemRandom, tenant }
  for (;;) {
    let ids: readonly string[] = []
    try {
      return await db.tx(async (tx) => {
        const payloads = Array.from({ length: batch }, (_, number) => ({ vaultId: `vlt_${number}`, type }))
        ids = await insertEvents(ctx, tx, type, payloads)
        return ids
      })
    } catch {
      if (await areThere(ids)) return ids
    }
  }
}

async function areThere(ids: readonly string[]): Promise<boolean> {
  const [first] = ids
  if (first === undefined) return false
  let found: bigint | undefined
  await expect
    .poll(
      async () => {
        found = await countOf(sql`select count(*) as count from events where id = ${first}`).catch(() => undefined)
        return found
      },
      { timeout: 90_000 },
    )
    .toBeDefined()
  return found === 1n
}

async function countOf(statement: ReturnType<typeof sql>): Promise<bigint> {
  return (await db.one(z.object({ count: z.bigint() }), statement)).count
}

async function countWaiting(): Promise<{ waiting: number; dead: number }> {
  const waiting = await countOf(sql`
    select (select count(*) from events_due) + count(*) as count from webhook_deliveries where status = 'pending'`)
  const dead = await countOf(sql`select count(*) as count from webhook_deliveries where status = 'dead'`)
  return { waiting: Number(waiting), dead: Number(dead) }
}

async function countDeliveries(): Promise<number> {
  return Number(await countOf(sql`select count(*) as count from webhook_deliveries`))
}

function listEvents(): Promise<Published[]> {
  return db.many(Published, sql`select id, type from events`)
}
