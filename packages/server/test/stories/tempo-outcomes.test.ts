import {
  type DevChain,
  type FaultMode,
  type FaultProxy,
  fundToken,
  startChain,
  startFaultProxy,
  tokenBalance,
} from '@purser/devnet'
import type { MppChallenge } from '@purser/protocol'
import type { Address } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import {
  aTempoPayer,
  aTempoWallet,
  type Changes,
  fundSponsor,
  nodeCall,
  offerOf,
  push,
  type TempoPayer,
} from '../tempo-payer.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let chain: DevChain
let node: FaultProxy
let world: World
let org: Org
let payer: TempoPayer
let wallet: { id: string; address: Address }

const resource = 'https://api.example.com/weather'
const price = 10_000n
const hangingNodeMs = 1_000

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  node = await startFaultProxy(chain.rpcUrl)
  const config = { rpcTimeoutMs: hangingNodeMs, settleWaitMs: 300 }
  world = await aWorld({ chains: [chain], rpcUrls: { 'tempo-moderato': [node.url] }, config })
  org = await world.organisation()
  wallet = await aTempoWallet(world, org)
  payer = await aTempoPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await chain?.stop()
})

async function challenge(at = world): Promise<MppChallenge> {
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  return offerOf(await at.call(org.testKey, 'POST', '/payments/challenge', requested))
}

function verify(credential: string, base = world.base, headers: Record<string, string> = {}): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource }
  return request(base, { key: org.testKey, method: 'POST', path: '/payments/verify', body, headers })
}

function settle({ body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

async function statusOf({ body }: Answer): Promise<unknown> {
  return (await world.call(org.testKey, 'GET', `/payments/${String(body.paymentId)}`)).body.status
}

const becomes = (response: Answer, status: string) =>
  expect.poll(() => statusOf(response), { timeout: 60_000, interval: 100 }).toBe(status)

async function newestEvents(most: number): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where type like 'payment.%' order by id desc limit ${most}`,
  )
  return rows.map(({ type }) => type).reverse()
}

async function countPayments(): Promise<bigint> {
  const row = z.object({ count: z.bigint() })
  return (await world.database.db.one(row, sql`select count(*) as count from payments`)).count
}

const received = () => tokenBalance(chain, 'pathUSD', wallet.address)

const modes: readonly FaultMode[] = [
  { kind: 'hang' },
  { kind: 'drop' },
  { kind: 'lose-answer' },
  { kind: 'error500' },
  { kind: 'garbage' },
  { kind: 'wrong' },
  { kind: 'rate-limit' },
]

test.each(modes)('a node that does $kind makes pulling and pushing 503, and uses up no credential', async (mode) => {
  const [first, second] = [await challenge(), await challenge()]
  const credentials = [await payer.pull(first), push(second, await payer.broadcast(second), payer)]
  const before = await countPayments()
  node.set(mode)
  try {
    const answers = await Promise.all(credentials.map((one) => verify(one)))
    expect(answers.map((response) => `${response.status} ${codeOf(response)}`)).toEqual(
      Array(2).fill('503 chain-unavailable'),
    )
    expect(await countPayments()).toBe(before)
  } finally {
    node.set('pass')
  }
  expect(countByStatus(await Promise.all(credentials.map((one) => verify(one))))).toEqual({ 200: 2 })
})

test.each(modes)(
  'a node that does $kind with the broadcast leaves the outcome open, which then resolves itself, once',
  async (mode) => {
    const before = await received()
    node.set(mode, ['eth_sendRawTransaction'])
    let response: Answer
    try {
      response = await verify(await payer.pull(await challenge()))
      expect(response.status).toBe(200)
      if (mode.kind !== 'lose-answer') {
        expect(response.body).toMatchObject({ settlementPending: true, settledAt: null })
        expect(await settle(response)).toMatchObject({ status: 202, body: { status: 'settling', txHash: null } })
      }
    } finally {
      node.set('pass')
    }
    await becomes(response, 'settled')
    const settled = await settle(response)
    expect([settled.status, settled.body.txHash]).toEqual([200, response.body.txHash])
    expect((await received()) - before).toBe(price)
    expect(await newestEvents(2)).toEqual(['payment.received', 'payment.settled'])
  },
)

test('a receipt that the node withholds leaves the outcome open, and is read when it comes', async () => {
  const chosen = modes.filter(({ kind }) => ['hang', 'lose-answer', 'error500', 'wrong'].includes(kind))
  expect(chosen).toHaveLength(4)
  for (const mode of chosen) {
    const before = await received()
    node.set(mode, ['eth_getTransactionReceipt'])
    const response = await verify(await payer.pull(await challenge())).finally(() => node.set('pass'))
    expect([mode.kind, response.status]).toEqual([mode.kind, 200])
    await becomes(response, 'settled')
    expect([mode.kind, (await received()) - before]).toEqual([mode.kind, price])
  }
})

test('a process that dies between recording and broadcasting leaves a payment that any other finishes, once', async () => {
  const before = await received()
  const lost = await startFaultProxy(chain.rpcUrl)
  const api = await world.another({ role: 'api', rpcUrls: { 'tempo-moderato': [lost.url] } })
  lost.set('drop', ['eth_sendRawTransaction'])
  const response = await verify(await payer.pull(await challenge()), api.base)
  expect([response.status, response.body.settlementPending]).toEqual([200, true])
  await lost.stop()
  await becomes(response, 'settled')
  expect((await received()) - before).toBe(price)
})

test('two followers at once record an outcome once', async () => {
  const other = await world.another({ role: 'work' })
  node.set('drop', ['eth_sendRawTransaction'])
  const answers = await Promise.all(
    [0, 1, 2, 3, 4].map(async () => verify(await payer.pull(await challenge()))),
  ).finally(() => node.set('pass'))
  for (const response of answers) await becomes(response, 'settled')
  for (const { body } of answers) {
    const rows = await world.database.db.many(
      z.object({ type: z.string() }),
      sql`select type from events where payload->>'paymentId' = ${String(body.paymentId)} order by type`,
    )
    expect(rows.map(({ type }) => type)).toEqual(['payment.received', 'payment.settled'])
  }
  await other.server.stop()
})

/** A shop, and a payer with 1.5 times its price who pays fees in another token. */
async function aPoorPayer() {
  const waiting = await aWorld({ chains: [chain], config: { settleWaitMs: 15_000 } })
  const shop = await waiting.organisation()
  const till = await aTempoWallet(waiting, shop)
  const requested = { walletId: till.id, resource, price: '0.01' }
  const poor = await aTempoPayer(chain, { funded: false })
  await fundToken(chain, 'pathUSD', poor.account.address, price + price / 2n)
  await fundToken(chain, 'AlphaUSD', poor.account.address, 1_000_000n)
  const feeToken = chain.tokens.AlphaUSD ?? '0x'
  const offer = async () => offerOf(await waiting.call(shop.testKey, 'POST', '/payments/challenge', requested))
  return {
    till,
    poor,
    offer,
    feeToken,
    signed: async (changes: Changes = {}) => poor.sign(await offer(), { feeToken, ...changes }),
    credential: async () => poor.pull(await offer(), { feeToken }),
    verify: (credential: string) =>
      waiting.call(shop.testKey, 'POST', '/payments/verify', { protocol: 'mpp', credential, ...requested }),
    logs: async () => (await waiting.call(shop.testKey, 'GET', '/payments/logs')).list.map(({ status }) => status),
    stop: () => waiting.stop(),
  }
}

async function stopBlocks(): Promise<void> {
  await nodeCall(chain, 'evm_setAutomine', [false])
  await nodeCall(chain, 'evm_setIntervalMining', [0])
}

async function resumeBlocks(): Promise<void> {
  await nodeCall(chain, 'evm_mine')
  await nodeCall(chain, 'evm_setIntervalMining', [1])
  await nodeCall(chain, 'evm_setAutomine', [true])
}

async function pendingCount(): Promise<number> {
  return Number(z.object({ pending: z.string() }).parse(await nodeCall(chain, 'txpool_status')).pending)
}

test('a payment whose payer moved the money away in its block reverts, and is refused and failed', async () => {
  const { till, signed, credential, verify, logs, stop } = await aPoorPayer()
  try {
    const [elsewhere, paying] = [await signed({ to: `0x${'e'.repeat(40)}` }), await credential()]
    await stopBlocks()
    await nodeCall(chain, 'eth_sendRawTransaction', [elsewhere])
    const verified = verify(paying)
    await expect.poll(pendingCount).toBe(2)
    await resumeBlocks()
    const { status, body } = await verified
    expect([status, body.message]).toEqual([402, 'the transaction reverted'])
    expect([await tokenBalance(chain, 'pathUSD', till.address), await logs()]).toEqual([0n, ['settlement_failed']])
  } finally {
    await resumeBlocks()
    await stop()
  }
})

test('money that is sent again after the transaction of its challenge failed is credited once, and can be refunded', async () => {
  const { poor, offer, feeToken, signed, verify, logs, stop } = await aPoorPayer()
  try {
    const [elsewhere, own] = [await signed({ to: `0x${'e'.repeat(40)}` }), await offer()]
    const paying = await poor.pull(own, { feeToken })
    await stopBlocks()
    await nodeCall(chain, 'eth_sendRawTransaction', [elsewhere])
    const verified = verify(paying)
    await expect.poll(pendingCount).toBe(2)
    await resumeBlocks()
    expect((await verified).status).toBe(402)
    await fundToken(chain, 'pathUSD', poor.account.address, price)
    const resent = push(own, await poor.broadcast(own, { feeToken, gas: 700_001n }), poor)
    for (const credential of [resent, resent, paying])
      expect(codeOf(await verify(credential))).toBe('duplicate-payment')
    expect((await logs()).sort()).toEqual(['settled', 'settlement_failed'])
  } finally {
    await resumeBlocks()
    await stop()
  }
})

test('of two payments that together exceed the payer’s balance, one is refused and not sent', async () => {
  const { till, credential, verify, logs, stop } = await aPoorPayer()
  try {
    const credentials = [await credential(), await credential()]
    await stopBlocks()
    const answers: Answer[] = []
    const verifying = credentials.map(async (one) => answers.push(await verify(one)))
    await expect.poll(() => answers.map(({ status }) => status), { timeout: 10_000 }).toEqual([402])
    await expect.poll(pendingCount).toBe(1)
    await resumeBlocks()
    await Promise.all(verifying)
    expect(countByStatus(answers)).toEqual({ 200: 1, 402: 1 })
    expect([await tokenBalance(chain, 'pathUSD', till.address), await logs()]).toEqual([price, ['settled']])
  } finally {
    await resumeBlocks()
    await stop()
  }
})

test('a transaction that the node accepted and then dropped fails when the chain’s time is past its validity, not before', async () => {
  const before = await received()
  const headers = { 'idempotency-key': 'dropped' }
  const credential = await payer.pull(await challenge())
  // A node that reports success and does nothing.
  node.set('wrong', ['eth_sendRawTransaction'])
  const response = await verify(credential, world.base, headers)
  expect([response.status, response.body.settlementPending]).toEqual([200, true])
  expect((await settle(response)).status).toBe(202)
  expect(codeOf(await verify(credential))).toBe('duplicate-payment')

  await nodeCall(chain, 'anvil_mine', ['0x8c', '0x1'])
  await becomes(response, 'settlement_failed')
  const failed = await settle(response)
  expect([failed.status, codeOf(failed), failed.body.reason]).toEqual([409, 'settlement-failed', 'transaction_expired'])
  expect(await newestEvents(2)).toEqual(['payment.received', 'payment.settlement_failed'])
  node.set('pass')
  expect(await received()).toBe(before)
  expect((await verify(credential, world.base, headers)).body).toEqual(response.body)
})

test('a transaction that a node refuses once it is recorded is 402, is not sent again, and ends when its validity is over', async () => {
  // Two chains of one name: on the second the sponsor has no money, which no check before the broadcast can see.
  const [rich, bare] = await Promise.all([0, 1].map(() => startChain({ network: 'tempo-moderato' })))
  if (rich === undefined || bare === undefined) throw new Error('no chains')
  const promising = await aWorld({ chains: [rich], config: { sponsorTempoFees: true } })
  await fundSponsor(rich, promising.server.settlerAddress)
  const shop = await promising.organisation()
  const till = await aTempoWallet(promising, shop)
  const requested = { walletId: till.id, resource, price: '0.01' }
  const offer = offerOf(await promising.call(shop.testKey, 'POST', '/payments/challenge', requested))
  const proxy = await startFaultProxy(bare.rpcUrl)
  const other = await promising.another({ rpcUrls: { 'tempo-moderato': [proxy.url] } })
  const customer = await aTempoPayer(bare)
  const body = { protocol: 'mpp', credential: await customer.pull(offer, { sponsored: true }), ...requested }
  const headers = { 'idempotency-key': 'refused' }
  const ask = () => request(other.base, { key: shop.testKey, method: 'POST', path: '/payments/verify', body, headers })
  // It would send the recorded transaction to its own chain, where the sponsor has money.
  await promising.server.stop()
  const response = await ask()
  expect([response.status, response.body.message]).toEqual([402, 'the fee cannot be paid'])
  expect((await ask()).body.message).toBe('the fee cannot be paid')

  const logs = () => request(other.base, { key: shop.testKey, method: 'GET', path: '/payments/logs' })
  expect((await logs()).list.map(({ status }) => status)).toEqual(['settling'])
  await nodeCall(bare, 'anvil_mine', ['0x8c', '0x1'])
  await expect
    .poll(async () => (await logs()).list.map(({ status }) => status), { timeout: 60_000 })
    .toEqual(['settlement_failed'])
  expect(proxy.methods.filter((method) => method === 'eth_sendRawTransaction')).toHaveLength(1)
  await other.server.stop()
  await promising.database.drop()
  await Promise.all([proxy.stop(), rich.stop(), bare.stop()])
})
