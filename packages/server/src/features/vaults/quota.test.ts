import { randomBytes } from 'node:crypto'
import { newTypeId } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { counting } from '../../../test/counting-db.ts'
import { aVaultStage, countersOf, hourMs, type VaultStage } from '../../../test/stories/vaults-stage.ts'
import { type Answer, codeOf, type Org } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import { addToCounter, usageOf } from '../plans/index.ts'
import { vaultRecounts } from './quota.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

/** A limit error has the seven fields of a plan's limit error and the request's id. */
function expectLimit(response: Answer, status: number, code: string, limit: number, current: number): void {
  expect(response.status).toBe(status)
  expect(response.body).toEqual({
    type: `http://purser.test/problems/${code}`,
    title: 'Plan Limit Reached',
    status,
    detail: expect.any(String),
    limit,
    current,
    upgradeUrl: 'http://dashboard.test/settings/billing',
    requestId: expect.any(String),
  })
}

async function quotaOf(org: Org): Promise<unknown> {
  return (await stage.call(org, 'GET', '/vaults/quota')).body
}

test('the fourth active vault of hobby is refused, counting sealed ones, until one is deleted or expires', async () => {
  const org = await stage.world.organisation('hobby')
  const [first, second] = [await stage.vault(org, { ttl: '2h' }), await stage.vault(org), await stage.vault(org)]
  await stage.call(org, 'POST', `/vaults/${first}/seal`, {})
  const create = () => stage.call(org, 'POST', '/vaults', {})
  expectLimit(await create(), 429, 'vault-quota-exceeded', 3, 3)
  expect((await stage.call(org, 'DELETE', `/vaults/${second}`)).status).toBe(204)
  expect((await create()).status).toBe(201)
  expectLimit(await create(), 429, 'vault-quota-exceeded', 3, 3)
  stage.pass(2 * hourMs)
  expect(await quotaOf(org)).toMatchObject({ active: { used: 2, limit: 3 } })
  expect((await create()).status).toBe(201)
  expectLimit(await create(), 429, 'vault-quota-exceeded', 3, 3)
  await stage.follow()
  expectLimit(await create(), 429, 'vault-quota-exceeded', 3, 3)
  expect(await quotaOf(org)).toMatchObject({ active: { used: 3, limit: 3 } })
  expect(await countersOf(stage.world, org)).toMatchObject({ activeVaults: 3 })
})

test('persisting moves a vault from the active count to the persisted one, and the plan bounds that', async () => {
  const org = await stage.world.organisation('hobby')
  const [first, second] = [await stage.vault(org), await stage.vault(org)]
  const persist = (id: string) => stage.call(org, 'POST', `/vaults/${id}/persist`)
  expect((await persist(first)).body).toMatchObject({
    status: 'persisted',
    ttl: null,
    persistedAt: stage.now().toISOString(),
  })
  expect((await persist(first)).status).toBe(200)
  expectLimit(await persist(second), 429, 'persisted-vault-quota-exceeded', 1, 1)
  expect(await quotaOf(org)).toEqual({
    active: { used: 1, limit: 3, percent: 33, unlimited: false },
    persisted: { used: 1, limit: 1, percent: 100, unlimited: false },
    storageBytes: { used: 0, limit: 524_288_000, percent: 0, unlimited: false },
  })
  expect((await stage.call(org, 'GET', `/vaults/${second}`)).body.status).toBe('active')
  stage.pass(10_000 * hourMs)
  await stage.follow()
  expect((await stage.call(org, 'GET', `/vaults/${first}`)).status).toBe(200)
  expect(await countersOf(stage.world, org)).toEqual({ activeVaults: 0, persistedVaults: 1, storageBytes: 0 })
  await stage.call(org, 'DELETE', `/vaults/${first}`)
  expect(await countersOf(stage.world, org)).toEqual({ activeVaults: 0, persistedVaults: 0, storageBytes: 0 })
})

test('a vault of hobby takes 50 documents', async () => {
  const org = await stage.world.organisation('hobby')
  const id = await stage.vault(org)
  const add = () => stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: {} })
  const answers = await Promise.all(Array.from({ length: 60 }, add))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(50)
  expectLimit(await add(), 422, 'documents-per-vault-exceeded', 50, 50)
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: 100 })
})

test('documents fill the storage to the last byte and not beyond; expired vaults do not count, swept or not', async () => {
  const org = await stage.world.organisation('hobby')
  const ctx = stage.ctx(org)
  const [going, staying] = [await stage.vault(org, { ttl: '2h' }), await stage.vault(org)]
  const add = (id: string, length: number) =>
    stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: { t: 'x'.repeat(length - 8) } })
  expect((await add(going, 1_000)).status).toBe(201)
  await ctx.db.tx((tx) =>
    addToCounter(tx, { tenant: ctx.tenant, kind: 'storageBytes', period: 'all', n: 524_288_000 - 1_000 - 100 }),
  )
  expectLimit(await add(staying, 101), 429, 'storage-quota-exceeded', 524_288_000, 524_287_900)
  expect((await add(staying, 100)).status).toBe(201)
  expectLimit(await add(staying, 10), 429, 'storage-quota-exceeded', 524_288_000, 524_288_000)
  stage.pass(2 * hourMs)
  expect(await quotaOf(org)).toMatchObject({ storageBytes: { used: 524_287_000, limit: 524_288_000 } })
  expect((await add(staying, 500)).status).toBe(201)
  await stage.follow()
  expectLimit(await add(staying, 501), 429, 'storage-quota-exceeded', 524_288_000, 524_287_500)
  expect((await add(staying, 500)).status).toBe(201)
})

test('an emitted event counts its name, its payload and 128 bytes to storage, and is refused if that is full', async () => {
  const org = await stage.world.organisation('hobby')
  const ctx = stage.ctx(org)
  const id = await stage.vault(org)
  const emit = (event: string, payload?: unknown) => stage.call(org, 'POST', `/vaults/${id}/emit`, { event, payload })
  expect((await emit('étape', { t: 'ü' })).status).toBe(201)
  const first = 128 + 6 + 10
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: first })
  await ctx.db.tx((tx) =>
    addToCounter(tx, { tenant: ctx.tenant, kind: 'storageBytes', period: 'all', n: 524_288_000 - first - 131 }),
  )
  expectLimit(await emit('ab'), 429, 'storage-quota-exceeded', 524_288_000, 524_287_869)
  expect((await emit('a')).status).toBe(201)
  expectLimit(await emit('a'), 429, 'storage-quota-exceeded', 524_288_000, 524_288_000)
  expect((await stage.call(org, 'GET', `/vaults/${id}`)).body.eventCount).toBe(3)
  expect((await stage.call(org, 'POST', `/vaults/${id}/seal`, {})).status).toBe(200)
  await stage.call(org, 'DELETE', `/vaults/${id}`)
  expect(await quotaOf(org)).toMatchObject({ storageBytes: { used: 524_288_000 - first - 131 } })
})

test('of fifty events emitted in parallel as many are accepted as fit the remaining storage', async () => {
  const org = await stage.world.organisation('hobby')
  const ctx = stage.ctx(org)
  const id = await stage.vault(org)
  await ctx.db.tx((tx) =>
    addToCounter(tx, { tenant: ctx.tenant, kind: 'storageBytes', period: 'all', n: 524_288_000 - 7 * 131 - 100 }),
  )
  const emit = () => stage.call(org, 'POST', `/vaults/${id}/emit`, { event: 'a' })
  const answers = await Promise.all(Array.from({ length: 50 }, emit))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(7)
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: 524_288_000 - 100 })
})

test('GET /billing/usage and GET /vaults/quota agree about vaults that are expired and not swept', async () => {
  const org = await stage.world.organisation('hobby')
  const going = await stage.vault(org, { ttl: '2h' })
  const kept = await stage.vault(org)
  await stage.call(org, 'POST', `/vaults/${kept}/persist`)
  for (const id of [going, kept])
    await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: { t: 'x'.repeat(92) } })
  const both = async () => {
    const usage = (await stage.call(org, 'GET', '/billing/usage')).body
    const { activeVaults: active, persistedVaults: persisted, storageBytes } = usage
    expect({ active, persisted, storageBytes }).toEqual(await quotaOf(org))
    return usage
  }
  expect(await both()).toMatchObject({ activeVaults: { used: 1 }, storageBytes: { used: 200 } })
  stage.pass(2 * hourMs)
  expect(await both()).toMatchObject({ activeVaults: { used: 0 }, storageBytes: { used: 100 } })
  await stage.follow()
  expect(await both()).toMatchObject({ activeVaults: { used: 0 }, storageBytes: { used: 100 } })
})

test('an organisation that used up the month’s payments creates no vault until the next month', async () => {
  const org = await stage.world.organisation('hobby')
  const ctx = stage.ctx(org)
  const month = stage.now().toISOString().slice(0, 7)
  await ctx.db.tx((tx) => addToCounter(tx, { tenant: ctx.tenant, kind: 'payments', period: month, n: 99 }))
  await stage.vault(org)
  await ctx.db.tx((tx) => addToCounter(tx, { tenant: ctx.tenant, kind: 'payments', period: month, n: 1 }))
  expectLimit(await stage.call(org, 'POST', '/vaults', {}), 429, 'payment-limit-reached', 100, 100)
  stage.pass(31 * 24 * hourMs)
  expect((await stage.call(org, 'POST', '/vaults', {})).status).toBe(201)
})

test('quotas are per environment', async () => {
  const org = await stage.world.organisation('hobby')
  for (let made = 0; made < 3; made++) await stage.vault(org)
  expect(codeOf(await stage.call(org, 'POST', '/vaults', {}))).toBe('vault-quota-exceeded')
  expect((await stage.world.call(org.liveKey, 'POST', '/vaults', {})).status).toBe(201)
})

test('a refused write leaves nothing: no row, no event, no count', async () => {
  const org = await stage.world.organisation('hobby')
  const ctx = stage.ctx(org)
  const id = await stage.vault(org)
  await ctx.db.tx((tx) => addToCounter(tx, { tenant: ctx.tenant, kind: 'storageBytes', period: 'all', n: 524_288_000 }))
  const before = await stage.call(org, 'GET', `/vaults/${id}`)
  expect((await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: {} })).status).toBe(429)
  expect((await stage.call(org, 'GET', `/vaults/${id}`)).body).toEqual(before.body)
  expect(await ctx.db.run(sql`select 1 from vault_documents where vault_id = ${id}`)).toBe(0)
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: 524_288_000 })
})

test('the use of an account is read by as few statements with ten organisations as with one', async () => {
  const { db, clock } = stage.world.server.deps
  const read = async (organisationId: OrganisationId) => {
    const counted = counting(db)
    const tenant = { organisationId, environment: 'test' } as const
    await usageOf({ db: counted.db, tenant, clock, recounts: vaultRecounts })
    return counted.statements.length
  }
  const org = await stage.world.organisation('hobby')
  const alone = await read(org.id)
  const ids = Array.from({ length: 9 }, () => newTypeId('org', clock.now().getTime(), randomBytes(10)))
  await db.run(sql`
    insert into organisations (id, name, type, plan, created_at, quota_account_id)
    select given.id, name, type, plan, created_at, quota_account_id
    from organisations, unnest(${ids}::text[]) as given (id) where organisations.id = ${org.id}`)
  expect(await read(org.id)).toBe(alone)
})
