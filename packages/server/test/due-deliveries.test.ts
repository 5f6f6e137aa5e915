import { afterAll, beforeAll, expect, test } from 'vitest'
import { insertDeliveries, leaseQueues, listDue, releaseQueues } from '../src/features/webhooks/delivery/queue-store.ts'
import { type Db, sql } from '../src/platform/db/db.ts'
import { keepPartitions } from '../src/platform/db/partitions.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { statement } from './fill-table.ts'
import { readsCounted } from './rows-read.ts'

let database: TestDatabase

const organisationId = 'org_01h455vb4pex5vsknk084sn02q'
const webhookId = 'wh_01h455vb4pex5vsknk084sn02q'
const due = 5_000
const now = new Date()
const lease = { name: 'a process', now, until: new Date(now.getTime() + 60_000) }

// One connection, so that it keeps the plans that it made while the tables were empty. Its months are partitions, of which one stays empty.
beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 1 })
  await keepPartitions(database.db, now)
  await database.db.run(statement(`set session_replication_role = replica`))
  await database.db.run(
    statement(`
    insert into webhooks select (jsonb_populate_record(null::webhooks, jsonb_build_object('id', '${webhookId}', 'organisation_id', '${organisationId}',
      'environment', 'test', 'url', 'https://example.com', 'events', array['*'], 'is_active', true, 'created_at', now()))).*`),
  )
  await database.db.run(
    statement(`insert into webhook_queues (webhook_id, organisation_id) values ('${webhookId}', '${organisationId}')`),
  )
})
afterAll(() => database.drop())

/** Does the work and returns how many rows of deliveries its transactions read. */
async function rowsReadBy(work: (db: Db) => Promise<unknown>): Promise<bigint> {
  const { db, rows } = readsCounted(database.db, '^webhook_deliveries')
  await work(db)
  return rows()
}

test('due deliveries of an endpoint are read up to the limit, however many are due, with plans from empty tables', async () => {
  const readDue = (db: Db) => listDue(db, [{ webhookId, inHand: [], fresh: 10 }], now)
  const release = async (db: Db) => {
    await leaseQueues(database.db, lease, 1)
    await releaseQueues(db, lease, [webhookId])
  }
  for (let run = 0; run < 7; run += 1) {
    expect(await readDue(database.db)).toEqual([])
    await release(database.db)
  }
  const numbers = Array.from({ length: due }, (_, index) => String(index).padStart(26, '0'))
  await database.db.run(sql`
    insert into events (id, organisation_id, environment, type, payload, created_at)
    select 'evt_' || number, ${organisationId}, 'test', 'payment.received', '{}', ${now} from unnest(${numbers}::text[]) as number`)
  await database.db.tx((tx) =>
    insertDeliveries(tx, {
      ids: numbers.map((number) => `del_${number}`),
      eventIds: numbers.map((number) => `evt_${number}`),
      types: numbers.map(() => 'payment.received'),
      webhookIds: numbers.map(() => webhookId),
      now,
    }),
  )
  expect((await readDue(database.db)).length).toBe(10)
  expect(await rowsReadBy(readDue)).toBeLessThan(40n)
  expect(await rowsReadBy(release)).toBeLessThan(40n)
})

test('no queue is without an organisation, also where data is restored without triggers', async () => {
  const nameless = statement(`insert into webhook_queues (webhook_id) values ('wh_01h455vb4pex5vsknk084sn02r')`)
  await expect(database.db.run(nameless)).rejects.toThrow('webhook_queues_organisation_check')
})
