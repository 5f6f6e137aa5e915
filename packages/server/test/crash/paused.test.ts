import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { type Answer, request } from '../world.ts'
import { sign } from './load.ts'
import { endEveryService, type Service, startService } from './service.ts'
import { aDeployment, type Deployment, verifyBody } from './stage.ts'

let database: TestDatabase
let chain: DevChain
let deployment: Deployment

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.5 })
  deployment = await aDeployment({ databaseUrl: database.url, chain, env: { SETTLE_WAIT_MS: '500', LEASE_MS: '3000' } })
})
afterAll(async () => {
  await endEveryService()
  await chain?.stop()
  await database?.drop()
})

const start = (role: 'api' | 'work') => startService({ ...deployment.env, ROLE: role })

/** How many lane shards of the network each owner has leased. */
async function ownersOf(): Promise<readonly { readonly owner: string; readonly count: bigint }[]> {
  const Row = z.object({ owner: z.string(), count: z.bigint() })
  const leased = sql`select owner_token as owner, count(*) as count from leases
    where scope = 'lanes/base-sepolia' and until > clock_timestamp() group by owner_token`
  return database.db.many(Row, leased)
}

/** How many recurring tasks each owner has leased. */
async function ownersOfLoops(): Promise<readonly { readonly owner: string; readonly count: number }[]> {
  const Row = z.object({ owner: z.string(), count: z.number() })
  const leased = sql`select owner_token as owner, count(*)::integer as count from leases
    where scope like 'loops/%' and until > clock_timestamp() group by owner_token`
  return database.db.many(Row, leased)
}

/** Returns the milliseconds until the end of the lease that ends last, by the clock of the database. */
async function longestLeaseMs(): Promise<number> {
  const left = sql`select (extract(epoch from max(until) - clock_timestamp()) * 1000)::integer as ms from leases`
  return (await database.db.one(z.object({ ms: z.number() }), left)).ms
}

/** Waits until a newly registered wallet is screened, which a recurring task does. */
async function screened({ base }: Service, address: string): Promise<void> {
  const body = { address, chain: 'base-sepolia', supportedTokens: ['USDC'] }
  const made = await request(base, { key: deployment.testKey, method: 'POST', path: '/wallet-infra/byo-wallets', body })
  expect([made.status, made.body.amlStatus]).toEqual([201, 'pending'])
  const wallet = async () =>
    (await request(base, { key: deployment.testKey, method: 'GET', path: `/wallet-infra/byo-wallets/${made.body.id}` }))
      .body
  await expect.poll(async () => (await wallet()).amlStatus, { timeout: 20_000, interval: 100 }).toBe('clear')
}

let signed = 0

/** Verifies a payment and requests its settlement until it is settled. */
async function settle({ base }: Service): Promise<Answer> {
  const { credential } = await sign(deployment, signed)
  signed += 1
  const post = (path: string, body: unknown) => request(base, { key: deployment.testKey, method: 'POST', path, body })
  const verified = await post('/payments/verify', verifyBody(deployment.wallet.id, credential))
  const { paymentId, settlementToken } = verified.body
  const settlement = () => post('/payments/settle', { paymentId, settlementToken })
  await expect.poll(async () => (await settlement()).status, { timeout: 90_000, interval: 50 }).toBe(200)
  return settlement()
}

test('a worker that is paused with its connections open is replaced when its lease ends, and pays nothing twice when it resumes', {
  timeout: 450_000,
}, async () => {
  const api = await start('api')
  const before = await tokenBalance(chain, 'USDC', deployment.wallet.address)
  const first = await start('work')
  await expect.poll(ownersOf, { timeout: 10_000 }).toMatchObject([{ count: 8n }])
  const [own] = await ownersOf()
  await expect.poll(async () => (await ownersOfLoops()).length, { timeout: 10_000 }).toBe(1)
  const [loops] = await ownersOfLoops()
  const second = await start('work')
  await settle(api)

  const under = [settle(api), settle(api), settle(api)]
  first.child.kill('SIGSTOP')
  const others = async () => (await ownersOf()).filter(({ owner }) => owner !== own?.owner)
  expect(await longestLeaseMs()).toBeLessThanOrEqual(6_000)
  await expect.poll(others, { timeout: 60_000, interval: 20 }).toMatchObject([{ count: 8n }])
  const otherLoops = async () => (await ownersOfLoops()).filter(({ owner }) => owner !== loops?.owner)
  await expect.poll(otherLoops, { timeout: 60_000, interval: 20 }).toMatchObject([{ count: loops?.count }])
  await screened(api, '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed')
  await settle(api)
  await Promise.all(under)

  first.child.kill('SIGCONT')
  for (let count = 0; count < 5; count++) await settle(api)
  expect((await tokenBalance(chain, 'USDC', deployment.wallet.address)) - before).toBe(10n * 10_000n)
  expect(await Promise.all([first, second, api].map((service) => service.end('SIGTERM')))).toEqual([0, 0, 0])
})
