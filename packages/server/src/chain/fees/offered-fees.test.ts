import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aLiarStage, type LiarStage } from '../../../test/liar-stage.ts'
import { type LyingNode, type NodeResponse, startLyingNode } from '../../../test/lying-node.ts'

let liar: LyingNode
let stage: LiarStage

beforeAll(async () => {
  stage = await aLiarStage()
  liar = stage.liar
})
afterEach(() => liar.tellTheTruth())
afterAll(() => stage?.stop())

/** The fees that a transaction offers where one of this many nodes, the first, lies. */
function offered(nodes: number, rpcTimeoutMs = 4_000) {
  return stage.among(nodes - 1, { rpcTimeoutMs }).offeredFees()
}

function lieOfFees(wei: bigint, others: Readonly<Record<string, string>> = {}): void {
  const quantity = `0x${wei.toString(16)}`
  liar.lie('eth_maxPriorityFeePerGas', () => ({ result: quantity }))
  liar.lie('eth_getBlockByNumber', async ({ truth }) => {
    const block = await truth()
    return 'result' in block ? { result: { ...Object(block.result), ...others, baseFeePerGas: quantity } } : block
  })
}

test('a node that asks for too high or too low fees is outvoted by two others', async () => {
  const honest = await offered(3)
  for (const wei of [10n ** 15n, 0n]) {
    lieOfFees(wei)
    expect(await offered(3)).toEqual(honest)
  }
})

test('of two nodes the lower fees are offered, so that neither can drain the account', async () => {
  const honest = await offered(2)
  lieOfFees(10n ** 15n)
  expect(await offered(2)).toEqual(honest)
})

test('a node that fails delays no fees', async () => {
  const honest = await offered(2)
  liar.flood(100_000)
  expect(await offered(2)).toEqual(honest)
  expect(await offered(3)).toEqual(honest)
})

test('a node that answers late does not delay the fees of two others', async () => {
  const honest = await offered(3)
  const late = Promise.withResolvers<NodeResponse>()
  liar.lie('eth_getBlockByNumber', () => late.promise)
  expect(await Promise.race([offered(3, 60_000), delay(20_000, 'waiting')])).toEqual(honest)
  late.resolve({ result: null })
})

test('a node that alone reports fees raises each at most to twice what a majority reported before, and lowers it at most to half', async () => {
  const failing = [await startLyingNode(stage.dev.rpcUrl), await startLyingNode(stage.dev.rpcUrl)]
  try {
    const chain = stage.among(0, { moreUrls: failing.map(({ url }) => url) })
    const { baseFee, priorityFee } = await chain.offeredFees()
    for (const node of failing) node.flood(100_000)
    lieOfFees(10n ** 15n)
    const alone = await chain.offeredFees()
    expect(alone.baseFee).toBe(baseFee * 2n)
    expect(alone.priorityFee).toBeLessThanOrEqual(priorityFee * 2n)
    lieOfFees(1n)
    expect((await chain.offeredFees()).baseFee).toBe(baseFee / 2n)
    for (const node of failing) node.tellTheTruth()
    liar.tellTheTruth()
    expect(await chain.offeredFees()).toMatchObject({ baseFee, priorityFee })
  } finally {
    await Promise.all(failing.map((node) => node.stop()))
  }
})

test('one node that lies low does not set the fees while another one is late', async () => {
  const slow = await startLyingNode(stage.dev.rpcUrl)
  try {
    const honest = await offered(3)
    lieOfFees(0n)
    slow.lie('eth_getBlockByNumber', async ({ truth }) => {
      await delay(500)
      return truth()
    })
    const chain = stage.among(1, { moreUrls: [slow.url] })
    expect(await chain.offeredFees(), 'the first reading waits').toEqual(honest)
    const second = await chain.offeredFees()
    expect(second.baseFee).toBeGreaterThanOrEqual(honest.baseFee / 2n)
    expect(honest.baseFee).toBeGreaterThan(1n)
  } finally {
    await slow.stop()
  }
})

test('one node that lies low does not set the fees while another one fails, in however many readings', async () => {
  const failing = await startLyingNode(stage.dev.rpcUrl)
  try {
    const chain = stage.among(1, { moreUrls: [failing.url] })
    const honest = await chain.offeredFees()
    failing.flood(100_000)
    lieOfFees(0n)
    for (let reading = 0; reading < 5; reading += 1)
      expect((await chain.offeredFees()).baseFee).toBe(honest.baseFee / 2n)
    lieOfFees(honest.baseFee / 2n)
    expect((await chain.offeredFees()).baseFee, 'the two are alike').toBe(honest.baseFee / 2n)
  } finally {
    await failing.stop()
  }
})

test('of two nodes one that lies low later does not set the fees', async () => {
  const chain = stage.among(1)
  const { baseFee } = await chain.offeredFees()
  lieOfFees(0n)
  expect((await chain.offeredFees()).baseFee).toBe(baseFee / 2n)
})

test('of two nodes one that invents blocks, so that the other counts as behind, does not set the fees alone', async () => {
  const honest = await offered(2)
  liar.lie('eth_blockNumber', () => ({ result: '0xffffff' }))
  lieOfFees(10n ** 15n, { number: '0xffffff' })
  const { chain, chains, network } = stage.comparedAmong(1)
  try {
    await expect.poll(() => chains.health(network)?.behind, { timeout: 20_000 }).toBe(1)
    expect(await chain.offeredFees()).toEqual(honest)
  } finally {
    await chains.stop()
  }
})
