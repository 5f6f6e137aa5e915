import { type DevChain, startChain } from '@purser/devnet'
import { type Hex, keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { followTransactions } from '../../src/features/payments/methods/mpp-tempo/follow.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type Lie, type LyingNode, startLyingNode } from '../lying-node.ts'
import { runOnce } from '../run-once.ts'
import { aTempoPayer, aTempoWallet, nodeCall, offerOf, push, type TempoPayer } from '../tempo-payer.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

/** A process with three nodes, of which the first lies. It only answers: the chain is read for an open payment when a test does it. */
let chain: DevChain
let nodes: readonly LyingNode[]
let world: World
let org: Org
let payer: TempoPayer
let wallet: { id: string }

const resource = 'https://api.example.com/weather'
const Hexadecimal = z.templateLiteral(['0x', z.string()])

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  nodes = await Promise.all([1, 2, 3].map(() => startLyingNode(chain.rpcUrl)))
  const config = { role: 'api', settleWaitMs: 1_000 } as const
  world = await aWorld({ chains: [chain], rpcUrls: { 'tempo-moderato': nodes.map(({ url }) => url) }, config })
  org = await world.organisation()
  wallet = await aTempoWallet(world, org)
  payer = await aTempoPayer(chain)
})
afterEach(() => {
  for (const node of nodes) node.tellTheTruth()
})
afterAll(async () => {
  await world?.stop()
  await Promise.all((nodes ?? []).map((node) => node.stop()))
  await chain?.stop()
})

async function pay(): Promise<Answer> {
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  const offer = offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
  const credential = await payer.pull(offer)
  return world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'mpp', credential, ...requested })
}

async function statusOf({ body }: Answer): Promise<unknown> {
  return (await world.call(org.testKey, 'GET', `/payments/${String(body.paymentId)}`)).body.status
}

/** Follows all open payments by a process whose clock is ahead by this much. */
async function follow(aheadMs = 0): Promise<void> {
  await world.database.db.run(sql`update payments set check_at = now() - interval '1 second' where status = 'settling'`)
  const clock = new ShiftedClock()
  clock.forward(aheadMs)
  await runOnce({ ...world.server.deps, clock }, followTransactions)
}

/** A payment whose transaction no node has kept. */
async function anUnsentPayment(): Promise<Answer> {
  for (const node of nodes) {
    node.lie('eth_sendRawTransactionSync', () => ({ error: { code: -32_601, message: 'method not found' } }))
    node.lie('eth_sendRawTransaction', ({ params }) => ({ result: keccak256(Hexadecimal.parse(params[0])) }))
  }
  const payment = await pay()
  expect(payment.body.settlementPending).toBe(true)
  for (const node of nodes) node.tellTheTruth()
  return payment
}

/** The first node changes its newest and its final block. */
function lieAboutBlocks(change: (block: Record<string, unknown>) => object): void {
  nodes[0]?.lie('eth_getBlockByNumber', async ({ params, truth }) => {
    const reply = await truth()
    if (!['latest', 'finalized'].includes(String(params[0])) || !('result' in reply)) return reply
    const block = Object(reply.result)
    return { result: { ...block, ...change(block) } }
  })
}

const next = (number: unknown): Hex => `0x${(BigInt(String(number)) + 1n).toString(16)}`

/** The receipt of a transaction that failed in a block that does not exist. */
const invented: Lie = ({ params: [transactionHash] }) => {
  const block = { blockHash: `0x${'6'.repeat(64)}`, blockNumber: '0x1' }
  const gas = { gasUsed: '0x1', effectiveGasPrice: '0x1' }
  return { result: { transactionHash, ...block, ...gas, status: '0x0', logs: [] } }
}

test('while the first node is ahead, each read of a waiting request reads its receipt, and few search all nodes', async () => {
  for (const node of nodes.slice(1)) node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  const requested = () => nodes.map((node) => node.requested('eth_getTransactionReceipt'))
  const before = requested()
  const payment = await pay()
  expect(payment.body.settlementPending).toBe(true)
  // Each read first looks at the preferred node alone, and then has all nodes confirm what it shows. How many reads there are in a second depends on how long they take.
  const [first = 0, , last = 0] = requested().map((count, index) => count - (before[index] ?? 0))
  const reads = first - last
  expect(reads).toBeGreaterThan(2)
  // At the first, second, fourth and eighth read, all nodes are searched as well, and confirm once more.
  expect(last).toBeLessThanOrEqual(reads + 2 * (Math.floor(Math.log2(reads)) + 1))
  for (const node of nodes) node.tellTheTruth()
  await follow()
  expect(await statusOf(payment)).toBe('settled')
})

test('a payment that was never sent is sent, although the first node shows a receipt of it', async () => {
  const payment = await anUnsentPayment()
  nodes[0]?.lie('eth_getTransactionReceipt', invented)
  await follow()
  await follow()
  expect(await statusOf(payment)).toBe('settled')
})

test('a pushed hash is accepted, although the first node shows another receipt of it whenever it does not vote', async () => {
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  const offer = offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
  const credential = push(offer, await payer.broadcast(offer), payer)
  let reads = 0
  nodes[0]?.lie('eth_getTransactionReceipt', (call) => {
    reads += 1
    return reads % 2 === 1 ? invented(call) : call.truth()
  })
  const paid = await world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'mpp', credential, ...requested })
  expect(paid.status).toBe(200)
})

test('a first node that shows each receipt in a block of its own above the others keeps no payment open', async () => {
  lieAboutBlocks(({ number }) => ({ number: next(number) }))
  nodes[0]?.lie('eth_getTransactionReceipt', async ({ truth }) => {
    const reply = await truth()
    if (!('result' in reply) || reply.result === null) return reply
    const receipt = Object(reply.result)
    return { result: { ...receipt, blockNumber: next(receipt.blockNumber), blockHash: `0x${'6'.repeat(64)}` } }
  })
  const payment = await pay()
  await follow()
  expect(await statusOf(payment)).toBe('settled')
})

test('a payment that was never sent is sent, although the first node shows a head past its end', async () => {
  const payment = await anUnsentPayment()
  lieAboutBlocks(() => ({ timestamp: '0xffffffff' }))
  await follow()
  await follow()
  expect(await statusOf(payment)).toBe('settled')
})

test('a payment that was never mined fails past its end, although the first node shows old blocks', async () => {
  const payment = await anUnsentPayment()
  lieAboutBlocks(() => ({ timestamp: '0x1' }))
  await nodeCall(chain, 'anvil_mine', ['0x8c', '0x1'])
  await follow(120_000)
  expect(await statusOf(payment)).toBe('settlement_failed')
})
