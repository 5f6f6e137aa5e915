import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type Org, unreachableMain, type World } from '../../../test/world.ts'
import { type AuditEntry, appendAudit, verifyAudit } from '../../platform/audit.ts'
import { type Db, type Queryable, type Sql, sql } from '../../platform/db/db.ts'
import { verifyAuditLog } from './index.ts'

let world: World

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain, config: { sandboxScreening: false } })
})
afterAll(() => world.stop())

const path = '/organisations/current/audit-log'

/** Statements that wait for a lock. */
async function countWaiting(db: Db): Promise<number> {
  const { count } = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return Number(count)
}

/** An organisation with a history: founding, two keys, a rename, a member, a wallet. */
async function anOrganisationWithAHistory(): Promise<Org> {
  const org = await world.organisation()
  await world.call(org.testKey, 'PATCH', '/organisations/current', { name: 'Renamed' })
  await world.call(org.testKey, 'POST', '/organisations/current/members', {
    email: `${org.id}@example.com`,
    role: 'member',
  })
  await world.wallet(org)
  return org
}

test('every change is in the log with who did it, in which request, on what', async () => {
  const org = await anOrganisationWithAHistory()
  const key = await world.call(org.testKey, 'POST', '/organisations/current/api-keys', {
    name: 'k',
    environment: 'test',
  })
  await world.call(org.testKey, 'DELETE', `/organisations/current/api-keys/${key.body.id}`)
  const { list } = await world.call(org.liveKey, 'GET', path)
  expect(list.map((record) => record.action)).toEqual([
    'organisations.apiKeys.revoke',
    'organisations.apiKeys.create',
    'wallets.byo.create',
    'organisations.members.add',
    'organisations.update',
    'organisations.apiKeys.create',
    'organisations.apiKeys.create',
    'organisations.create',
  ])
  expect(list.map((record) => record.sequence)).toEqual([8, 7, 6, 5, 4, 3, 2, 1])
  expect(list[1]).toMatchObject({
    environment: 'test',
    actor: { kind: 'api-key', apiKeyId: expect.stringMatching(/^key_/) },
    requestId: key.headers.get('x-request-id'),
    target: key.body.id,
    details: { name: 'k', environment: 'test' },
  })
  expect(list[7]).toMatchObject({ environment: null, actor: { kind: 'operator' }, previousHash: '0'.repeat(64) })
  for (let n = 0; n < 7; n++) expect(list[n]?.previousHash).toBe(list[n + 1]?.hash)
  expect(JSON.stringify(list)).not.toContain('svc_')
})

test('a test key sees nothing of the live environment in the log, and no other organisation’s records', async () => {
  const [org, other] = [await world.organisation(), await anOrganisationWithAHistory()]
  const address = '0x52908400098527886E0F7030069857D2E4169EE7'
  await world.call(org.liveKey, 'POST', '/wallet-infra/byo-wallets', {
    address,
    chain: 'base',
    supportedTokens: ['USDC'],
  })
  const seen = await world.call(org.testKey, 'GET', path)
  expect(new Set(seen.list.map((record) => record.environment))).toEqual(new Set(['test', null]))
  expect(JSON.stringify(seen.list)).not.toContain(address)
  const live = await world.call(org.liveKey, 'GET', path)
  expect(JSON.stringify(live.list)).toContain(address)
  expect(JSON.stringify(live.list)).not.toContain(other.id)
})

test('the log is paged, newest first', async () => {
  const org = await anOrganisationWithAHistory()
  const first = await world.call(org.liveKey, 'GET', `${path}?limit=4`)
  const next = /^<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1]
  const second = await world.call(org.liveKey, 'GET', String(next))
  expect([...first.list, ...second.list].map((record) => record.sequence)).toEqual([6, 5, 4, 3, 2, 1])
})

test('a failed request leaves no record', async () => {
  const org = await world.organisation('hobby')
  await world.wallet(org)
  await expect(world.wallet(org)).rejects.toThrow('byo-wallet-limit-reached')
  const { list } = await world.call(org.testKey, 'GET', path)
  expect(list.filter((record) => record.action === 'wallets.byo.create')).toHaveLength(1)
})

test('a transaction that appends a record and then waits for a row blocks none that has the row and appends one too', async () => {
  const org = await world.organisation()
  const { db } = world.database
  const { clock, random } = world.server.deps
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const ctx = { clock, random, tenant, actor: { kind: 'system' }, requestId: 'req_01h455vb4pex5vsknk084sn02q' } as const
  const lockRow = sql`select 1 from organisations where id = ${org.id} for no key update`
  let appendedFirst: Promise<void> | undefined
  await db.tx(async (tx) => {
    await tx.run(lockRow)
    appendedFirst = db.tx(async (other) => {
      appendAudit(ctx, other, { action: 'appended-then-locked' })
      await other.run(lockRow)
    })
    await expect.poll(() => countWaiting(db)).toBeGreaterThan(0)
    appendAudit(ctx, tx, { action: 'locked-then-appended' })
  })
  await appendedFirst
  const { list } = await world.call(org.liveKey, 'GET', path)
  expect(list.slice(0, 2).map(({ action }) => action)).toEqual(['appended-then-locked', 'locked-then-appended'])
  expect(await verifyAuditLog(world.database, org.id)).toMatchObject({ intact: true })
})

/** Appends records to the log of an organisation. */
async function append(org: Org, ...entries: readonly AuditEntry[]): Promise<void> {
  const { clock, random } = world.server.deps
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const ctx = { clock, random, tenant, actor: { kind: 'system' }, requestId: 'req_01h455vb4pex5vsknk084sn02q' } as const
  await world.database.db.tx(async (tx) => appendAudit(ctx, tx, ...entries))
}

test('the check of a log with large records measures each of them about once', async () => {
  const org = await world.organisation()
  const large = { action: 'large', details: { text: 'x'.repeat(8_000) } }
  await append(org, ...Array.from({ length: 600 }, () => large))
  const { db } = world.database
  let measured = 0
  const counting: Queryable = {
    ...db,
    many: async (row, statement) => {
      const rows = await db.many(row, statement)
      const [first] = z.array(z.looseObject({ pageRows: z.bigint().default(0n) })).parse(rows)
      measured += Number(first?.pageRows ?? 0n)
      return rows
    },
  }
  expect(await verifyAudit(counting, org.id)).toMatchObject({ intact: true })
  expect(measured).toBeGreaterThan(600)
  expect(measured).toBeLessThan(1_200)
})

test('details with many names, or with long ones, are their hash and their size', async () => {
  const org = await world.organisation()
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`name${at}`, 'x'.repeat(100)]))
  const long = { ['x'.repeat(9_000)]: 1 }
  await append(org, { action: 'many', details: many }, { action: 'long', details: long })
  const { list } = await world.call(org.testKey, 'GET', path)
  expect(list.slice(0, 2).map(({ details }) => details)).toEqual(
    [long, many].map((details) => ({
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      characters: JSON.stringify(details).length,
    })),
  )
  expect(await verifyAuditLog(world.database, org.id)).toMatchObject({ intact: true })
})

test('of two transactions that append to two logs in opposite order neither waits forever', async () => {
  const orgs = [await world.organisation(), await world.organisation()]
  const { db } = world.database
  const { clock, random } = world.server.deps
  const append = (order: readonly Org[]) =>
    db.tx(async (tx) => {
      for (const { id: organisationId } of order) {
        const tenant = { organisationId, environment: 'test' } as const
        const ctx = {
          clock,
          random,
          tenant,
          actor: { kind: 'system' },
          requestId: 'req_01h455vb4pex5vsknk084sn02q',
        } as const
        appendAudit(ctx, tx, { action: 'crossed' })
      }
    })
  await Promise.all(Array.from({ length: 40 }, (_, n) => append(n % 2 === 0 ? orgs : orgs.toReversed())))
  for (const org of orgs) expect(await verifyAuditLog(world.database, org.id)).toMatchObject({ intact: true })
})

test('records that are written together are chained in their order, and the log stays intact', async () => {
  const org = await world.organisation()
  const { clock, random } = world.server.deps
  const tenant = { organisationId: org.id, environment: 'live' } as const
  const ctx = { clock, random, tenant, actor: { kind: 'system' }, requestId: 'req_01h455vb4pex5vsknk084sn02q' } as const
  const entries = ['first', 'second', 'third'].map((action) => ({ action, details: { 'a"b': '{\\"x\\"}', action } }))
  await world.database.db.tx(async (tx) => appendAudit(ctx, tx, ...entries))
  const { list } = await world.call(org.liveKey, 'GET', path)
  expect(list.slice(0, 3).map(({ sequence, action, target }) => [sequence, action, target])).toEqual([
    [6, 'third', null],
    [5, 'second', null],
    [4, 'first', null],
  ])
  expect(list[0]).toMatchObject({ details: entries[2]?.details, previousHash: list[1]?.hash })
  expect(await verifyAuditLog(world.database, org.id)).toEqual({ intact: true, records: 6n })
})

test('an unchanged log is reported as intact, also when a record is appended during the check', async () => {
  const org = await anOrganisationWithAHistory()
  expect(await verifyAuditLog(world.database, org.id)).toEqual({ intact: true, records: 6n })
  const { db } = world.database
  const appendAfterFirstLook: Db = {
    ...db,
    tx: (work) =>
      db.tx((tx) =>
        work({
          ...tx,
          async maybeOne(row, statement) {
            const head = await tx.maybeOne(row, statement)
            await world.wallet(org)
            return head
          },
        }),
      ),
  }
  expect(await verifyAuditLog({ db: appendAfterFirstLook }, org.id)).toEqual({ intact: true, records: 6n })
  expect(await verifyAuditLog(world.database, org.id)).toEqual({ intact: true, records: 7n })
})

type Tampering = (organisationId: string) => readonly Sql[]
const tamperings: Record<string, Tampering> = {
  'an edited action': (id) => [sql`update audit_log set action = 'x' where organisation_id = ${id} and sequence = 3`],
  'an edited detail': (id) => [
    sql`update audit_log set details = '{"name":"Other"}' where organisation_id = ${id} and sequence = 3`,
  ],
  'an edited actor': (id) => [
    sql`update audit_log set actor = '{"kind":"system"}' where organisation_id = ${id} and sequence = 3`,
  ],
  'an edited time': (id) => [
    sql`update audit_log set created_at = created_at + interval '1 ms' where organisation_id = ${id} and sequence = 3`,
  ],
  'a record from the middle deleted': (id) => [
    sql`delete from audit_log where organisation_id = ${id} and sequence = 3`,
  ],
  'the first record deleted': (id) => [sql`delete from audit_log where organisation_id = ${id} and sequence = 1`],
  'two records swapped': (id) => [
    sql`update audit_log set sequence = -3 where organisation_id = ${id} and sequence = 3`,
    sql`update audit_log set sequence = 3 where organisation_id = ${id} and sequence = 4`,
    sql`update audit_log set sequence = 4 where organisation_id = ${id} and sequence = -3`,
  ],
  'the end cut off': (id) => [sql`delete from audit_log where organisation_id = ${id} and sequence >= 5`],
  'the end cut off and the head set back to a wrong hash': (id) => [
    sql`delete from audit_log where organisation_id = ${id} and sequence >= 5`,
    sql`update audit_heads set sequence = 4 where organisation_id = ${id}`,
  ],
  'everything deleted, head and all': (id) => [
    sql`delete from audit_log where organisation_id = ${id}`,
    sql`delete from audit_heads where organisation_id = ${id}`,
  ],
  'a record put after the head': (id) => [
    sql`insert into audit_log select organisation_id, 7, 'aud_x', environment, action, actor, request_id, target, details, created_at, hash, hash
      from audit_log where organisation_id = ${id} and sequence = 6`,
  ],
}

test.each(Object.entries(tamperings))('the check finds %s', async (_name, tamper) => {
  const org = await anOrganisationWithAHistory()
  for (const statement of tamper(org.id)) await world.database.db.run(statement)
  expect(await verifyAuditLog(world.database, org.id)).toMatchObject({ intact: false })
})
