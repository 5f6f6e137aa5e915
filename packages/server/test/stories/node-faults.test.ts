import {
  type DevChain,
  deploySmartWallet,
  type FaultMode,
  type FaultProxy,
  fundToken,
  startChain,
  startFaultProxy,
  tokenBalance,
} from '@purser/devnet'
import { type Address, createPublicClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aPayer, aWorld, codeOf, countByStatus, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let node: FaultProxy
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: Address }

const nodeKey = 'k3yOfTheNode'
const rpcTimeoutMs = 1_000
/** The longest time that any call may take while the node fails: a few timeouts one after the other, on a machine that is many times slower. */
const patienceMs = 60_000

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  node = await startFaultProxy(chain.rpcUrl)
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'base-sepolia': [`${node.url}/v3/${nodeKey}?apikey=${nodeKey}`] },
    config: { rpcTimeoutMs, settleWaitMs: 300 },
  })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather'

function challenge(): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/challenge', { walletId: wallet.id, resource, price: '0.01' })
}

function verify(credential: string): Promise<Answer> {
  const body = { protocol: 'x402', credential, price: '0.01', walletId: wallet.id, resource }
  return world.call(org.testKey, 'POST', '/payments/verify', body)
}

function settle({ body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

async function countPayments(): Promise<bigint> {
  return (await world.database.db.one(z.object({ count: z.bigint() }), sql`select count(*) as count from payments`))
    .count
}

/** Fails when an answer contains anything of the node: its address, its key, or its error text. */
function expectSilence(...answers: readonly Answer[]): void {
  for (const { headers, body } of answers) {
    const shown = `${JSON.stringify([...headers])}${JSON.stringify(body)}`
    for (const word of [
      nodeKey,
      `:${new URL(node.url).port}`,
      'apikey',
      'secret',
      'gateway',
      'rate limit',
      'unexpected',
      'ECONN',
      'socket',
      'undici',
      'JSON',
    ]) {
      expect(shown).not.toContain(word)
    }
  }
}

async function timed<T>(work: Promise<T>): Promise<T> {
  const from = performance.now()
  const result = await work
  expect(performance.now() - from).toBeLessThan(patienceMs)
  return result
}

const modes: readonly FaultMode[] = [
  { kind: 'delay', delayMs: 5_000 },
  { kind: 'hang' },
  { kind: 'drop' },
  { kind: 'lose-answer' },
  { kind: 'error500' },
  { kind: 'garbage' },
  { kind: 'wrong' },
  { kind: 'rate-limit' },
]
/** One of each kind of failure: no answer, a lost answer, an error, a lie. */
const fewModes = modes.filter(({ kind }) => ['hang', 'lose-answer', 'error500', 'wrong'].includes(kind))

test.each(modes)(
  'a node that does $kind makes verifying 503 in bounded time, reveals nothing of itself, and uses up no credential',
  async (mode) => {
    const credentials = await Promise.all([0, 1, 2].map(async () => payer.credential(await challenge())))
    const forged = await (await aPayer()).credential(await challenge(), { sign: { from: payer.account.address } })
    const before = await countPayments()
    node.set(mode)
    try {
      const answers = await timed(Promise.all([...credentials, forged].map(verify)))
      expect(answers.map((response) => `${response.status} ${codeOf(response)}`)).toEqual(
        Array(4).fill('503 chain-unavailable'),
      )
      expect(answers[0]?.headers.get('retry-after')).toBe('1')
      expectSilence(...answers)
      expect(await countPayments()).toBe(before)
      expect((await fetch(`${world.base}/healthz`)).status).toBe(200)
    } finally {
      node.set('pass')
    }
    expect(countByStatus(await Promise.all(credentials.map(verify)))).toEqual({ 200: 3 })
  },
)

test('a node that is late but within the time limit is waited for', async () => {
  node.set({ kind: 'delay', delayMs: 250 })
  const response = await verify(await payer.credential(await challenge())).finally(() => node.set('pass'))
  expect(response.status).toBe(200)
})

test('a contract account’s signature is never called wrong because of a node', async () => {
  const owner = await aPayer()
  const address = await deploySmartWallet(chain, owner.account.address, 7n)
  await fundToken(chain, 'USDC', address, 1_000_000n)
  const credential = await owner.credential(await challenge(), { sign: { from: address } })
  const before = await countPayments()
  for (const methods of [['eth_getCode'], ['eth_call']]) {
    for (const mode of fewModes) {
      node.set(mode, methods)
      const response = await timed(verify(credential)).finally(() => node.set('pass'))
      expect(`${mode.kind} ${methods.join()} ${response.status} ${codeOf(response)}`).toBe(
        `${mode.kind} ${methods.join()} 503 chain-unavailable`,
      )
      expectSilence(response)
    }
  }
  expect(await countPayments()).toBe(before)
  expect((await verify(credential)).status).toBe(200)
})

function payment({ body }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'GET', `/payments/${String(body.paymentId)}`)
}

const client = () => createPublicClient({ transport: http(chain.rpcUrl) })
const settlerTransactions = () =>
  client().getTransactionCount({ address: z.templateLiteral(['0x', z.string()]).parse(world.server.settlerAddress) })

/** Settles while the node fails, then heals it and sends nothing more: the settlement must finish by itself, once. */
async function settleThrough(mode: FaultMode, methods?: readonly string[]): Promise<void> {
  // A broadcast that lost only its answer may be in its block before the first check.
  const isDone = mode.kind === 'lose-answer' && methods?.includes('eth_sendRawTransaction') === true
  const balance = await tokenBalance(chain, 'USDC', wallet.address)
  const transactions = await settlerTransactions()
  const verified = await verify(await payer.credential(await challenge()))
  node.set(mode, methods)
  try {
    const answers = await timed(Promise.all([settle(verified), settle(verified)]))
    const seen = await payment(verified)
    expectSilence(...answers, seen)
    if (!isDone)
      expect([...answers, seen].map(({ status, body }) => [status, body.status])).toEqual([
        [202, 'settling'],
        [202, 'settling'],
        [200, 'settling'],
      ])
  } finally {
    node.set('pass')
  }
  await expect
    .poll(async () => (await payment(verified)).body.status, { timeout: 60_000, interval: 100 })
    .toBe('settled')
  const settled = await settle(verified)
  expect([settled.status, settled.body.txHash]).toEqual([200, (await payment(verified)).body.txHash])
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - balance).toBe(10_000n)
  expect((await settlerTransactions()) - transactions).toBe(1)
}

test.each(modes)(
  'a settlement requested while the node does $kind is 202, and finishes by itself, once',
  async (mode) => {
    await settleThrough(mode)
  },
)

test.each(fewModes)(
  'a broadcast to a node that does $kind is repeated with the same bytes until it is there, once',
  async (mode) => {
    await settleThrough(mode, ['eth_sendRawTransaction'])
  },
)

test('a receipt that the node withholds leaves the outcome open, however it fails, and is read when it comes', async () => {
  for (const mode of fewModes) await settleThrough(mode, ['eth_getTransactionReceipt'])
})
