import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type World } from '../../../test/world.ts'
import { utcMonthOf } from '../../platform/clock.ts'
import { forTenant, systemCtx } from '../../platform/work/runner.ts'
import { addToCounter, countOrRefuse, lockCounter, monthAround, plans, usageKinds } from './index.ts'
import { quotas } from './quotas.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

test('each plan grants its limits', () => {
  const { hobby, pro, enterprise } = plans
  expect(hobby).toMatchObject({ paymentsPerMonth: 100, byoWallets: 1, managedWallets: 1, webhooks: 1 })
  expect(hobby).toMatchObject({ activeVaults: 3, persistedVaults: 1, storageBytes: 524_288_000 })
  expect(hobby).toMatchObject({ documentsPerVault: 50, filesPerVault: 5, fileBytes: 10_485_760 })
  expect(hobby).toMatchObject({ vaultTtlSecondsDefault: 86_400, vaultTtlSecondsMax: 86_400 })
  expect(pro).toMatchObject({ paymentsPerMonth: 10_000, byoWallets: 5, managedWallets: 5, webhooks: 10 })
  expect(pro).toMatchObject({ activeVaults: 50, persistedVaults: 20, storageBytes: 10_737_418_240 })
  expect(pro).toMatchObject({ documentsPerVault: -1, filesPerVault: 100, fileBytes: 104_857_600 })
  expect(pro).toMatchObject({ vaultTtlSecondsDefault: 604_800, vaultTtlSecondsMax: 604_800 })
  expect(enterprise).toMatchObject({ paymentsPerMonth: -1, byoWallets: -1, managedWallets: -1, webhooks: -1 })
  expect(enterprise).toMatchObject({ activeVaults: -1, persistedVaults: -1, storageBytes: -1 })
  expect(enterprise).toMatchObject({ documentsPerVault: -1, filesPerVault: -1, fileBytes: 1_073_741_824 })
  expect(enterprise).toMatchObject({ vaultTtlSecondsDefault: 2_592_000, vaultTtlSecondsMax: -1 })
  const shared = [hobby, pro, enterprise].map(({ registryRoutes, childAddresses }) => [registryRoutes, childAddresses])
  expect(shared).toEqual([
    [100, 1_000],
    [10_000, 100_000],
    [-1, -1],
  ])
})

test('months are calendar months in UTC, whatever the zone of the machine', () => {
  expect(utcMonthOf(new Date('2026-11-30T23:59:59.999Z'))).toBe('2026-11')
  expect(utcMonthOf(new Date('2026-12-01T00:00:00.000+00:00'))).toBe('2026-12')
  const december = { start: new Date('2026-12-01T00:00:00Z'), end: new Date('2027-01-01T00:00:00Z') }
  expect(monthAround(new Date('2026-12-31T23:59:59Z'))).toEqual(december)
})

test.each(usageKinds)(
  'as many %s as the plan grants are counted, in parallel too, and one more is refused',
  async (kind) => {
    const org = await world.organisation('hobby')
    const { deps } = world.server
    const ctx = forTenant(systemCtx(deps), { organisationId: org.id, environment: 'test' })
    const limit = quotas[kind].allowanceOf(plans.hobby)
    const period = quotas[kind].per === 'month' ? utcMonthOf(deps.clock.now()) : 'all'
    const remaining = Math.min(limit, 3)
    await deps.db.tx(async (tx) => {
      await lockCounter(tx, ctx.tenant, kind, period)
      await addToCounter(tx, { tenant: ctx.tenant, kind, period, n: limit - remaining })
    })
    const attempts = Array.from({ length: 8 }, () => deps.db.tx((tx) => countOrRefuse(tx, ctx, kind)))
    const outcomes = await Promise.allSettled(attempts)
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(remaining)
    const refusal = outcomes.find((outcome) => outcome.status === 'rejected')?.reason
    expect(refusal).toMatchObject({
      code: quotas[kind].code,
      entry: { status: 429, title: 'Plan Limit Reached' },
      members: { limit, current: limit, upgradeUrl: 'http://dashboard.test/settings/billing' },
    })
    expect(await deps.db.tx((tx) => lockCounter(tx, ctx.tenant, kind, period))).toBe(limit)
  },
)

test('a counter counts for one organisation and one environment', async () => {
  const [one, other] = [await world.organisation('hobby'), await world.organisation('hobby')]
  const { deps } = world.server
  const tenants = [
    { organisationId: one.id, environment: 'test' as const },
    { organisationId: one.id, environment: 'live' as const },
    { organisationId: other.id, environment: 'test' as const },
  ]
  for (const tenant of tenants)
    await deps.db.tx((tx) => countOrRefuse(tx, forTenant(systemCtx(deps), tenant), 'webhooks'))
  for (const tenant of tenants) {
    expect(await deps.db.tx((tx) => lockCounter(tx, tenant, 'webhooks', 'all'))).toBe(1)
  }
})
