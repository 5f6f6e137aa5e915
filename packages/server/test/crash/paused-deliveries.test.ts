import { type DevChain, fundToken, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { aReceiver, type Receiver } from '../webhooks/receiver.ts'
import { type Answer, request } from '../world.ts'
import { endEveryService, type Service, startService } from './service.ts'
import { aDeployment, type Deployment } from './stage.ts'

let database: TestDatabase
let chain: DevChain
let deployment: Deployment

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.5 })
  const env = { LEASE_MS: '3000', WEBHOOKS_ALLOW_PRIVATE: 'true' }
  deployment = await aDeployment({ databaseUrl: database.url, chain, env })
})
afterAll(async () => {
  await endEveryService()
  await chain?.stop()
  await database?.drop()
})

const start = (role: 'api' | 'work') => startService({ ...deployment.env, ROLE: role })

const call = ({ base }: Service, method: string, path: string, body?: unknown): Promise<Answer> =>
  request(base, { key: deployment.testKey, method, path, body })

/** A customer's server, registered for deposits. */
async function aHook(api: Service): Promise<Receiver> {
  const receiver = await aReceiver()
  onTestFinished(receiver.stop)
  const made = await call(api, 'POST', '/webhooks', { url: receiver.url, events: ['deposit.success'] })
  expect(made.status).toBe(201)
  return receiver
}

/** Sends this many deposits of different amounts to the deployment's wallet, and returns their transactions. */
async function sendDeposits(count: number): Promise<string[]> {
  const hashes: string[] = []
  for (let at = 1; at <= count; at++)
    hashes.push(await fundToken(chain, 'USDC', deployment.wallet.address, BigInt(at) * 10_000n))
  return hashes
}

/** How many deliveries have each status. */
function deliveries() {
  const Row = z.object({ status: z.string(), count: z.bigint() })
  return database.db.many(Row, sql`select status, count(*) as count from webhook_deliveries group by status`)
}

const txHashesOf = (receiver: Receiver): string[] => [
  ...new Set(receiver.arrived.map(({ payload }) => String(payload.txHash))),
]

test('deposits and deliveries of a worker that is paused with its connections open are continued by another one: each is booked once, none is lost', {
  timeout: 240_000,
}, async () => {
  const api = await start('api')
  const first = await start('work')
  const hook = await aHook(api)
  const sent = await sendDeposits(2)
  await expect.poll(() => txHashesOf(hook).toSorted(), { timeout: 60_000 }).toEqual(sent.toSorted())

  // Deliveries whose responses do not come are under way when the worker is paused.
  const response = hook.answer
  const reached = hook.arrived.length
  hook.answer = () => undefined
  sent.push(...(await sendDeposits(2)))
  await hook.until(reached + 1)
  const second = await start('work')
  first.child.kill('SIGSTOP')
  hook.answer = response
  sent.push(...(await sendDeposits(3)))
  await expect.poll(() => txHashesOf(hook).toSorted(), { timeout: 120_000 }).toEqual(sent.toSorted())

  first.child.kill('SIGCONT')
  sent.push(...(await sendDeposits(3)))
  await expect.poll(() => txHashesOf(hook).toSorted(), { timeout: 120_000 }).toEqual(sent.toSorted())
  const transactions = await call(
    api,
    'GET',
    `/wallet-infra/byo-wallets/${deployment.wallet.id}/transactions?limit=100`,
  )
  expect(transactions.list.map(({ txHash }) => String(txHash)).toSorted()).toEqual(sent.toSorted())
  await expect.poll(deliveries, { timeout: 60_000 }).toEqual([{ status: 'succeeded', count: BigInt(sent.length) }])
  // A delivery is repeated with the event that it had: a receiver recognizes it.
  expect(new Set(hook.ids()).size).toBe(sent.length)
  expect(await Promise.all([first, second, api].map((service) => service.end('SIGTERM')))).toEqual([0, 0, 0])
})
