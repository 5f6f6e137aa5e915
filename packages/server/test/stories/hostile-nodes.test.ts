import { type DevChain, sendFromDevAccount, startChain, tokenBalance } from '@purser/devnet'
import { encodeTransferWithAuthorization } from '@purser/protocol'
import { type Address, createTestClient, http } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aPaymentBody, facilitatorOf } from '../facilitated.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { type Answer, aPayer, aWorld, type Org, type V2Payload, type World } from '../world.ts'

// Three nodes of one chain. The first, which is used where one suffices, is hostile.
let chain: DevChain
let hostile: LyingNode
let world: World
let org: Org
let wallet: { readonly id: string; readonly address: Address }
let usdc: Address

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  usdc = chain.tokens.USDC ?? '0x'
  hostile = await startLyingNode(chain.rpcUrl)
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'base-sepolia': [hostile.url, chain.rpcUrl, chain.rpcUrl] },
    config: { settleWaitMs: 45_000, facilitatorWaitMs: 45_000, rpcTimeoutMs: 1_000 },
  })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterEach(() => hostile.tellTheTruth())
afterAll(async () => {
  await world?.stop()
  await hostile?.stop()
  await chain?.stop()
})

const dev = () => createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
const price = 10_000n
const requested = { resource: 'https://api.example.com/weather', price: '0.01' }
const balance = () => tokenBalance(chain, 'USDC', wallet.address)

async function verified(): Promise<{ readonly answer: Answer; readonly payload: V2Payload['payload'] }> {
  const terms = { ...requested, walletId: wallet.id }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', terms)
  let signed: V2Payload['payload'] | undefined
  const after = ({ payload }: V2Payload): void => {
    signed = payload
  }
  const credential = await (await aPayer(chain)).credential(challenge, { after })
  const answer = await world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'x402', credential, ...terms })
  if (answer.status !== 200 || signed === undefined) throw new Error(`not verified: ${JSON.stringify(answer.body)}`)
  return { answer, payload: signed }
}

function settle({ body }: Answer): Promise<Answer> {
  const { paymentId, settlementToken } = body
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

const unused = `0x${'0'.repeat(64)}`
const refuse = (message: string) => () => ({ error: { code: -32_000, message } })

const faults: readonly (readonly [string, () => void | Promise<void>])[] = [
  ['never answers', () => hangs()],
  ['stopped at an earlier block and drops what it is sent', () => hostile.freeze()],
  [
    'calls every transaction reverted',
    () =>
      hostile.lie('eth_getTransactionReceipt', async ({ truth }) => {
        const reply = await truth()
        if (!('result' in reply) || reply.result === null) return reply
        return { result: { ...Object(reply.result), status: '0x0', logs: [] } }
      }),
  ],
  ['calls every nonce unused', () => hostile.lie('eth_call', () => ({ result: unused }))],
  ['refuses every search of logs', () => hostile.lie('eth_getLogs', refuse('block range is too large'))],
  [
    'has a head, a safe and a final block a million blocks ahead',
    () =>
      hostile.lie('eth_getBlockByNumber', async ({ params, truth }) => {
        const reply = await truth()
        if (!['latest', 'safe', 'finalized'].includes(String(params[0])) || !('result' in reply)) return reply
        return { result: { ...Object(reply.result), number: '0xf4240' } }
      }),
  ],
]

/** Every method that the service uses waits for longer than any time limit. */
function hangs(): void {
  const methods = ['eth_call', 'eth_getBlockByNumber', 'eth_getTransactionReceipt', 'eth_getTransactionCount']
  const others = ['eth_sendRawTransaction', 'eth_blockNumber', 'eth_getLogs', 'eth_getCode', 'eth_feeHistory']
  for (const method of [...methods, ...others, 'eth_chainId'])
    hostile.lie(method, async ({ truth }) => {
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      return truth()
    })
}

test.each(faults)(
  'one of three nodes that %s neither prevents nor fakes a settlement, whoever sends it',
  async (_, begin) => {
    const [own, foreign] = [await verified(), await verified()]
    const before = await balance()
    await begin()
    const hash = await sendByAnybody(foreign.payload)
    await dev().mine({ blocks: 2 })
    const [sent, found] = await Promise.all([settle(own.answer), settle(foreign.answer)])
    expect([sent.status, found.status]).toEqual([200, 200])
    expect(found.body.txHash).toBe(hash)
    expect((await balance()) - before).toBe(2n * price)
  },
  120_000,
)

const Signed = z.object({
  signature: z.templateLiteral(['0x', z.string()]),
  authorization: z.object({
    from: z.templateLiteral(['0x', z.string()]),
    to: z.templateLiteral(['0x', z.string()]),
    value: z.coerce.bigint(),
    validAfter: z.coerce.bigint(),
    validBefore: z.coerce.bigint(),
    nonce: z.templateLiteral(['0x', z.string()]),
  }),
})

function sendByAnybody(payload: V2Payload['payload']) {
  const { signature, authorization } = Signed.parse(payload)
  return sendFromDevAccount(chain, usdc, encodeTransferWithAuthorization(authorization, { kind: 'bytes', signature }))
}

test.each([
  'internal error',
  'already known',
  'nonce too low: next nonce 9, tx nonce 1',
  'insufficient funds for gas * price + value',
  'replacement transaction underpriced',
])(
  'nodes that forward a transaction and answer “%s” cause no second transfer and no failure of a charged payment',
  async (message) => {
    const own = await aWorld({
      chains: [chain],
      rpcUrls: { 'base-sepolia': [hostile.url] },
      config: { facilitatorWaitMs: 45_000 },
    })
    try {
      const shop = await own.organisation()
      const till = await own.wallet(shop)
      const [facilitator, payer] = [facilitatorOf(own.base, shop.testKey), await aPayer(chain)]
      const body = await aPaymentBody(own, shop, { payer, wallet: till })
      expect((await facilitator.verify(body)).body.isValid).toBe(true)
      hostile.lie('eth_sendRawTransaction', async ({ truth }) => {
        await truth()
        return { error: { code: -32_000, message } }
      })
      const answers = await Promise.all(Array.from({ length: 6 }, () => facilitator.settle(body)))
      expect(answers.filter((answer) => answer.body.success === true)).toHaveLength(1)
      expect(await tokenBalance(chain, 'USDC', till.address)).toBe(price)
    } finally {
      hostile.tellTheTruth()
      await own.stop()
    }
  },
  120_000,
)

const twoLies: readonly (readonly [string, () => void])[] = [
  [
    'calls every transaction reverted',
    () =>
      hostile.lie('eth_getTransactionReceipt', async ({ truth }) => {
        const reply = await truth()
        if (!('result' in reply) || reply.result === null) return reply
        return { result: { ...Object(reply.result), status: '0x0', logs: [] } }
      }),
  ],
  ['has no receipt', () => hostile.lie('eth_getTransactionReceipt', () => ({ result: null }))],
  [
    'shows each receipt in a block that is not there',
    () =>
      hostile.lie('eth_getTransactionReceipt', async ({ truth }) => {
        const reply = await truth()
        if (!('result' in reply) || reply.result === null) return reply
        return { result: { ...Object(reply.result), blockHash: `0x${'6'.repeat(64)}` } }
      }),
  ],
]

test.each(twoLies)(
  'while one of two nodes %s, a settlement stays open; it settles once when the nodes agree',
  async (_, begin) => {
    const two = await aWorld({
      chains: [chain],
      rpcUrls: { 'base-sepolia': [hostile.url, chain.rpcUrl] },
      config: { settleWaitMs: 500, rpcTimeoutMs: 1_000 },
    })
    try {
      const shop = await two.organisation()
      const till = await two.wallet(shop)
      const terms = { ...requested, walletId: till.id }
      const challenge = await two.call(shop.testKey, 'POST', '/payments/challenge', terms)
      const credential = await (await aPayer(chain)).credential(challenge)
      const verify = await two.call(shop.testKey, 'POST', '/payments/verify', {
        protocol: 'x402',
        credential,
        ...terms,
      })
      const { paymentId, settlementToken } = verify.body
      const status = async () => (await two.call(shop.testKey, 'GET', `/payments/${String(paymentId)}`)).body.status
      begin()
      await two.call(shop.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
      await dev().mine({ blocks: 5 })
      const before = hostile.requested('eth_getTransactionReceipt')
      const seen = new Set<unknown>()
      await expect
        .poll(async () => {
          seen.add(await status())
          return hostile.requested('eth_getTransactionReceipt')
        })
        .toBeGreaterThanOrEqual(before + 6)
      expect([...seen]).toEqual(['settling'])
      hostile.tellTheTruth()
      await expect.poll(status, { timeout: 60_000, interval: 200 }).toBe('settled')
      expect(await tokenBalance(chain, 'USDC', till.address)).toBe(price)
    } finally {
      hostile.tellTheTruth()
      await two.stop()
    }
  },
  120_000,
)
