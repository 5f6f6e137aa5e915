import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, codeOf, type DevChain, type Org, startChain, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org

/** A chain without its USDC contract: a signature under its domain could never be settled. */
beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  const params = [chain.tokens.USDC, '0x']
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_setCode', params })
  await fetch(chain.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
})
afterAll(async () => {
  await world.stop()
  await chain.stop()
})

test('a token that differs from the registry is never offered, and is listed without payment by signature', async () => {
  const { id: walletId } = await world.wallet(org)
  const tokens = () => world.call(org.testKey, 'GET', '/wallet-infra/chains/base/tokens')
  await expect
    .poll(async () => (await tokens()).list[0])
    .toMatchObject({ symbol: 'USDC', eip3009: false, eip712: null })
  const refused = await world.call(org.testKey, 'POST', '/payments/challenge', {
    walletId,
    resource: 'https://api.example.com/a',
    price: '0.01',
  })
  expect([refused.status, codeOf(refused)]).toEqual([422, 'chain-not-supported'])
  const ready = await fetch(`${world.base}/readyz`)
  expect([ready.status, await ready.json()]).toEqual([
    200,
    expect.objectContaining({
      chains: {
        'base-sepolia': {
          status: 'up',
          nodes: 1,
          up: 1,
          needed: 1,
          money: 'moves',
          behind: 0,
          suspended: 0,
          refused: 0,
          wrongTokens: ['USDC'],
        },
      },
    }),
  ])
  const metrics = await (await fetch(`${world.base}/metrics`)).text()
  expect(metrics).toContain('purser_rpc_node_up{network="base-sepolia",node="1"} 1')
})
