import { fundToken, tokenBalance } from '@purser/devnet'
import { formatAmount } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import type { NodeResponse } from '../lying-node.ts'
import {
  aMaster,
  aTransferStage,
  attemptsOf,
  begin,
  bodyFrom,
  driving,
  eventsOf,
  hasEnded,
  type Managed,
  path,
  patient,
  reservedBy,
  send,
  type TransferStage,
  transferOf,
  untilBooked,
} from '../transfer-stage.ts'
import { type Answer, codeOf, request } from '../world.ts'

const gwei = 10n ** 9n
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
})
afterEach(() => stage.node.tellTheTruth())
afterAll(() => stage?.stop())

function hex(value: bigint): string {
  return `0x${value.toString(16)}`
}

function word(value: bigint): string {
  return value.toString(16).padStart(64, '0')
}

/** Makes the node return `reported` for each account whose balance is `real`. */
function lieAboutBalance(real: bigint, reported: bigint): void {
  stage.node.lie('eth_call', async ({ truth }) => {
    const reply = await truth()
    return 'result' in reply ? { result: String(reply.result).replaceAll(word(real), word(reported)) } : reply
  })
}

/** A record answer with changed members. */
function changed(reply: NodeResponse, changes: Record<string, unknown>): NodeResponse {
  return 'result' in reply && reply.result !== null ? { result: { ...Object(reply.result), ...changes } } : reply
}

async function arrived({ toAddress }: { readonly toAddress: `0x${string}` }): Promise<bigint> {
  return tokenBalance(stage.dev, 'USDC', toAddress)
}

async function countTransfers({ id }: Managed): Promise<bigint> {
  const { count } = await stage.world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from transfers where wallet_id = ${id}`,
  )
  return count
}

/** The transfer was refused with nothing stored; once the node is honest the same request is carried out, once. */
async function expectRefusedThenSent(from: Managed, refused: Answer, body: ReturnType<typeof bodyFrom>): Promise<void> {
  expect([await countTransfers(from), await arrived(body)]).toEqual([0n, 0n])
  expect(refused.status).not.toBe(201)
  stage.node.tellTheTruth()
  const sent = await send(stage, body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(await arrived(body)).toBe(2_500_000n)
}

/** Waits for the end, and moves the clock so that rebroadcasts are due. */
async function untilConfirmed(id: string): Promise<void> {
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(4_000)
    return hasEnded(stage, id)
  }
  await expect.poll(ended, driving).toBe(true)
  expect((await transferOf(stage, id)).status).toBe('confirmed')
}

test('a node that reports too high a balance gets nothing sent, and the refusal has the chain’s message', async () => {
  const master = await aMaster(stage, { usdc: 1_234_567n })
  lieAboutBalance(1_234_567n, 9_000_000n)
  const body = bodyFrom(master)
  const refused = await send(stage, body)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'transfer-reverted'])
  stage.node.tellTheTruth()
  const short = await send(stage, body)
  expect(short.body.balances).toEqual([{ token: 'USDC', required: '2.5', available: '1.234567' }])
  await fundToken(stage.dev, 'USDC', master.address, 5_000_000n)
  await untilBooked(stage.world, stage.dev)
  await expectRefusedThenSent(master, refused, body)
})

test('a transfer that only a node’s lies let through reverts cleanly: 422, the reservation released, and the wallet continues', async () => {
  const master = await aMaster(stage, { usdc: 1_234_568n })
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '3' } } }
  await stage.world.call(stage.key, 'PUT', `/wallet-infra/master-wallets/${master.id}/policy`, policy)
  lieAboutBalance(1_234_568n, 9_000_000n)
  stage.node.lie('eth_estimateGas', () => ({ result: hex(70_000n) }))
  const body = bodyFrom(master)
  const refused = await send(stage, body)
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'transfer-reverted', 'reverted'])
  expect([await arrived(body), await reservedBy(stage, master)]).toEqual([0n, 0n])
  expect(await eventsOf(stage, String(refused.body.transferId)), 'its caller got the answer').toEqual([])
  stage.node.tellTheTruth()
  expect((await send(stage, bodyFrom(master, { amount: '1.234568' }))).body.status).toBe('confirmed')
})

test('a node that reports too low a balance causes a refusal with the amounts, and nothing else', async () => {
  const master = await aMaster(stage, { usdc: 7_654_321n })
  lieAboutBalance(7_654_321n, 17n)
  const body = bodyFrom(master)
  const refused = await send(stage, body)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'insufficient-balance'])
  expect(refused.body.balances).toEqual([{ token: 'USDC', required: '2.5', available: '0.000017' }])
  await expectRefusedThenSent(master, refused, body)
})

test('an absurd gas price is offered up to the limit and no further, and the reported fee is the fee paid', async () => {
  const master = await aMaster(stage)
  stage.node.lie('eth_getBlockByNumber', async ({ truth }) =>
    changed(await truth(), { baseFeePerGas: hex(10n ** 30n) }),
  )
  stage.node.lie('eth_maxPriorityFeePerGas', () => ({ result: hex(10n ** 30n) }))
  const body = bodyFrom(master)
  const sent = await send(stage, body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  const [only, ...others] = await attemptsOf(stage, String(sent.body.id))
  expect([only?.maxFee, only?.priorityFee, others]).toEqual([1_000n * gwei, 20n * gwei, []])
  const left = await stage.chain.getBalance({ address: master.address })
  expect(sent.body.feeAmount).toBe(formatAmount(10n ** 18n - left, 18))
  expect(await arrived(body)).toBe(2_500_000n)
})

test('a gas price of zero makes a transfer that no block includes wait, and it is sent once the node reports the real one', async () => {
  const master = await aMaster(stage)
  stage.node.lie('eth_getBlockByNumber', async ({ truth }) => changed(await truth(), { baseFeePerGas: '0x0' }))
  stage.node.lie('eth_maxPriorityFeePerGas', () => ({ result: '0x0' }))
  const body = bodyFrom(master)
  const id = await begin(stage, body)
  await expect.poll(async () => (await attemptsOf(stage, id)).length, patient).toBeGreaterThan(0)
  stage.node.tellTheTruth()
  await untilConfirmed(id)
  expect(await arrived(body)).toBe(2_500_000n)
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
})

test.each([
  ['more than any block holds', 10n ** 18n],
  ['more than one transaction may have', 30_000_000n],
  ['nothing', 0n],
  ['less than its bytes alone cost', 21_000n],
])('a gas estimate of %s is rejected: 503, and nothing is signed that no block could include', async (_what, gas) => {
  const master = await aMaster(stage)
  stage.node.lie('eth_estimateGas', () => ({ result: hex(gas) }))
  const body = bodyFrom(master)
  const refused = await send(stage, body)
  expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-unavailable'])
  await expectRefusedThenSent(master, refused, body)
})

test.each([
  [
    'an error after accepting it',
    async (truth: () => Promise<NodeResponse>) => {
      await truth()
      return { error: { code: -32_000, message: 'internal error' } }
    },
  ],
  ['that it is known though it is not', async () => ({ error: { code: -32_000, message: 'already known' } })],
  ['success without accepting it', async () => ({ result: `0x${'1'.repeat(64)}` })],
  ['that the nonce is used though it is not', async () => ({ error: { code: -32_000, message: 'nonce too low' } })],
  [
    'that there is no gas though there is',
    async () => ({ error: { code: -32_003, message: 'insufficient funds for gas' } }),
  ],
])('a transaction to which a node answers %s is sent once, and published once', async (_what, lie) => {
  const master = await aMaster(stage)
  stage.node.lie('eth_sendRawTransaction', ({ truth }) => lie(truth))
  const body = bodyFrom(master)
  const before = stage.node.requested('eth_sendRawTransaction')
  const id = await begin(stage, body)
  await expect.poll(() => stage.node.requested('eth_sendRawTransaction'), patient).toBeGreaterThan(before)
  stage.node.tellTheTruth()
  await untilConfirmed(id)
  expect([await arrived(body), await eventsOf(stage, id)]).toEqual([2_500_000n, ['transfer.completed']])
  expect(await stage.chain.getTransactionCount({ address: master.address })).toBe(1)
})

/** A receipt with everything that a transfer needs, of an existing block. */
async function inventedReceipt(hash: unknown, from: Managed, to: string): Promise<Record<string, unknown>> {
  const { number, hash: blockHash } = await stage.chain.getBlock()
  const topic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
  const topics = [topic, ...[from.address, to].map((address) => `0x${word(BigInt(address))}`)]
  const log = { address: stage.dev.tokens.USDC, topics, data: `0x${word(2_500_000n)}` }
  const place = { transactionHash: hash, blockHash, blockNumber: hex(number), gasUsed: '0xb000' }
  return { ...place, status: '0x1', effectiveGasPrice: '0x1', logs: [log] }
}

test.each([
  ['and counts it', true],
  ['and does not count it', false],
])(
  'a receipt of a transaction in no block, from a node that lost it %s, confirms nothing; the transfer is sent later, once',
  async (_what, isCounted) => {
    const master = await aMaster(stage)
    const body = bodyFrom(master)
    stage.node.lie('eth_sendRawTransaction', () => ({ result: `0x${'1'.repeat(64)}` }))
    stage.node.lie('eth_getTransactionReceipt', async ({ params }) => ({
      result: await inventedReceipt(params[0], master, body.toAddress),
    }))
    if (isCounted)
      stage.node.lie('eth_getTransactionCount', ({ params, truth }) =>
        params[0] === master.address && params[1] === 'latest' ? { result: '0x1' } : truth(),
      )
    const id = await begin(stage, body)
    const before = stage.node.requested('eth_getTransactionReceipt')
    await expect.poll(() => stage.node.requested('eth_getTransactionReceipt'), patient).toBeGreaterThan(before + 3)
    expect((await transferOf(stage, id)).status).toBe('pending')
    stage.node.tellTheTruth()
    await untilConfirmed(id)
    expect([await arrived(body), await eventsOf(stage, id)]).toEqual([2_500_000n, ['transfer.completed']])
  },
)

test('a receipt of another transaction is rejected', async () => {
  const master = await aMaster(stage)
  const body = bodyFrom(master)
  stage.node.lie('eth_getTransactionReceipt', async ({ truth }) =>
    changed(await truth(), { transactionHash: `0x${'7'.repeat(64)}` }),
  )
  const id = await begin(stage, body)
  await expect.poll(() => arrived(body), patient).toBe(2_500_000n)
  expect((await transferOf(stage, id)).status).toBe('pending')
  stage.node.tellTheTruth()
  await untilConfirmed(id)
  expect(await arrived(body)).toBe(2_500_000n)
})

test.each([['0x7'], ['0xffffffff']])(
  'a node that reports %s transactions of a new wallet makes its first transfer 503 at most, and none waits forever',
  async (reported) => {
    const master = await aMaster(stage)
    stage.node.lie('eth_getTransactionCount', () => ({ result: reported }))
    const body = bodyFrom(master)
    const refused = await send(stage, body)
    expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-unavailable'])
    await expectRefusedThenSent(master, refused, body)
  },
)

test('a wallet whose rows were lost continues at the chain’s nonce, once that has been stable for two minutes', async () => {
  const { database } = stage.world
  const master = await aMaster(stage)
  await stage.chain.setNonce({ address: master.address, nonce: 7 })
  await stage.chain.mine({ blocks: 1 })
  const body = bodyFrom(master)
  const codes = [codeOf(await send(stage, body)), codeOf(await send(stage, body))]
  expect(codes).toEqual(['chain-unavailable', 'chain-unavailable'])
  stage.clock.forward(121_000)
  expect((await send(stage, body)).body.status).toBe('confirmed')
  const nonces = await database.db.many(
    z.object({ nonce: z.bigint() }),
    sql`select nonce from chain_transactions where sender = ${master.address}`,
  )
  expect([nonces, await arrived(body)]).toEqual([[{ nonce: 7n }], 2_500_000n])
})

test('a node whose transaction count of a wallet goes back while one is pending does no harm', async () => {
  const master = await aMaster(stage)
  expect((await send(stage, bodyFrom(master))).status).toBe(201)
  stage.node.lie('eth_getTransactionCount', () => ({ result: '0x0' }))
  const body = bodyFrom(master)
  const id = await begin(stage, body)
  await expect.poll(() => arrived(body), patient).toBe(2_500_000n)
  stage.node.tellTheTruth()
  await untilConfirmed(id)
  expect(await stage.chain.getTransactionCount({ address: master.address })).toBe(2)
})

test('a node that turns out to be of another chain gets nothing, and is used again when it is of the right one', async () => {
  const master = await aMaster(stage)
  stage.node.lie('eth_chainId', () => ({ result: '0x1' }))
  const fresh = await stage.world.another({ role: 'api' })
  const body = bodyFrom(master)
  const ask = () => request(fresh.base, { key: stage.key, method: 'POST', path, body })
  const refused = await ask()
  expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-unavailable'])
  stage.node.tellTheTruth()
  stage.clock.forward(61_000)
  await expect.poll(async () => (await ask()).status, patient).toBe(201)
  expect([await countTransfers(master), await arrived(body)]).toEqual([1n, 2_500_000n])
})

test.each([
  ['one hundred megabytes', () => stage.node.flood(100_000_000)],
  ['nothing, forever', () => stage.node.lie('eth_call', () => new Promise<never>(() => undefined))],
])('a node that answers %s makes a transfer 503, with nothing stored', async (_what, misbehave) => {
  const master = await aMaster(stage)
  misbehave()
  const body = bodyFrom(master)
  const refused = await send(stage, body)
  expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-unavailable'])
  await expectRefusedThenSent(master, refused, body)
})
