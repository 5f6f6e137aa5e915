import { type DevChain, sendFromDevAccount, startChain, tokenBalance } from '@purser/devnet'
import {
  type Address,
  createTestClient,
  encodeFunctionData,
  type Hex,
  http,
  keccak256,
  pad,
  parseAbi,
  toHex,
} from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { bootServer } from '../../src/boot.ts'
import { sql } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { type Lie, type LyingNode, startLyingNode } from '../lying-node.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  type Org,
  oneNanoUsdPerGas,
  type Payer,
  type V2Payload,
  type World,
} from '../world.ts'

// Two nodes of one chain, and each lies as a test says. The first is used where one suffices.
let chain: DevChain
let first: LyingNode
let second: LyingNode
let clock: ShiftedClock
let world: World
let org: Org
let wallet: { id: string; address: Address }
let usdc: Address

const settleWaitMs = 15_000
const patient = { timeout: 75_000 }
const price = 10_000n

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  usdc = chain.tokens.USDC ?? '0x'
  first = await startLyingNode(chain.rpcUrl)
  second = await startLyingNode(chain.rpcUrl)
  clock = new ShiftedClock()
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'base-sepolia': [first.url, second.url] },
    config: { settleWaitMs },
    boot: { clock },
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

const dev = () => createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
const balance = () => tokenBalance(chain, 'USDC', wallet.address)

const transferWithAuthorization = parseAbi([
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
])
const Hexadecimal = z.templateLiteral(['0x', z.string()])
const Signed = z.object({
  signature: Hexadecimal,
  authorization: z.object({
    from: Hexadecimal,
    to: Hexadecimal,
    value: z.string(),
    validAfter: z.string(),
    validBefore: z.string(),
    nonce: Hexadecimal,
  }),
})
type Signed = z.output<typeof Signed>

interface Verified {
  readonly response: Answer
  readonly signed: Signed
}

async function verified(payer?: Payer, validSeconds = 60): Promise<Verified> {
  let payload: V2Payload | undefined
  const requested = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', requested)
  const validBefore = String(Math.floor(clock.now().getTime() / 1_000) + validSeconds)
  const after = (made: V2Payload): void => {
    payload = made
  }
  const credential = await (payer ?? (await aPayer(chain))).credential(challenge, { sign: { validBefore }, after })
  const response = await world.call(org.testKey, 'POST', '/payments/verify', {
    protocol: 'x402',
    credential,
    ...requested,
  })
  expect(response.status).toBe(200)
  return { response, signed: Signed.parse(payload?.payload) }
}

/** Another sender broadcasts the payment. */
function bring({ signed: { authorization: a, signature } }: Verified): Promise<Hex> {
  const args = [a.from, a.to, BigInt(a.value), BigInt(a.validAfter), BigInt(a.validBefore), a.nonce, signature] as const
  const data = encodeFunctionData({ abi: transferWithAuthorization, functionName: 'transferWithAuthorization', args })
  return sendFromDevAccount(chain, usdc, data)
}

function settle({ response: { body } }: Verified, headers: Record<string, string> = {}): Promise<Answer> {
  const { paymentId, settlementToken } = body
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken }, headers)
}

const soon = { prefer: 'respond-async' }

async function payment({ response: { body } }: Verified): Promise<Answer['body']> {
  return (await world.call(org.testKey, 'GET', `/payments/${String(body.paymentId)}`)).body
}

async function eventsOf({ response: { body } }: Verified): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload->>'paymentId' = ${String(body.paymentId)} order by id`,
  )
  return rows.map(({ type }) => type)
}

/** Moves the chain's time and the service's clock forward together. */
async function passSeconds(seconds: number): Promise<void> {
  await dev().increaseTime({ seconds })
  await dev().mine({ blocks: 2 })
  clock.forward(seconds * 1_000)
}

/** Waits until the service has sent the node this many more requests. */
async function requestedMore(node: LyingNode, method: string, times: number): Promise<void> {
  const before = node.requested(method)
  await expect.poll(() => node.requested(method), patient).toBeGreaterThanOrEqual(before + times)
}

/** A node that accepts transactions, does not forward them, and shows them in an invented future block. */
function inventsBlocks(node: LyingNode, moved: Verified): () => number {
  const kept: Hex[] = []
  const ahead = 2_000n
  const numberOf = (block: unknown) => BigInt(String(Object(block).number))
  const blockHash = `0x${'6'.repeat(64)}`
  let future = 0n
  node.lie('eth_sendRawTransaction', ({ params }) => {
    const hash = keccak256(Hexadecimal.parse(params[0]))
    if (!kept.includes(hash)) kept.push(hash)
    return { result: hash }
  })
  node.lie('eth_getTransactionCount', async ({ truth }) => {
    const reply = await truth()
    return 'result' in reply ? { result: toHex(BigInt(String(reply.result)) + BigInt(kept.length)) } : reply
  })
  node.lie('eth_getBlockByNumber', async ({ params, truth }) => {
    const reply = await truth()
    if (!('result' in reply)) return reply
    if (reply.result === null)
      return {
        result: {
          number: params[0],
          hash: blockHash,
          parentHash: blockHash,
          timestamp: '0x7fffffff',
          transactions: kept,
        },
      }
    if (params[0] !== 'latest') return reply
    future = numberOf(reply.result) + ahead / 2n
    return { result: { ...Object(reply.result), number: toHex(numberOf(reply.result) + ahead) } }
  })
  node.lie('eth_getTransactionReceipt', ({ params, truth }) => {
    const transactionHash = Hexadecimal.parse(params[0])
    if (!kept.includes(transactionHash)) return truth()
    const gas = { gasUsed: '0x5208', effectiveGasPrice: '0x1' }
    const block = { blockNumber: toHex(future), blockHash }
    return { result: { transactionHash, ...block, status: '0x1', ...gas, logs: logsOf(moved) } }
  })
  return () => kept.length
}

/** The logs of the payment's money moving. */
function logsOf({ signed: { authorization: a } }: Verified) {
  const signature = (text: string) => keccak256(toHex(text))
  return [
    {
      address: usdc,
      topics: [signature('AuthorizationUsed(address,bytes32)'), pad(a.from), a.nonce],
      data: '0x',
    },
    {
      address: usdc,
      topics: [signature('Transfer(address,address,uint256)'), pad(a.from), pad(a.to)],
      data: pad(toHex(BigInt(a.value))),
    },
  ]
}

/** A node that answers contract calls at a past block. */
function behindOnCalls(node: LyingNode, block: bigint): void {
  const past: Lie = async ({ params }) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params: [params[0], toHex(block)] })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(chain.rpcUrl, { method: 'POST', headers, body })
    const { result, error } = z
      .object({ result: z.unknown(), error: z.object({ code: z.number(), message: z.string() }) })
      .partial()
      .parse(await response.json())
    return error === undefined ? { result } : { error }
  }
  node.lie('eth_call', past)
}

async function blockNumber(): Promise<bigint> {
  return BigInt(String(await dev().request({ method: 'eth_blockNumber' } as never)))
}

test('a receipt in a future block, which one of two nodes invents, settles nothing and publishes nothing', async () => {
  const paid = await verified()
  const before = await balance()
  const kept = inventsBlocks(first, paid)
  second.lie('eth_sendRawTransaction', ({ params }) => ({ result: keccak256(Hexadecimal.parse(params[0])) }))
  const response = settle(paid)
  await expect.poll(kept, patient).toBeGreaterThan(0)
  await requestedMore(first, 'eth_getTransactionReceipt', 6)
  expect([await eventsOf(paid), (await payment(paid)).status]).toEqual([['payment.received'], 'settling'])
  expect((await response).status).toBe(202)
  expect([await balance(), await eventsOf(paid)]).toEqual([before, ['payment.received']])
  first.tellTheTruth()
  second.tellTheTruth()
  await expect.poll(async () => (await payment(paid)).status, patient).toBe('settled')
  expect([(await balance()) - before, await eventsOf(paid)]).toEqual([price, ['payment.received', 'payment.settled']])
})

test('money that moved before one of two nodes had the block is not voided after its expiry, and is settled in the end', async () => {
  const [unsettled, wanted, unpaid] = [await verified(), await verified(), await verified()]
  const block = await blockNumber()
  const hashes = [await bring(unsettled), await bring(wanted)]
  await dev().mine({ blocks: 2 })
  behindOnCalls(first, block)
  expect((await settle(wanted, soon)).status).toBe(202)
  // An unpaid payment is voided meanwhile: the chain was read for all three.
  await passSeconds(150)
  await expect.poll(async () => (await payment(unpaid)).status, patient).toBe('voided')
  await passSeconds(60)
  await requestedMore(first, 'eth_call', 2)
  for (const one of [unsettled, wanted]) {
    expect(['verified', 'settling']).toContain((await payment(one)).status)
    expect(await eventsOf(one)).toEqual(['payment.received'])
  }
  first.tellTheTruth()
  clock.forward(120_000)
  for (const [index, one] of [unsettled, wanted].entries()) {
    await expect.poll(async () => (await payment(one)).status, patient).toBe('settled')
    expect((await payment(one)).txHash).toBe(hashes[index])
  }
})

test('a process whose clock is ahead by more than an authorization’s validity does not void a payment that another process is sending', async () => {
  const [paid, control] = [await verified(), await verified(undefined, 20)]
  const before = await balance()
  await dev().setAutomine(false)
  const ahead = new ShiftedClock()
  ahead.forward(clock.now().getTime() - Date.now() + 200_000)
  const log = createLog({ level: 'silent' })
  const options = { clock: ahead, log, gasPrices: oneNanoUsdPerGas, metricsOnMainPort: true }
  expect((await settle(paid, soon)).status).toBe(202)
  await requestedMore(first, 'eth_sendRawTransaction', 1)
  const other = await bootServer({ ...world.config, role: 'work' }, options)
  try {
    await expect.poll(async () => (await payment(control)).status, patient).toBe('voided')
    await requestedMore(first, 'eth_getBlockByNumber', 12)
    expect([(await payment(paid)).status, await eventsOf(paid)]).toEqual(['settling', ['payment.received']])
    await dev().setAutomine(true)
    await dev().mine({ blocks: 2 })
    await expect.poll(async () => (await payment(paid)).status, patient).toBe('settled')
    expect([(await balance()) - before, await eventsOf(paid)]).toEqual([price, ['payment.received', 'payment.settled']])
  } finally {
    await dev().setAutomine(true)
    await other.stop()
  }
})

test('where nodes refuse to search more than 200 blocks for a transaction, its payment is settled within seconds', async () => {
  const refuse: Lie = ({ params, truth }) => {
    const { fromBlock, toBlock } = Object(params[0])
    const blocks = Number(toBlock) - Number(fromBlock) + 1
    return blocks > 200 ? { error: { code: -32_005, message: 'query exceeds max block range 200' } } : truth()
  }
  await dev().mine({ blocks: 400 })
  const paid = await verified()
  const hash = await bring(paid)
  await dev().mine({ blocks: 2 })
  for (const node of [first, second]) node.lie('eth_getLogs', refuse)
  const settled = await settle(paid)
  expect([settled.status, settled.body.txHash]).toEqual([200, hash])
})

test('a payment for which the nodes answer nothing delays no other, and is settled when they answer', async () => {
  const sick = [await verified(), await verified(), await verified()]
  const [sound, ordinary] = [await verified(), await verified()]
  const hashes = []
  for (const one of [...sick, sound]) hashes.push(await bring(one))
  await dev().mine({ blocks: 2 })
  const isSick = (params: readonly unknown[]) =>
    sick.some(({ signed }) => JSON.stringify(params).includes(signed.authorization.nonce.slice(2)))
  for (const node of [first, second])
    node.lie('eth_getLogs', ({ params, truth }) =>
      isSick(params) ? { error: { code: -32_000, message: 'internal error' } } : truth(),
    )
  for (const one of sick) expect((await settle(one, soon)).status).toBe(202)
  const [found, sent] = await Promise.all([settle(sound), settle(ordinary)])
  expect([found.status, found.body.txHash, sent.status]).toEqual([200, hashes[3], 200])
  expect((await Promise.all(sick.map(payment))).map(({ status }) => status)).toEqual(sick.map(() => 'settling'))
  first.tellTheTruth()
  second.tellTheTruth()
  clock.forward(300_000)
  for (const [index, one] of sick.entries()) {
    await expect.poll(async () => (await payment(one)).status, patient).toBe('settled')
    expect((await payment(one)).txHash).toBe(hashes[index])
  }
})
