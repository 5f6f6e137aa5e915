import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PlanName } from '../../src/features/plans/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { codeOf, type Org } from '../world.ts'
import { aVaultStage, hourMs, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

/** The reported thresholds, the oldest first. Time advances, so that later ones are newer. */
async function reported(org: Org, key = org.testKey): Promise<readonly Record<string, unknown>[]> {
  const { list } = await stage.world.call(key, 'GET', '/events?limit=500')
  stage.pass(1)
  return list
    .filter(({ type }) => type === 'usage.threshold')
    .map(({ payload }) => Object(payload))
    .reverse()
}

const figures = async (org: Org, kind: string) =>
  (await reported(org))
    .filter((payload) => payload.kind === kind)
    .map(({ percent, used, limit }) => [percent, used, limit])

async function pay(org: Org, walletId: string, count: number): Promise<readonly number[]> {
  const resource = 'https://api.example.com/weather'
  const order = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId, resource }
  const answers = await Promise.all(
    Array.from({ length: count }, () => stage.call(org, 'POST', '/payments/verify', order)),
  )
  return answers.map(({ status }) => status)
}

async function setPlan(org: Org, plan: PlanName): Promise<void> {
  await stage.world.database.db.run(sql`update organisations set plan = ${plan} where id = ${org.id}`)
}

test('payments are reported once at 80 and once at 100 % of the month, however many come at once, and again next month', async () => {
  const org = await stage.world.organisation('hobby')
  const { id } = await stage.world.wallet(org)
  await pay(org, id, 79)
  expect(await figures(org, 'payments')).toEqual([])
  await pay(org, id, 5)
  const [first, ...others] = await figures(org, 'payments')
  expect([first?.[0], first?.[2], others]).toEqual([80, 100, []])
  expect((await pay(org, id, 20)).filter((status) => status === 200)).toHaveLength(16)
  expect(await figures(org, 'payments')).toEqual([first, [100, 100, 100]])
  const [one] = (await reported(org)).filter(({ kind }) => kind === 'payments')
  expect(one).toMatchObject({ month: '2026-06', reachedAt: expect.stringMatching(/^2026-06-01T12:00:00\.\d{3}Z$/) })
  stage.pass(30 * 24 * hourMs)
  await pay(org, id, 80)
  // Events are listed for thirty days.
  expect((await figures(org, 'payments')).at(-1)).toEqual([80, 80, 100])
  expect(await reported(org, org.liveKey)).toEqual([])
})

test('the level of a resource is reported once a month, not each time that it is reached again', async () => {
  const org = await stage.world.organisation('pro')
  const create = async () => {
    const made = await stage.call(org, 'POST', '/wallet-infra/master-wallets', {
      chain: 'base',
      supportedTokens: ['USDC'],
    })
    expect(made.status).toBe(201)
    return `/wallet-infra/master-wallets/${made.body.id}`
  }
  for (let made = 0; made < 3; made++) await create()
  expect(await figures(org, 'managedWallets')).toEqual([])
  await create()
  expect(await figures(org, 'managedWallets')).toEqual([[80, 4, 5]])
  await create()
  expect(await figures(org, 'managedWallets')).toEqual([
    [80, 4, 5],
    [100, 5, 5],
  ])
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  const byo = { chain: 'base', supportedTokens: ['USDC'], address }
  for (let turn = 0; turn < 3; turn++) {
    const made = await stage.call(org, 'POST', '/wallet-infra/byo-wallets', byo)
    await stage.call(org, 'DELETE', `/wallet-infra/byo-wallets/${made.body.id}`)
  }
  expect(await figures(org, 'byoWallets')).toEqual([])
})

test('a quota of one is reported as used up, in one event', async () => {
  const org = await stage.world.organisation('hobby')
  await stage.world.wallet(org)
  expect(await figures(org, 'byoWallets')).toEqual([[100, 1, 1]])
})

test('another plan is another limit, and a refused request reports nothing', async () => {
  const org = await stage.world.organisation('enterprise')
  for (let made = 0; made < 3; made++) await stage.vault(org)
  expect(await reported(org)).toEqual([])
  await setPlan(org, 'hobby')
  expect(codeOf(await stage.call(org, 'POST', '/vaults', {}))).toBe('vault-quota-exceeded')
  expect(await reported(org)).toEqual([])
  const [oldest] = (await stage.call(org, 'GET', '/vaults')).list
  await stage.call(org, 'DELETE', `/vaults/${oldest?.id}`)
  await stage.vault(org, { ttl: '1h' })
  expect(await figures(org, 'activeVaults')).toEqual([[100, 3, 3]])
  await setPlan(org, 'pro')
  for (let made = 0; made < 37; made++) await stage.vault(org, { ttl: '1h' })
  expect(await figures(org, 'activeVaults')).toEqual([
    [100, 3, 3],
    [80, 40, 50],
  ])
})

test('an expired vault is not counted, swept or not', async () => {
  const org = await stage.world.organisation('pro')
  for (let made = 0; made < 39; made++) await stage.vault(org, { ttl: '1h' })
  stage.pass(2 * hourMs)
  for (let made = 0; made < 12; made++) await stage.vault(org, { ttl: '2h' })
  expect(await figures(org, 'activeVaults')).toEqual([])
})

test('an invitation event has the invitee and the role, and a refused invitation has none', async () => {
  const org = await stage.world.organisation()
  const invite = (body: object) => stage.call(org, 'POST', '/organisations/current/members', body)
  const invitedAt = stage.now().toISOString()
  const { body: member } = await invite({ email: 'ada@example.com' })
  stage.pass(1_000)
  expect((await invite({ email: 'ada@example.com' })).status).toBe(409)
  await invite({ email: 'bob@example.com', role: 'viewer' })
  const { list } = await stage.call(org, 'GET', '/events')
  const invited = list.filter(({ type }) => type === 'member.invited').map(({ payload }) => payload)
  expect(invited).toEqual([
    expect.objectContaining({ email: 'bob@example.com', role: 'viewer', invitedAt: stage.now().toISOString() }),
    { accountId: member.accountId, email: 'ada@example.com', role: 'member', invitedAt },
  ])
})
