import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runAdmin } from '../../src/admin/run.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aFamily } from '../sweep-stage.ts'
import { aPayer, aWorld, codeOf, type Org, unreachableMain, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], rpcUrls: unreachableMain })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const patience = { timeout: 90_000 }

async function admin(...args: string[]): Promise<void> {
  const options = ['--organisation', org.id]
  const { exitCode } = await runAdmin(['admin', ...args, ...options], { DATABASE_URL: world.database.url })
  expect(exitCode).toBe(0)
}
const suspend = () => admin('suspend-organisation', '--reason', 'Fraud is suspected.')

test('a payment that was verified before still settles, and a credential for a challenge from before buys nothing', async () => {
  const wallet = await world.wallet(org)
  const payer = await aPayer(chain)
  const terms = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const challenge = () => world.call(org.testKey, 'POST', '/payments/challenge', terms)
  const sale = { ...terms, protocol: 'x402', currency: 'USD', method: 'GET' }
  const verify = async (credential: string) =>
    world.call(org.testKey, 'POST', '/payments/verify', { ...sale, credential })
  const [paid, late] = [await payer.credential(await challenge()), await payer.credential(await challenge())]
  const { paymentId, settlementToken } = (await verify(paid)).body
  await suspend()
  for (const refused of [await challenge(), await verify(late), await verify(paid)])
    expect([refused.status, codeOf(refused)]).toEqual([403, 'organisation-suspended'])
  const settled = await world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
  expect([settled.status, await tokenBalance(chain, 'USDC', wallet.address)]).toEqual([200, 10_000n])
  await admin('resume-organisation')
  expect((await verify(late)).status).toBe(200)
})

test('deposits of a suspended organisation are booked, and its wallets sweep by themselves once it is resumed', async () => {
  const family = await aFamily(world, org, chain, { count: 1, rawAmount: 0n })
  const [child] = family.children
  const autoSweep = { token: 'USDC', minAmount: '0.5', everyMinutes: 60 }
  expect((await world.call(org.testKey, 'PATCH', family.path, { autoSweep })).status).toBe(200)
  await suspend()
  await fundToken(chain, 'USDC', child?.address ?? '0x', 2_000_000n)
  const path = `${family.path}/child-addresses/${child?.id}/transactions`
  const booked = async () =>
    (await world.call(org.testKey, 'GET', path)).list.map(({ direction, amount, status }) => [
      direction,
      amount,
      status,
    ])
  await expect.poll(booked, patience).toEqual([['in', '2', 'confirmed']])
  const becomeDue = () =>
    world.database.db.run(sql`update master_wallets set auto_sweep_due_at = now() where id = ${family.id}`)
  await becomeDue()
  const isDue = async () =>
    (await world.database.db.run(sql`
      update master_wallets set name = name where id = ${family.id} and auto_sweep_due_at <= now()`)) === 1
  await expect.poll(isDue, patience).toBe(false)
  expect((await world.call(org.testKey, 'GET', `${family.path}/sweeps`)).list).toEqual([])
  await admin('resume-organisation')
  await becomeDue()
  await expect.poll(() => tokenBalance(chain, 'USDC', family.address), patience).toBe(2_000_000n)
}, 270_000)
