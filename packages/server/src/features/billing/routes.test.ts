import fc from 'fast-check'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type Answer, aWorld, type Org, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'

let world: World
let now = new Date('2026-12-31T12:00:00Z')

beforeAll(async () => {
  world = await aWorld({ boot: { clock: { now: () => now } } })
})
afterAll(() => world.stop())

async function pay(org: Org, walletId: string, credential = 'stub_payment_accepted'): Promise<number> {
  const body = { protocol: 'x402', credential, price: '0.01', walletId }
  return (await world.call(org.testKey, 'POST', '/payments/verify', body)).status
}

async function usageOf(org: Org, key = org.testKey): Promise<Record<string, unknown>> {
  return (await world.call(key, 'GET', '/billing/usage')).body
}

test('usage states the plan, the calendar month in UTC, and used and limit of every quota', async () => {
  const org = await world.organisation('pro')
  const { id } = await world.wallet(org)
  expect(await pay(org, id)).toBe(200)
  const usage = await usageOf(org)
  expect(usage).toEqual({
    plan: 'pro',
    period: { start: '2026-12-01T00:00:00.000Z', end: '2027-01-01T00:00:00.000Z' },
    payments: { used: 1, limit: 10_000, percent: 0, unlimited: false },
    byoWallets: { used: 1, limit: 5, percent: 20, unlimited: false },
    managedWallets: { used: 0, limit: 5, percent: 0, unlimited: false },
    activeVaults: { used: 0, limit: 50, percent: 0, unlimited: false },
    persistedVaults: { used: 0, limit: 20, percent: 0, unlimited: false },
    storageBytes: { used: 0, limit: 10_737_418_240, percent: 0, unlimited: false },
    webhooks: { used: 0, limit: 10, percent: 0, unlimited: false },
    childAddresses: { used: 0, limit: 100_000, percent: 0, unlimited: false },
  })
  expect((await world.call(org.testKey, 'GET', '/account/usage')).body).toEqual(usage)
  expect(await usageOf(org, org.liveKey)).toMatchObject({ payments: { used: 0 }, byoWallets: { used: 0 } })
})

test('unlimited is -1', async () => {
  const org = await world.organisation('enterprise')
  expect(await usageOf(org)).toMatchObject({ payments: { used: 0, limit: -1 }, storageBytes: { used: 0, limit: -1 } })
})

test('the plan is returned with every limit and where to change it', async () => {
  const org = await world.organisation('hobby')
  const { body } = await world.call(org.testKey, 'GET', '/billing/plan')
  expect(body).toMatchObject({ plan: 'hobby', upgradeUrl: 'http://dashboard.test/settings/billing' })
  expect(body.limits).toMatchObject({ paymentsPerMonth: 100, byoWallets: 1, fileBytes: 10_485_760, filesPerVault: 5 })
})

test('payments count anew with each month; wallets do not', async () => {
  const org = await world.organisation('pro')
  const { id } = await world.wallet(org)
  await pay(org, id)
  now = new Date('2027-01-01T00:00:00Z')
  expect(await usageOf(org)).toMatchObject({ payments: { used: 0 }, byoWallets: { used: 1 } })
  await pay(org, id)
  await pay(org, id)
  expect(await usageOf(org)).toMatchObject({ payments: { used: 2 } })
  expect((await world.call(org.testKey, 'POST', '/billing/rebuild-cache')).body).toEqual({ rebuilt: true })
  expect(await usageOf(org)).toMatchObject({ payments: { used: 2 }, byoWallets: { used: 1 } })
  now = new Date('2026-12-31T12:00:00Z')
})

test('rebuilding corrects wrong counters, only of this tenant', async () => {
  const [org, other] = [await world.organisation('pro'), await world.organisation('pro')]
  for (const one of [org, other]) await pay(one, (await world.wallet(one)).id)
  await world.database.db.run(sql`update usage_counters set used = used + 3`)
  const rebuilt = await world.call(org.testKey, 'POST', '/billing/rebuild-cache', {})
  expect([rebuilt.status, rebuilt.body]).toEqual([200, { rebuilt: true }])
  expect(await usageOf(org)).toMatchObject({ payments: { used: 1 }, byoWallets: { used: 1 } })
  expect(await usageOf(other)).toMatchObject({ payments: { used: 4 }, byoWallets: { used: 4 } })
})

test('a sale goes on while a rebuild counts, and counts once, however many rebuilds are under way', async () => {
  const org = await world.organisation('pro')
  const { id } = await world.wallet(org)
  await pay(org, id)
  await world.database.db.run(sql`update usage_counters set used = used + 5 where organisation_id = ${org.id}`)
  let rebuilds: Promise<Answer>[] = []
  await world.database.db.tx(async (tx) => {
    // Payments are counted before the documents of vaults, which cannot be read now.
    await tx.run(sql`lock table vault_documents in access exclusive mode`)
    rebuilds = [1, 2].map(() => world.call(org.testKey, 'POST', '/billing/rebuild-cache', {}))
    const waiting = sql`select count(*) as count from pg_locks where relation = 'vault_documents'::regclass and not granted`
    const count = async () => (await tx.one(z.object({ count: z.bigint() }), waiting)).count
    await expect.poll(count, { timeout: 20_000, interval: 5 }).toBe(2n)
    expect(await pay(org, id)).toBe(200)
  })
  for (const { status } of await Promise.all(rebuilds)) expect(status).toBe(200)
  expect(await usageOf(org)).toMatchObject({ payments: { used: 2 }, byoWallets: { used: 1 } })
})

type Step =
  | { readonly kind: 'register' | 'registerAgain' | 'delete' | 'pay' | 'payTwice'; readonly pick: number }
  | { readonly kind: 'rebuild' }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom<'register' | 'registerAgain' | 'delete' | 'pay' | 'payTwice'>(
      'register',
      'register',
      'registerAgain',
      'delete',
      'pay',
      'payTwice',
    ),
    pick: fc.nat(9),
  }),
  fc.constant<Step>({ kind: 'rebuild' }),
)

/** Takes a step against an organisation whose addresses are fixed, so that steps collide. */
async function take(org: Org, addresses: readonly string[], next: Step): Promise<void> {
  const wallets = (await world.call(org.testKey, 'GET', '/wallet-infra/byo-wallets')).list
  if (next.kind === 'rebuild') {
    await world.call(org.testKey, 'POST', '/billing/rebuild-cache')
    return
  }
  const picked = wallets[next.pick % Math.max(1, wallets.length)]
  const address = next.kind === 'registerAgain' ? picked?.address : addresses[next.pick]
  const registration = { address, chain: 'base', supportedTokens: ['USDC'] }
  if (next.kind === 'register') await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', registration)
  if (next.kind === 'registerAgain') await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', registration)
  if (picked === undefined) return
  if (next.kind === 'delete') await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${picked.id}`)
  if (next.kind === 'pay') await pay(org, String(picked.id))
  if (next.kind === 'payTwice') await pay(org, String(picked.id), `stub_payment_${next.pick}`)
}

test('after any history, in any interleaving, the counters equal a recount', async () => {
  const addresses = Array.from({ length: 10 }, () => privateKeyToAddress(generatePrivateKey()))
  const lanes = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(lanes, async (histories) => {
      const org = await world.organisation('pro')
      await Promise.all(
        histories.map(async (history) => {
          for (const next of history) await take(org, addresses, next)
        }),
      )
      const counted = await usageOf(org)
      const wallets = (await world.call(org.testKey, 'GET', '/wallet-infra/byo-wallets')).list
      expect(counted.byoWallets).toMatchObject({ used: wallets.length, limit: 5 })
      await world.call(org.testKey, 'POST', '/billing/rebuild-cache')
      expect(await usageOf(org)).toEqual(counted)
    }),
    { numRuns: 15 },
  )
})
