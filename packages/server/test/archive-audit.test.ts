import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { auditRecordBytes } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../src/admin/run.ts'
import { archivePartition } from '../src/archive/archive.ts'
import { readParquet } from '../src/archive/parquet.ts'
import { planArchive } from '../src/archive/plan.ts'
import { findArchive, listColumns } from '../src/archive/store.ts'
import { listAuditRecords } from '../src/features/organisations/audit-store.ts'
import { verifyAuditLog } from '../src/features/organisations/index.ts'
import { isBlobKey } from '../src/files/index.ts'
import { appendAudit } from '../src/platform/audit.ts'
import { utcMonthOf } from '../src/platform/clock.ts'
import { type Db, type Sql, sql } from '../src/platform/db/db.ts'
import { partitionedTables } from '../src/platform/db/partitions.ts'
import { newId, type OrganisationId } from '../src/platform/ids.ts'
import { addPastMonths } from './past-months.ts'
import { aWorld, type Org, type World } from './world.ts'

let world: World
let org: Org
let months: Date[]

const now = new Date()
const kept = { AUDIT_LOG_KEPT_DAYS: '60' }

beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' } })
  const tables = partitionedTables.filter(({ table }) => table === 'audit_log')
  months = await addPastMonths(world.database.db, now, 6, tables)
  org = await world.organisation()
})
afterAll(() => world?.stop())

const nameOf = (month: Date): string => `audit_log_from_${utcMonthOf(month).replace('-', '_')}`
const check = (id: OrganisationId) => verifyAuditLog(world.database, id)

function admin(settings: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const place = world.config.files
  const FILES_DIR = 'directory' in place ? place.directory : ''
  return runAdmin(['admin', ...args], { DATABASE_URL: world.database.url, FILES_DIR, ...settings })
}

/** Appends a record for each time, as processes do whose clocks show them. */
async function append(id: OrganisationId, ...times: readonly Date[]): Promise<void> {
  const { random } = world.server.deps
  for (const time of times) {
    const tenant = { organisationId: id, environment: 'live' } as const
    const actor = { kind: 'system' } as const
    const ctx = { clock: { now: () => time }, random, tenant, actor, requestId: newId('req', world.server.deps) }
    await world.database.db.tx(async (tx) =>
      appendAudit(ctx, tx, { action: 'é\u2028', target: 'x', details: { deep: [1, null, { a: 0.1 }] } }),
    )
  }
}

const anOrganisation = (): OrganisationId => newId('org', world.server.deps)
const later = (month: Date | undefined, ms: number): Date => new Date((month ?? now).getTime() + ms)

test('audit records stay unless the operator says for how long', async () => {
  const [first = now, second = now] = months
  await append(org.id, later(first, 1))
  const planned = async (settings: Readonly<Record<string, string>>) =>
    (await admin(settings, 'archive', '--before', utcMonthOf(second))).stdout
  expect(await planned({})).toContain('AUDIT_LOG_KEPT_DAYS is not set')
  expect(await planned({ PAYMENTS_KEPT_DAYS: '60' })).toContain('AUDIT_LOG_KEPT_DAYS is not set')
  expect(await planned({ AUDIT_LOG_KEPT_DAYS: '3650' })).toContain('answered until')
  expect(await planned(kept)).toMatch(/ready$/m)
  const wrong = await admin({ AUDIT_LOG_KEPT_DAYS: 'x' }, 'archive', '--before', utcMonthOf(second))
  expect(wrong.stderr).toContain('AUDIT_LOG_KEPT_DAYS is not usable')
})

const Run = z.object({ first: z.bigint(), last: z.bigint(), before: z.string(), hash: z.string() })
const runsOf = (id: OrganisationId): Sql => sql`
  select first_sequence as first, last_sequence as last, encode(previous_hash, 'hex') as before, encode(last_hash, 'hex') as hash
  from archived_audit_runs where organisation_id = ${id} order by first_sequence`

test('a log of which months were archived is intact, whoever’s clock was wrong at their ends, and each change of it is found', async () => {
  const { db } = world.database
  const [first, second, third, fourth] = months
  const [plainLog, skewed, whole] = [anOrganisation(), anOrganisation(), anOrganisation()]
  await append(plainLog, later(first, 5), later(first, 6), later(second, 7), later(third, 8), later(fourth, 9), now)
  const end = later(third, -1)
  await append(skewed, later(end, -2), later(third, 1), end, later(third, 2), later(second, 9), later(fourth, 3))
  await append(whole, later(first, 3), later(second, 3))
  const { list: before } = await world.call(org.liveKey, 'GET', '/organisations/current/audit-log')
  const done = await admin(kept, 'archive', '--before', utcMonthOf(third ?? now), '--run', 'yes')
  expect([done.exitCode, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toContain(`${nameOf(second ?? now)}  archived, 5 rows in 1 files`)

  expect(await check(plainLog)).toEqual({ intact: true, records: 6n, archived: 3n })
  expect(await check(skewed)).toEqual({ intact: true, records: 6n, archived: 3n })
  expect(await check(whole)).toEqual({ intact: true, records: 2n, archived: 2n })
  // The record of the first month stands between those of this one.
  expect(await check(org.id)).toEqual({ intact: true, records: BigInt(before.length), archived: 1n })
  const { list } = await world.call(org.liveKey, 'GET', '/organisations/current/audit-log')
  expect(list.map(({ id }) => id)).toEqual(before.map(({ id }) => id).filter((_, at) => at > 0))
  const output = await admin({}, 'verify-audit-log')
  expect([output.exitCode, output.stdout]).toEqual([
    0,
    expect.stringContaining(`${plainLog}  intact, 6 records, 3 of them archived`),
  ])
  expect(output.stdout).toContain(`${whole}  intact, 2 records, 2 of them archived`)
  expect(output.stdout).toMatch(/^operator {2}intact/m)

  const page = { limit: 10, after: undefined }
  const { rows: left } = await listAuditRecords(db, { organisationId: plainLog, environment: 'live' }, {}, page)
  expect(left.map(({ sequence }) => sequence)).toEqual([6n, 5n, 4n])
  const runs = await db.many(Run, runsOf(plainLog))
  expect(runs.map((run) => [run.first, run.last])).toEqual([
    [1n, 2n],
    [3n, 3n],
  ])
  expect(runs.at(-1)?.hash).toBe(Buffer.from(left.at(-1)?.previousHash ?? []).toString('hex'))
  expect((await db.many(Run, runsOf(skewed))).map((run) => [run.first, run.last])).toEqual([
    [1n, 1n],
    [3n, 3n],
    [5n, 5n],
  ])

  const changes: readonly Sql[] = [
    sql`delete from audit_log where organisation_id = ${plainLog} and sequence = 4`,
    sql`delete from archived_audit_runs where organisation_id = ${plainLog} and first_sequence = 3`,
    sql`update archived_audit_runs set last_hash = previous_hash where organisation_id = ${plainLog} and first_sequence = 3`,
    sql`update archived_audit_runs set last_sequence = 4 where organisation_id = ${plainLog} and first_sequence = 3`,
    sql`update archived_audit_runs set previous_hash = last_hash where organisation_id = ${plainLog} and first_sequence = 1`,
    sql`update audit_heads set sequence = 3 where organisation_id = ${plainLog}`,
  ]
  const undo = new Error('undone')
  for (const change of changes) {
    const changed = db.tx(async (tx) => {
      await tx.run(change)
      const inside = { ...tx, run: async (given: Sql) => (/isolation/.test(given.text) ? 0 : tx.run(given)) }
      expect(await verifyAuditLog({ db: { ...db, tx: (work) => work(inside) } }, plainLog)).toMatchObject({
        intact: false,
      })
      throw undo
    })
    await expect(changed).rejects.toBe(undo)
  }
  await append(plainLog, now)
  expect(await check(plainLog)).toMatchObject({ intact: true, records: 7n })
})

const Manifest = z.object({ files: z.array(z.object({ key: z.string() })) })

test('the records of an archived month are in its files with their hashes, so that each can be computed again', async () => {
  const { db } = world.database
  const { blobs } = world.server.deps
  const id = anOrganisation()
  const [, , third = now, fourth = now] = months
  await append(id, later(third, 20), later(third, 21), later(third, 22))
  const columns = await listColumns(db, nameOf(third))
  expect((await admin(kept, 'archive', '--before', utcMonthOf(fourth), '--run', 'yes')).exitCode).toBe(0)
  const contentOf = async (key = ''): Promise<Uint8Array> => {
    const opened = isBlobKey(key) ? await blobs.open(key) : undefined
    return opened === undefined ? new Uint8Array() : buffer(opened.content)
  }
  const manifest = await contentOf((await findArchive(db, nameOf(third)))?.files.at(-1))
  const [file] = Manifest.parse(JSON.parse(Buffer.from(manifest).toString())).files
  const rows = (await readParquet(columns, await contentOf(file?.key))).map((row) =>
    Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])),
  )
  const own = rows.filter((row) => row.organisation_id === id)
  const [run] = await db.many(Run, runsOf(id))
  let hash = run?.before ?? ''
  for (const row of own) {
    expect(row.previous_hash).toBe(hash)
    const covered = auditRecordBytes(id, {
      id: String(row.id),
      sequence: String(row.sequence),
      environment: String(row.environment),
      action: String(row.action),
      actor: JSON.parse(String(row.actor)),
      requestId: String(row.request_id),
      target: String(row.target),
      details: JSON.parse(String(row.details)),
      createdAt: new Date(Number(row.created_at) / 1_000).toISOString(),
    })
    hash = createHash('sha256').update(Buffer.from(hash, 'hex')).update(covered).digest('hex')
    expect(row.hash).toBe(hash)
  }
  expect([own.length, hash]).toEqual([3, run?.hash])
})

test('a log stays intact at each step of an archive that is killed, and a record that is removed meanwhile is found', async () => {
  const { db } = world.database
  const { blobs, clock, random } = world.server.deps
  const id = anOrganisation()
  const [, , , fourth = now, fifth = now] = months
  await append(id, later(fourth, 30), later(fourth, 31), later(fifth, 32))
  const requestId = newId('req', { clock, random })
  const deps = { blobs, random, actor: { kind: 'operator' as const }, requestId, keptDays: { audit_log: 1 } }
  const until = { now: () => later(now, 40 * 86_400_000) }
  const planned = async () => {
    const plan = await planArchive(db, fifth, { now: until.now(), keptDays: deps.keptDays })
    const found = plan.find(({ partition }) => partition === nameOf(fourth))
    if (found === undefined) throw new Error('it is not in the plan')
    return found
  }
  const killedAt = async (statement: RegExp): Promise<void> => {
    const one = <A extends readonly [Sql]>(run: (...args: A) => Promise<number>) => {
      return (...args: A) => (statement.test(args[0].text) ? Promise.reject(new Error('killed')) : run(...args))
    }
    const dying: Db = { ...db, run: one(db.run), tx: (work) => db.tx((tx) => work({ ...tx, run: one(tx.run) })) }
    await expect(archivePartition({ ...deps, db: dying, clock: until }, await planned())).rejects.toThrow('killed')
  }
  const moveTo = (sequence: number): Promise<number> =>
    db.run(sql`update audit_log set sequence = ${sequence} where organisation_id = ${id} and sequence in (2, -2)`)
  for (const statement of [/insert into archived_audit_runs/, /set state = 'written'/, /detach partition/]) {
    await killedAt(statement)
    expect(await check(id)).toEqual({ intact: true, records: 3n })
    await moveTo(-2)
    expect(await check(id)).toEqual({ intact: false, brokenAt: 2n })
    await moveTo(2)
  }
  await killedAt(/drop table/)
  expect(await check(id)).toEqual({ intact: true, records: 3n, archived: 2n })
  await archivePartition({ ...deps, db, clock: until }, await planned())
  expect(await check(id)).toEqual({ intact: true, records: 3n, archived: 2n })
})
