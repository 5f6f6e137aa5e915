import { type DevChain, type FaultMode, type FaultProxy, fundToken, startFaultProxy } from '@purser/devnet'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, startChain, type World } from '../world.ts'

let chain: DevChain
let proxy: FaultProxy
let world: World
let org: Org

beforeAll(async () => {
  chain = await startChain({ network: 'base', epochBlocks: 32 })
  proxy = await startFaultProxy(chain.rpcUrl)
  const config = { rpcTimeoutMs: 300 }
  world = await aWorld({ rpcUrls: { base: [proxy.url] }, config, boot: { depositPollMsMax: 50 } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await proxy?.stop()
  await chain?.stop()
})

async function mine(count: number): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_mine', params: [`0x${count.toString(16)}`] })
  await fetch(chain.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
}

async function aWallet(): Promise<{ readonly id: string; readonly address: `0x${string}` }> {
  const { address } = privateKeyToAccount(generatePrivateKey())
  const body = { address, chain: 'base', supportedTokens: ['USDC'] }
  const made = await world.call(org.liveKey, 'POST', '/wallet-infra/byo-wallets', body)
  return { id: String(made.body.id), address }
}

async function statusesOf(id: string): Promise<unknown[]> {
  const rows = await world.call(org.liveKey, 'GET', `/wallet-infra/byo-wallets/${id}/transactions`)
  return rows.list.map(({ status }) => status)
}

async function reportOf(id: string): Promise<number> {
  const events = await world.call(org.liveKey, 'GET', '/events?type=deposit.success&limit=500')
  return events.list.filter(({ payload }) => Object(payload).walletId === id).length
}

const patient = { timeout: 120_000 }

test('a deposit of real money waits for the block that the node calls safe', async () => {
  const wallet = await aWallet()
  await fundToken(chain, 'USDC', wallet.address, 5n)
  await expect.poll(() => statusesOf(wallet.id), patient).toEqual(['pending'])
  await mine(20)
  const later = await aWallet()
  await fundToken(chain, 'USDC', later.address, 5n)
  await expect.poll(() => statusesOf(later.id), patient).toEqual(['pending'])
  expect([await statusesOf(wallet.id), await reportOf(wallet.id)]).toEqual([['pending'], 0])
  await mine(12)
  await expect.poll(() => statusesOf(wallet.id), patient).toEqual(['confirmed'])
  expect([await reportOf(wallet.id), await statusesOf(later.id)]).toEqual([1, ['pending']])
  await mine(32)
  await expect.poll(() => reportOf(later.id), patient).toBe(1)
})

const modes: readonly FaultMode[] = [
  { kind: 'hang' },
  { kind: 'drop' },
  { kind: 'error500' },
  { kind: 'garbage' },
  { kind: 'wrong' },
  { kind: 'rate-limit' },
  { kind: 'delay', delayMs: 400 },
]

test.each(modes)(
  'with a node that has the fault $kind for a while a deposit is seen once, after the fault',
  async (mode) => {
    const wallet = await aWallet()
    proxy.set(mode)
    const requested = proxy.requests
    await fundToken(chain, 'USDC', wallet.address, 7n)
    await mine(40)
    await expect.poll(() => proxy.requests - requested, patient).toBeGreaterThanOrEqual(2)
    expect(await statusesOf(wallet.id)).toEqual([])
    proxy.set('pass')
    await expect.poll(() => reportOf(wallet.id), patient).toBe(1)
    expect(await statusesOf(wallet.id)).toEqual(['confirmed'])
  },
)
