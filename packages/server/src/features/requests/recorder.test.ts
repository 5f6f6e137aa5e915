import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { type Db, sql } from '../../platform/db/db.ts'
import type { CompletedRequest } from '../../platform/http/http-options.ts'
import { newId, type OrganisationId } from '../../platform/ids.ts'
import type { Deps } from './ports.ts'
import { expireRequests, type RequestLogLimits, startRequestLog } from './recorder.ts'
import { deleteBeyond } from './store.ts'

let database: TestDatabase
let deps: Deps

beforeAll(async () => {
  database = await freshDatabase()
  deps = toyDeps(database.db)
})
afterAll(() => database.drop())

function anOrganisation(): OrganisationId {
  return newId('org', deps)
}

function aRequest(organisationId: OrganisationId, changes: Partial<CompletedRequest> = {}): CompletedRequest {
  const tenant = { organisationId, environment: 'test' } as const
  const actor = { kind: 'api-key', apiKeyId: 'key_01h455vb4pex5vsknk084sn02q' } as const
  const requestId = newId('req', deps)
  return {
    requestId,
    caller: { tenant, actor, shareOwner: organisationId },
    method: 'GET',
    route: '/vaults',
    status: 200,
    durationMs: 7.4,
    code: null,
    ...changes,
  }
}

/** A log that writes only when it stops, so that the test decides what waits together. */
function aLog(limits: Partial<RequestLogLimits>, db: Db = database.db) {
  return startRequestLog({ ...deps, db }, { writeMs: 3_600_000, ...limits })
}

async function idsOf(organisationId: OrganisationId): Promise<string[]> {
  const Row = z.object({ id: z.string() })
  const rows = await database.db.many(
    Row,
    sql`select id from request_log where organisation_id = ${organisationId} order by id`,
  )
  return rows.map(({ id }) => id)
}

/** Whether a batch was written: its newest request is never deleted. */
async function isWritten(requests: readonly CompletedRequest[]): Promise<boolean> {
  const newest = requests
    .map(({ requestId }) => requestId)
    .sort()
    .at(-1)
  const { count } = await database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) from request_log where id = ${newest}`,
  )
  return count === 1n
}

async function droppedCount(): Promise<number> {
  return (await deps.metrics.gauge('purser_request_log_dropped', '').get()).values[0]?.value ?? 0
}

test('an organisation keeps its newest requests only, and takes no rows of others', async () => {
  const [busy, quiet] = [anOrganisation(), anOrganisation()]
  const sent: string[] = []
  const quietly = aRequest(quiet)
  for (let round = 0; round < 3; round++) {
    const log = aLog({ rowsMax: 20 })
    if (round === 0) log.record(quietly)
    for (let n = 0; n < 25; n++) {
      const request = aRequest(busy)
      sent.push(request.requestId)
      log.record(request)
    }
    await log.stop()
  }
  expect(await idsOf(busy)).toEqual(sent.sort().slice(-20))
  expect(await idsOf(quiet)).toEqual([quietly.requestId])
})

test('one process stores at most a tenth more than the limit', async () => {
  const busy = anOrganisation()
  const log = startRequestLog(deps, { rowsMax: 50, writeMs: 1 })
  for (let n = 0; n < 40; n++) {
    const requests = [aRequest(busy), aRequest(busy), aRequest(busy)]
    for (const request of requests) log.record(request)
    await expect.poll(() => isWritten(requests), { interval: 2 }).toBe(true)
  }
  await log.stop()
  expect((await idsOf(busy)).length).toBeGreaterThanOrEqual(50)
  expect((await idsOf(busy)).length).toBeLessThan(50 + 5 + 3)
})

test('deleting the oldest requests reads each row of the tenant a few times at most', async () => {
  const organisationId = anOrganisation()
  const Rows = z.object({ rows: z.bigint() })
  const read = sql`select seq_tup_read + idx_tup_fetch as rows from pg_stat_xact_user_tables where relname = 'request_log'`
  await database.db.run(sql`
    insert into request_log (organisation_id, environment, id, method, route, status, duration_ms, created_at)
    select ${organisationId}, 'test', 'req_' || lpad(n::text, 6, '0'), 'GET', '/vaults', 200, 1, now() from generate_series(1, 1500) as n`)
  const rows = await database.db.tx(async (tx) => {
    const before = await tx.one(Rows, read)
    await deleteBeyond(tx, [{ organisationId, environment: 'test' }], 1_000)
    return (await tx.one(Rows, read)).rows - before.rows
  })
  expect(await idsOf(organisationId)).toHaveLength(1_000)
  expect(rows).toBeLessThan(10_000n)
})

test('an organisation with a flood of requests leaves waiting places to the others, and what it loses is counted', async () => {
  const [flood, other] = [anOrganisation(), anOrganisation()]
  const log = aLog({ waitingMax: 40, waitingOwnMax: 30 })
  const before = await droppedCount()
  for (let n = 0; n < 1_000; n++) log.record(aRequest(flood))
  for (let n = 0; n < 5; n++) log.record(aRequest(other))
  await log.stop()
  const stored = (await idsOf(flood)).length
  expect(stored).toBeLessThanOrEqual(30)
  expect(await idsOf(other)).toHaveLength(5)
  expect((await droppedCount()) - before).toBe(1_000 - stored)
})

test('ten organisations that share a free plan have the waiting places of one', async () => {
  const flood = Array.from({ length: 10 }, anOrganisation)
  const other = anOrganisation()
  const log = aLog({ waitingMax: 400, waitingOwnMax: 50 })
  for (const organisationId of flood) {
    const { caller } = aRequest(organisationId)
    for (let n = 0; n < 100; n++) log.record(aRequest(organisationId, { caller: { ...caller, shareOwner: 'acc_1' } }))
  }
  for (let n = 0; n < 50; n++) log.record(aRequest(other))
  await log.stop()
  const stored = await Promise.all(flood.map(idsOf))
  expect(stored.flat()).toHaveLength(50)
  expect(await idsOf(other)).toHaveLength(50)
})

test('of the requests of a caller beyond its rate limit one in each batch is stored, and the others are counted', async () => {
  const organisationId = anOrganisation()
  const refused = { status: 429, code: 'rate-limit-exceeded' }
  const log = aLog({})
  const before = await droppedCount()
  for (let n = 0; n < 20; n++) log.record(aRequest(organisationId, refused))
  for (let n = 0; n < 20; n++) log.record(aRequest(organisationId))
  await log.stop()
  expect(await idsOf(organisationId)).toHaveLength(21)
  expect((await droppedCount()) - before).toBe(19)
})

test('what the database refuses is dropped and counted, and later requests are stored', async () => {
  const organisationId = anOrganisation()
  let isGone = true
  const refusing: Db = {
    ...database.db,
    run: (statement) => (isGone ? Promise.reject(new Error('gone')) : database.db.run(statement)),
  }
  const log = startRequestLog({ ...deps, db: refusing }, { writeMs: 1 })
  const before = await droppedCount()
  log.record(aRequest(organisationId))
  await expect.poll(async () => (await droppedCount()) - before).toBe(1)
  isGone = false
  const later = aRequest(organisationId)
  log.record(later)
  await log.stop()
  expect(await idsOf(organisationId)).toEqual([later.requestId])
})

test('what guests do and what people read is not recorded', async () => {
  const organisationId = anOrganisation()
  const tenant = { organisationId, environment: 'test' } as const
  const shareOwner = organisationId
  const person = { kind: 'person', accountId: newId('acc', deps) } as const
  const log = aLog({})
  const changed = aRequest(organisationId, { caller: { tenant, shareOwner, actor: person }, method: 'PATCH' })
  log.record(changed)
  log.record(aRequest(organisationId, { caller: { tenant, shareOwner, actor: person } }))
  log.record(aRequest(organisationId, { caller: { tenant, shareOwner, actor: { kind: 'guest', guestId: 'vat_1' } } }))
  await log.stop()
  expect(await idsOf(organisationId)).toEqual([changed.requestId])
})

test('requests are deleted after seven days', async () => {
  const organisationId = anOrganisation()
  const now = deps.clock.now().getTime()
  await database.db.run(sql`
    insert into request_log (organisation_id, environment, id, method, route, status, duration_ms, created_at)
    select ${organisationId}, 'test', 'req_' || lpad(day::text, 26, '0'), 'GET', '/vaults', 200, 1, ${new Date(now)}::timestamptz - day * interval '25 hours'
    from generate_series(0, 12) as day`)
  await expireRequests.run({ ...deps, ...aCtx() })
  expect(await idsOf(organisationId)).toEqual(
    [0, 1, 2, 3, 4, 5, 6].map((day) => `req_${String(day).padStart(26, '0')}`),
  )
})

function aCtx() {
  return {
    actor: { kind: 'system' },
    requestId: newId('req', deps),
    idempotency: undefined,
    publish: () => Promise.reject(new Error('no event')),
    audit: () => Promise.reject(new Error('no audit')),
  } as const
}
