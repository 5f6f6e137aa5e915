import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { createFakeScreening } from '../screening-double.ts'
import { nodeCall } from '../tempo-payer.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type World } from '../world.ts'

// Three nodes of one chain. The first is used where one suffices, and it misbehaves as a test says.
let chain: DevChain
let first: LyingNode
let second: LyingNode
let world: World
let org: Org
let wallet: { id: string; address: Address }

const patient = { timeout: 60_000 }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.5 })
  first = await startLyingNode(chain.rpcUrl)
  second = await startLyingNode(chain.rpcUrl)
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'base-sepolia': [first.url, second.url, chain.rpcUrl] },
    config: { settleWaitMs: 40_000 },
    boot: { screening: createFakeScreening(() => new Date()), depositPollMsMax: 200 },
  })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterEach(() => {
  first.tellTheTruth()
  second.tellTheTruth()
})
afterAll(async () => {
  await world?.stop()
  await first?.stop()
  await second?.stop()
  await chain?.stop()
})

async function verified(): Promise<Answer> {
  const wanted = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', wanted)
  const credential = await (await aPayer(chain)).credential(challenge)
  const response = await world.call(org.testKey, 'POST', '/payments/verify', {
    protocol: 'x402',
    credential,
    ...wanted,
  })
  expect(response.status).toBe(200)
  return response
}

function settle({ body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

async function nodes() {
  const readiness = await world.call('', 'GET', '/readyz')
  return Object(Object(readiness.body.chains)['base-sepolia'])
}

const allUp = () => expect.poll(nodes, patient).toMatchObject({ up: 3 })

async function expectSettled(payments: readonly Answer[]): Promise<void> {
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const answers = await Promise.all(payments.map(settle))
  expect(answers.map(({ status }) => status)).toEqual(payments.map(() => 200))
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(BigInt(payments.length) * 10_000n)
}

test('while the head of the first node is stuck, payments settle, and the node is used again when it has caught up', async () => {
  await allUp()
  const payments = [await verified(), await verified()]
  await first.freeze()
  await expectSettled(payments)
  await expect.poll(nodes, patient).toMatchObject({ up: 2, behind: 1, money: 'moves' })
  // This verification is read at a node that follows the chain: its payer was funded after the head was stuck.
  await expectSettled([await verified()])
  first.tellTheTruth()
  await allUp()
})

test('while the head of the first node is stuck, a deposit is seen and confirmed', async () => {
  await allUp()
  await first.freeze()
  const deposited = await world.wallet(org)
  await fundToken(chain, 'USDC', deposited.address, 7n)
  const statuses = async () => {
    const rows = await world.call(org.testKey, 'GET', `/wallet-infra/byo-wallets/${deposited.id}/transactions`)
    return rows.list.map(({ status }) => status)
  }
  await expect.poll(statuses, patient).toEqual(['confirmed'])
})

test('a first node that accepts signed transactions and drops them delays no payment', async () => {
  await allUp()
  const payments = [await verified(), await verified(), await verified()]
  first.lie('eth_sendRawTransaction', ({ params }) => ({ result: keccak256(params[0] as `0x${string}`) }))
  await expectSettled(payments)
  expect(first.requested('eth_sendRawTransaction')).toBeGreaterThan(0)
})

test('two of three nodes that drop signed transactions delay no payment', async () => {
  await allUp()
  const paid = await verified()
  for (const node of [first, second])
    node.lie('eth_sendRawTransaction', ({ params }) => ({ result: keccak256(params[0] as `0x${string}`) }))
  await expectSettled([paid])
})

test('a first node that calls every transaction underpriced causes no higher offer', async () => {
  await allUp()
  const paid = await verified()
  first.lie('eth_sendRawTransaction', () => ({
    error: { code: -32_000, message: 'replacement transaction underpriced' },
  }))
  await expectSettled([paid])
  expect(await attemptsMax()).toBe(1)
})

const Numbered = z.looseObject({ number: z.string() })

/** Makes the first node show its latest block under a higher number. */
function showHigherBlock(more: bigint): void {
  first.lie('eth_getBlockByNumber', async ({ params, truth }) => {
    const reply = await truth()
    if (!('result' in reply) || params[0] !== 'latest') return reply
    const block = Numbered.parse(reply.result)
    return { result: { ...block, number: `0x${(BigInt(block.number) + more).toString(16)}` } }
  })
}
const farHigher = 1_000_000_000n

test.each([1n, 3n, farHigher])(
  'an empty master wallet is retired, although the first node shows its block %d higher',
  async (more) => {
    await allUp()
    const master = await world.call(org.testKey, 'POST', '/wallet-infra/master-wallets', {
      chain: 'base',
      supportedTokens: ['USDC'],
    })
    // Its next block takes longer than deposits are awaited, as on Ethereum.
    await nodeCall(chain, 'evm_setIntervalMining', [0])
    try {
      showHigherBlock(more)
      const retired = await world.call(org.testKey, 'DELETE', `/wallet-infra/master-wallets/${master.body.id}`)
      expect([retired.status, codeOf(retired)]).toEqual([204, ''])
    } finally {
      await nodeCall(chain, 'evm_setIntervalMining', [1])
    }
  },
)

test('money that arrives after a wallet was deleted is not booked, although the first node then showed a far higher block', async () => {
  await allUp()
  const [deleted, other] = [await world.wallet(org), await world.wallet(org)]
  showHigherBlock(farHigher)
  const removed = await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${deleted.id}`)
  expect(removed.status).toBe(204)
  first.tellTheTruth()
  const booked = (id: string) => async () => {
    const Row = z.object({ count: z.bigint() })
    return (await world.database.db.one(Row, sql`select count(*) from wallet_transactions where wallet_id = ${id}`))
      .count
  }
  const { address } = other
  for (const count of [1n, 2n, 3n]) {
    await fundToken(chain, 'USDC', address, 7n)
    await expect.poll(booked(other.id), patient).toBe(count)
  }
  await fundToken(chain, 'USDC', deleted.address, 7n)
  await fundToken(chain, 'USDC', address, 7n)
  await expect.poll(booked(other.id), patient).toBe(4n)
  expect(await booked(deleted.id)()).toBe(0n)
})

test('a first node that hides the receipts of all transactions delays no payment forever', async () => {
  await allUp()
  const paid = await verified()
  first.lie('eth_getTransactionReceipt', () => ({ result: null }))
  await expectSettled([paid])
})

/** The largest number of signed forms of one transaction. */
async function attemptsMax(): Promise<number> {
  const { max } = await world.database.db.one(
    z.object({ max: z.bigint() }),
    sql`select max(count) as max from (select count(*) as count from transaction_attempts group by transaction_id order by transaction_id desc limit 1) as counts`,
  )
  return Number(max)
}
