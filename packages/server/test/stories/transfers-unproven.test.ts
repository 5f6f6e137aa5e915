import { sandboxBridgeAddress, tokenBalance } from '@purser/devnet'
import { createPublicClient, createTestClient, http, parseAbi } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { aPartnerStage, bridgeOf, type Managed, type PartnerStage, swapOf } from '../partner-stage.ts'
import { countAtNode } from '../transfer-stage.ts'
import { codeOf } from '../world.ts'

const abi = parseAbi(['function allowance(address owner, address spender) view returns (uint256)'])
let stage: PartnerStage
let lying: LyingNode

beforeAll(async () => {
  stage = await aPartnerStage({
    async before(url) {
      lying = await startLyingNode(url)
      return lying.url
    },
  })
})
afterAll(async () => {
  await stage?.stop()
  await lying?.stop()
})
beforeEach(() => stage.renew())
afterEach(async () => {
  lying.tellTheTruth()
  await nodeOf().setAutomine(true)
})

function nodeOf() {
  return createTestClient({ mode: 'anvil', transport: http(stage.base.rpcUrl) })
}

/** A node that supports neither `eth_simulateV1` nor state overrides in `eth_call`. */
function simulateNothing(): void {
  lying.lie('eth_simulateV1', () => ({ error: { code: -32_601, message: 'the method does not exist' } }))
  lying.lie('eth_call', ({ params, truth }) =>
    params.length > 2 ? { error: { code: -32_602, message: 'too many arguments, want at most 2' } } : truth(),
  )
}

function allowed({ address: owner }: Managed): Promise<bigint> {
  const client = createPublicClient({ transport: http(stage.base.rpcUrl) })
  const address = stage.base.tokens.USDC ?? '0x'
  return client.readContract({ address, abi, functionName: 'allowance', args: [owner, sandboxBridgeAddress] })
}

test('where no node can simulate a partner’s call, nothing is signed, and the same request is served once one can', async () => {
  const master = await stage.aMaster()
  const requests = [
    swapOf(master, { fromToken: 'USDC', toToken: 'ETH', amount: '10' }),
    bridgeOf(master, { amount: '10' }),
  ]
  simulateNothing()
  for (const body of requests) {
    const refused = await stage.send(body)
    expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([
      503,
      'partner-unavailable',
      'cannot-simulate',
    ])
  }
  expect([await stage.countOf(master), await tokenBalance(stage.base, 'USDC', master.address)]).toEqual([
    0,
    100_000_000n,
  ])
  expect(await allowed(master)).toBe(0n)
  expect(stage.lines.join('')).toContain('no node simulates calls')

  lying.lie('eth_call', ({ truth }) => truth())
  expect((await stage.send(requests[0] ?? {})).status, 'by state overrides').toBe(201)
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(90_000_000n)
})

test('a call that no node can simulate after its approval waits for a node that can, and is not sent before', async () => {
  const master = await stage.aMaster()
  await nodeOf().setAutomine(false)
  const sending = stage.send(bridgeOf(master))
  await expect.poll(() => countAtNode(stage.world, stage.base, master.address), { timeout: 60_000 }).toBe(1)
  simulateNothing()
  const before = lying.requested('eth_simulateV1')
  await nodeOf().setAutomine(true)
  await nodeOf().mine({ blocks: 1 })
  await expect.poll(() => lying.requested('eth_simulateV1'), { timeout: 60_000 }).toBeGreaterThan(before + 2)
  expect([await stage.countOf(master), await tokenBalance(stage.base, 'USDC', master.address)]).toEqual([
    1,
    100_000_000n,
  ])
  lying.tellTheTruth()
  const sent = await sending
  await stage.relayer.pass()
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  expect([await stage.countOf(master), await tokenBalance(stage.base, 'USDC', master.address)]).toEqual([
    2,
    50_000_000n,
  ])
})

test('if no node can simulate the call until its quote expires, the transfer fails, and its allowance is revoked', async () => {
  const master = await stage.aMaster()
  await nodeOf().setAutomine(false)
  const sending = stage.send(bridgeOf(master))
  await expect.poll(() => countAtNode(stage.world, stage.base, master.address), { timeout: 60_000 }).toBe(1)
  simulateNothing()
  await nodeOf().setAutomine(true)
  await nodeOf().mine({ blocks: 1 })
  stage.clock.forward(120_000)
  const refused = await sending
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'transfer-reverted', 'quote-expired'])
  await expect.poll(() => allowed(master), { timeout: 60_000 }).toBe(0n)
  expect([await stage.countOf(master), await tokenBalance(stage.base, 'USDC', master.address)]).toEqual([
    2,
    100_000_000n,
  ])
})
