import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { type MppChallenge, topics } from '@purser/protocol'
import { type Address, type Hex, keccak256, pad, toHex } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import {
  aTempoPayer,
  aTempoWallet,
  memoFor,
  nodeCall,
  offerOf,
  pathUsd,
  push,
  type TempoPayer,
} from '../tempo-payer.ts'
import { type Answer, aWorld, type Org, request, type World } from '../world.ts'

// Two processes of one deployment: one has a lying and an honest node, the other the liar alone.
let chain: DevChain
let liar: LyingNode
let second: LyingNode
let world: World
let lone: string
let org: Org
let payer: TempoPayer
let wallet: { id: string; address: Address }

const resource = 'https://api.example.com/weather'
const price = 10_000n
const Hexadecimal = z.templateLiteral(['0x', z.string()])

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  liar = await startLyingNode(chain.rpcUrl)
  second = await startLyingNode(chain.rpcUrl)
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'tempo-moderato': [liar.url, second.url] },
    config: { settleWaitMs: 6_000 },
  })
  lone = (await world.another({ role: 'api', rpcUrls: { 'tempo-moderato': [liar.url] } })).base
  org = await world.organisation()
  wallet = await aTempoWallet(world, org)
  payer = await aTempoPayer(chain)
})
afterEach(() => liar.tellTheTruth())
afterAll(async () => {
  await world?.stop()
  await liar?.stop()
  await second?.stop()
  await chain?.stop()
})

async function challenge(): Promise<MppChallenge> {
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  return offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
}

function verify(credential: string, base = world.base): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource }
  return request(base, { key: org.testKey, method: 'POST', path: '/payments/verify', body })
}

const received = () => tokenBalance(chain, 'pathUSD', wallet.address)

async function countPayments(): Promise<bigint> {
  const row = z.object({ count: z.bigint() })
  return (await world.database.db.one(row, sql`select count(*) as count from payments`)).count
}

async function newestBlock(): Promise<Record<string, unknown>> {
  return Object(await nodeCall(chain, 'eth_getBlockByNumber', ['latest', false]))
}

/** A receipt of the challenge's transfer, in an existing block. */
function receiptFor(offer: MppChallenge, hash: Hex, block: Record<string, unknown>) {
  const log = {
    address: pathUsd,
    topics: [topics.transferWithMemo, pad(payer.account.address), pad(wallet.address), memoFor(offer)],
    data: pad(toHex(price)),
  }
  return {
    transactionHash: hash,
    blockNumber: block.number,
    blockHash: block.hash,
    status: '0x1',
    gasUsed: '0x5208',
    effectiveGasPrice: '0x1',
    logs: [log],
  }
}

/** The node invents a receipt and, with `inBlock`, its transaction in the block. */
async function invent(offer: MppChallenge, hash: Hex, { inBlock }: { readonly inBlock: boolean }): Promise<void> {
  const block = await newestBlock()
  const receipt = receiptFor(offer, hash, block)
  liar.lie('eth_getTransactionReceipt', ({ params, truth }) => (params[0] === hash ? { result: receipt } : truth()))
  if (inBlock)
    liar.lie('eth_getBlockByNumber', async ({ truth }) => {
      const said = await truth()
      const shown = 'result' in said ? Object(said.result) : {}
      return shown.number === block.number ? { result: { ...shown, transactions: [hash] } } : said
    })
}

test('a pushed hash that only one of two nodes has is not valid: the answer is 503 and nothing is recorded', async () => {
  const offer = await challenge()
  const hash: Hex = `0x${'ab'.repeat(32)}`
  const before = await countPayments()
  for (const inBlock of [false, true]) {
    await invent(offer, hash, { inBlock })
    const answer = await verify(push(offer, hash, payer))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await countPayments()).toBe(before)
  }
  liar.tellTheTruth()
  expect((await verify(push(offer, hash, payer))).status).toBe(402)
  expect((await verify(push(offer, await payer.broadcast(offer), payer))).status).toBe(200)
})

test('a pushed hash about which two nodes disagree is retried with the same credential, and pays once', async () => {
  const offer = await challenge()
  const credential = push(offer, await payer.broadcast(offer), payer)
  const before = await countPayments()
  for (const changes of [{ status: '0x0', logs: [] }, { logs: [] }, { blockHash: `0x${'6'.repeat(64)}` }]) {
    liar.lie('eth_getTransactionReceipt', async ({ truth }) => {
      const said = await truth()
      return 'result' in said && said.result !== null ? { result: { ...Object(said.result), ...changes } } : said
    })
    expect((await verify(credential)).status).toBe(503)
  }
  expect(await countPayments()).toBe(before)
  liar.tellTheTruth()
  expect((await verify(credential)).status).toBe(200)
  expect((await verify(credential)).status).toBe(409)
})

test('a receipt without a transaction in its block is rejected where one node is configured', async () => {
  const offer = await challenge()
  const hash: Hex = `0x${'cd'.repeat(32)}`
  const before = await countPayments()
  await invent(offer, hash, { inBlock: false })
  expect((await verify(push(offer, hash, payer), lone)).status).toBe(503)
  expect(await countPayments()).toBe(before)
})

test('a signed transaction whose receipt one of two nodes invents stays pending until its money has moved', async () => {
  const offer = await challenge()
  const before = await received()
  const kept: Hex[] = []
  liar.lie('eth_sendRawTransactionSync', () => ({ error: { code: -32_601, message: 'method not found' } }))
  second.lie('eth_sendRawTransaction', ({ params }) => ({ result: keccak256(Hexadecimal.parse(params[0])) }))
  liar.lie('eth_sendRawTransaction', async ({ params }) => {
    const hash = keccak256(Hexadecimal.parse(params[0]))
    if (kept.length === 0) await invent(offer, hash, { inBlock: true })
    kept.push(hash)
    return { result: hash }
  })
  const answer = await verify(await payer.pull(offer))
  expect([answer.status, answer.body.settlementPending]).toEqual([200, true])
  expect([await received(), kept.length > 0]).toEqual([before, true])
  liar.tellTheTruth()
  second.tellTheTruth()
  const status = async () =>
    (await world.call(org.testKey, 'GET', `/payments/${String(answer.body.paymentId)}`)).body.status
  await expect.poll(status, { timeout: 75_000, interval: 100 }).toBe('settled')
  expect((await received()) - before).toBe(price)
})
