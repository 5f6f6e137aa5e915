import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { aPayer, aWorld, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { tokenBalance } from '../src/faucet.ts'
import { type AgentOptions, axiosAgent, fetchAgent, fetchV1Agent } from './official-agents.ts'
import { logsOf, transferOf, transfersIn } from './official-ledger.ts'
import { type PaidShop, shops } from './paid-shops.ts'

const rawPrice = 10_000n

let chain: DevChain
let world: World
let org: Org
const cleanUps: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const clients = { '@x402/fetch (v2)': fetchAgent, '@x402/axios (v2)': axiosAgent, 'x402-fetch (v1)': fetchV1Agent }
const networkNames = {
  '@x402/fetch (v2)': 'eip155:84532',
  '@x402/axios (v2)': 'eip155:84532',
  'x402-fetch (v1)': 'base-sepolia',
}
type Pair = { readonly framework: keyof typeof shops; readonly client: keyof typeof clients }

describe.each(pairsOf(keysOf(shops)))(
  'the official $client client at a route behind our $framework middleware',
  (pair) => {
    test('pays, is answered, and the receipt it decodes names the transaction that moved the money', async () => {
      const { shop, wallet, agent, account } = await stage(pair)
      const payerBefore = await tokenBalance(chain, 'USDC', account.address)
      const call = await agent.call(`${shop.url}/report`)

      expect([call.status, call.body]).toEqual([200, { report: 'all is well' }])
      expect(shop.served).toEqual([account.address])
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
      expect(payerBefore - (await tokenBalance(chain, 'USDC', account.address))).toBe(rawPrice)
      const [log, ...others] = await logsOf(world, org, wallet.id)
      expect(others).toEqual([])
      expect(log).toMatchObject({
        status: 'settled',
        amount: '0.01',
        token: 'USDC',
        payer: account.address,
        route: `${shop.url}/report`,
        method: 'GET',
      })
      expect(call.receipt).toMatchObject({
        success: true,
        transaction: log?.txHash,
        network: networkNames[pair.client],
        payer: account.address,
      })
      expect(await transfersIn(chain, log?.txHash)).toEqual([transferOf(account.address, wallet.address, rawPrice)])
      expect(shop.faults).toEqual([])
    })

    test('sends its payment a second time, or an observer does: refused, and the handler does not run', async () => {
      const { shop, wallet, agent } = await stage(pair)
      const { sent } = await agent.call(`${shop.url}/report`)
      expect(Object.values(sent)).toHaveLength(1)
      const replays = await Promise.all(Array.from({ length: 5 }, () => fetch(`${shop.url}/report`, { headers: sent })))

      expect(replays.map(({ status }) => status)).toEqual([409, 409, 409, 409, 409])
      // Until the shop has reported the delivery, a copy is refused because the answer may still be under way.
      const codes = await Promise.all(replays.map(async (replay) => (await replay.json()).code))
      for (const code of codes) expect(['duplicate-payment', 'delivery-in-progress']).toContain(code)
      expect(shop.served).toHaveLength(1)
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
      expect(await logsOf(world, org, wallet.id)).toHaveLength(1)
    })
  },
)

describe.each(pairsOf(['Express', 'Fastify']))(
  'the official $client client behind our $framework middleware, with failures and concurrency',
  (pair) => {
    test('pays for a handler that then fails: it reads the failure, has no receipt, and is not charged', async () => {
      const { shop, wallet, agent, account } = await stage(pair)
      const before = await tokenBalance(chain, 'USDC', account.address)
      const call = await agent.call(`${shop.url}/breaks`)

      expect(call).toMatchObject({ status: 500, body: { error: 'the printer is on fire' }, receipt: undefined })
      expect(shop.served).toEqual([account.address])
      expect(await logsOf(world, org, wallet.id)).toMatchObject([{ status: 'verified', txHash: null }])
      expect(await tokenBalance(chain, 'USDC', account.address)).toBe(before)
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(0n)
    })

    test('finds Purser down, before the 402 or after: 503, and the handler does not run', async () => {
      const { base, server } = await world.another()
      const { shop, wallet, agent, account } = await stage(pair, { baseUrl: base, beforePaying: () => server.stop() })
      const between = await agent.call(`${shop.url}/report`)
      expect(Object.values(between.sent)).toHaveLength(1)
      const before = await agent.call(`${shop.url}/report`)

      for (const call of [between, before]) {
        expect(call).toMatchObject({ status: 503, body: { code: 'payments-unavailable' }, receipt: undefined })
        expect(JSON.stringify(call.body)).not.toContain(base)
      }
      expect(before.sent).toEqual({})
      expect(shop.served).toEqual([])
      expect(shop.faults.map(({ stage }) => stage)).toEqual(['verify', 'challenge'])
      expect(await tokenBalance(chain, 'USDC', account.address)).toBe(1_000_000_000n)
      expect(await logsOf(world, org, wallet.id)).toEqual([])
    })

    test('pays twenty times at once: twenty answers, twenty payments, each paid once', async () => {
      const { shop, wallet, agent } = await stage(pair)
      const calls = await Promise.all(Array.from({ length: 20 }, () => agent.call(`${shop.url}/report`)))

      expect(calls.map(({ status }) => status)).toEqual(calls.map(() => 200))
      expect(new Set(calls.flatMap(({ sent }) => Object.values(sent))).size).toBe(20)
      expect(shop.served).toHaveLength(20)
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(20n * rawPrice)
      const logs = await logsOf(world, org, wallet.id)
      expect(logs.map(({ status }) => status)).toEqual(calls.map(() => 'settled'))
      const named = calls.map(({ receipt }) => (receipt as { transaction: string }).transaction)
      expect(named.sort()).toEqual(logs.map(({ txHash }) => txHash).sort())
    })
  },
)

async function stage(
  { framework, client }: Pair,
  options: { readonly baseUrl?: string } & Pick<AgentOptions, 'beforePaying'> = {},
) {
  const { baseUrl = world.base, ...agentOptions } = options
  const wallet = await world.wallet(org)
  const { account } = await aPayer(chain)
  const shop: PaidShop = await shops[framework]({ apiKey: org.testKey, baseUrl, walletId: wallet.id })
  cleanUps.push(shop.stop)
  return { shop, wallet, account, agent: clients[client]({ account, ...agentOptions }) }
}

function pairsOf(frameworks: readonly (keyof typeof shops)[]): Pair[] {
  return frameworks.flatMap((framework) => keysOf(clients).map((client) => ({ framework, client })))
}

function keysOf<K extends string>(table: Readonly<Record<K, unknown>>): K[] {
  return Object.keys(table) as K[]
}
