import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, unreachableMain, type World } from '../../../test/world.ts'
import { appendAudits } from '../../platform/audit.ts'
import { type Db, type Sql, sql } from '../../platform/db/db.ts'
import { verifyAuditLog } from './index.ts'

let world: World

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain, config: { sandboxScreening: false } })
})
afterAll(() => world.stop())

const path = '/organisations/current/audit-log'

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
  const key = await world.call(org.liveKey, 'POST', '/organisations/current/api-keys', {
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

test('what failed left no record', async () => {
  const org = await world.organisation('hobby')
  await world.wallet(org)
  await expect(world.wallet(org)).rejects.toThrow('byo-wallet-limit-reached')
  const { list } = await world.call(org.testKey, 'GET', path)
  expect(list.filter((record) => record.action === 'wallets.byo.create')).toHaveLength(1)
})

test('records that are written together are chained in their order, and the log stays whole', async () => {
  const org = await world.organisation()
  const { clock, random } = world.server.deps
  const tenant = { organisationId: org.id, environment: 'live' } as const
  const ctx = { clock, random, tenant, actor: { kind: 'system' }, requestId: 'req_01h455vb4pex5vsknk084sn02q' } as const
  const entries = ['first', 'second', 'third'].map((action) => ({ action, details: { 'a"b': '{\\"x\\"}', action } }))
  await world.database.db.tx((tx) => appendAudits(ctx, tx, entries))
  const { list } = await world.call(org.liveKey, 'GET', path)
  expect(list.slice(0, 3).map(({ sequence, action, target }) => [sequence, action, target])).toEqual([
    [6, 'third', null],
    [5, 'second', null],
    [4, 'first', null],
  ])
  expect(list[0]).toMatchObject({ details: entries[2]?.details, previousHash: list[1]?.hash })
  expect(await verifyAuditLog(world.database, org.id)).toEqual({ intact: true, records: 6n })
})

test('an untouched log is found whole, also when a record is appended in the middle of the check', async () => {
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
