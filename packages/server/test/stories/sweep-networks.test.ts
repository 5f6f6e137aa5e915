import { type DevChain, type FaultProxy, startChain, startFaultProxy, tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { aFamily } from '../sweep-stage.ts'
import { aWorld, type World } from '../world.ts'

// Automatic sweeps on two networks. The nodes of one of them hang.
let base: DevChain
let ethereum: DevChain
let node: FaultProxy
let world: World

const rpcTimeoutMs = 60_000

beforeAll(async () => {
  ;[base, ethereum] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'eth-sepolia' }),
  ])
  node = await startFaultProxy(base.rpcUrl)
  const rpcUrls = { 'base-sepolia': [node.url] }
  world = await aWorld({ chains: [base, ethereum], rpcUrls, config: { rpcTimeoutMs } })
})
afterAll(async () => {
  // Ends the requests that hang, for which the service would wait.
  await node?.stop()
  await world?.stop()
  await Promise.all([base?.stop(), ethereum?.stop()])
})

test('a network whose nodes hang delays the automatic sweeps of no other', async () => {
  const org = await world.organisation()
  const stuck = await aFamily(world, org, base, { count: 1 })
  const swept = await aFamily(world, org, ethereum, { count: 1, of: { chain: 'ethereum', token: 'USDC' } })
  for (const { path } of [stuck, swept]) {
    const autoSweep = { token: 'USDC', minAmount: '0.5', everyMinutes: 60 }
    expect((await world.call(org.testKey, 'PATCH', path, { autoSweep })).status).toBe(200)
  }
  const makeDue = (id: string, secondsAgo: number) =>
    world.database.db.run(
      sql`update master_wallets set auto_sweep_due_at = now() - make_interval(secs => ${secondsAgo}) where id = ${id}`,
    )
  node.set('hang')
  await makeDue(stuck.id, 60)
  await expect.poll(() => node.methods.length, { timeout: 20_000 }).toBeGreaterThan(0)
  // A sweep that runs before the deposit is deep enough finds nothing.
  const sweptBalance = async () => {
    await makeDue(swept.id, 0)
    return tokenBalance(ethereum, 'USDC', swept.address)
  }
  await expect.poll(sweptBalance, { timeout: 40_000, interval: 1_000 }).toBe(1_000_000n)
})
