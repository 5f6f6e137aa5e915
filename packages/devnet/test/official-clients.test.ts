import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { aPayer, aWorld, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { tokenBalance } from '../src/faucet.ts'
import { rpc } from '../src/rpc.ts'
import { type AgentOptions, axiosAgent, fetchAgent, fetchV1Agent } from './official-agents.ts'
import { expressShop, honoShop, type PaidShop } from './paid-shops.ts'

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

const shops = { Express: expressShop, Hono: honoShop }
const clients = { '@x402/fetch (v2)': fetchAgent, '@x402/axios (v2)': axiosAgent, 'x402-fetch (v1)': fetchV1Agent }
const networkNames = {
  '@x402/fetch (v2)': 'eip155:84532',
  '@x402/axios (v2)': 'eip155:84532',
  'x402-fetch (v1)': 'base-sepolia',
}
const pairs = keysOf(shops).flatMap((framework) => keysOf(clients).map((client) => ({ framework, client })))

describe.each(pairs)(
  'the official $client client at a route behind our $framework middleware',
  ({ framework, client }) => {
    test('pays, is answered, and the receipt it decodes names the transaction that moved the money', async () => {
      const { shop, wallet, agent, account } = await stage()
      const payerBefore = await tokenBalance(chain, 'USDC', account.address)
      const call = await agent.call(`${shop.url}/report`)

      expect([call.status, call.body]).toEqual([200, { report: 'all is well' }])
      expect(shop.served).toEqual([account.address])
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
      expect(payerBefore - (await tokenBalance(chain, 'USDC', account.address))).toBe(rawPrice)
      const [log, ...others] = await logsOf(wallet.id)
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
        network: networkNames[client],
        payer: account.address,
      })
      expect(await transferIn(String(log?.txHash))).toEqual([
        `${topic(account.address)} ${topic(wallet.address)} ${rawPrice}`,
      ])
      expect(shop.faults).toEqual([])
    })

    test('sends its payment a second time, or somebody who saw it does: refused, and the handler does not run', async () => {
      const { shop, wallet, agent } = await stage()
      const { sent } = await agent.call(`${shop.url}/report`)
      expect(Object.values(sent)).toHaveLength(1)
      const replays = await Promise.all(Array.from({ length: 5 }, () => fetch(`${shop.url}/report`, { headers: sent })))

      expect(replays.map(({ status }) => status)).toEqual([409, 409, 409, 409, 409])
      expect(await replays[0]?.json()).toMatchObject({ code: 'duplicate-payment' })
      expect(shop.served).toHaveLength(1)
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
      expect(await logsOf(wallet.id)).toHaveLength(1)
    })

    test('pays for a handler that then fails: it reads the failure, has no receipt, and keeps its money', async () => {
      const { shop, wallet, agent, account } = await stage()
      const before = await tokenBalance(chain, 'USDC', account.address)
      const call = await agent.call(`${shop.url}/breaks`)

      expect(call).toMatchObject({ status: 500, body: { error: 'the printer is on fire' }, receipt: undefined })
      expect(shop.served).toEqual([account.address])
      expect(await logsOf(wallet.id)).toMatchObject([{ status: 'verified', txHash: null }])
      expect(await tokenBalance(chain, 'USDC', account.address)).toBe(before)
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(0n)
    })

    test('finds Purser down, before it was asked to pay or after: 503, and the handler does not run', async () => {
      const { base, server } = await world.another()
      const { shop, wallet, agent, account } = await stage({ baseUrl: base, beforePaying: () => server.stop() })
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
      expect(await logsOf(wallet.id)).toEqual([])
    })

    test('pays twenty times at once: twenty answers, twenty payments, each paid once', async () => {
      const { shop, wallet, agent } = await stage()
      const calls = await Promise.all(Array.from({ length: 20 }, () => agent.call(`${shop.url}/report`)))

      expect(calls.map(({ status }) => status)).toEqual(calls.map(() => 200))
      expect(new Set(calls.flatMap(({ sent }) => Object.values(sent))).size).toBe(20)
      expect(shop.served).toHaveLength(20)
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(20n * rawPrice)
      const logs = await logsOf(wallet.id)
      expect(logs.map(({ status }) => status)).toEqual(calls.map(() => 'settled'))
      const named = calls.map(({ receipt }) => (receipt as { transaction: string }).transaction)
      expect(named.sort()).toEqual(logs.map(({ txHash }) => txHash).sort())
    })

    async function stage(options: { readonly baseUrl?: string } & Pick<AgentOptions, 'beforePaying'> = {}) {
      const { baseUrl = world.base, ...agentOptions } = options
      const wallet = await world.wallet(org)
      const { account } = await aPayer(chain)
      const shop: PaidShop = await shops[framework]({ apiKey: org.testKey, baseUrl, walletId: wallet.id })
      cleanUps.push(shop.stop)
      return { shop, wallet, account, agent: clients[client]({ account, ...agentOptions }) }
    }
  },
)

async function logsOf(walletId: string): Promise<readonly Record<string, unknown>[]> {
  return (await world.call(org.testKey, 'GET', `/payments/logs?limit=100&walletId=${walletId}`)).list
}

const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** The token's transfers in a transaction that succeeded: from, to, amount. */
async function transferIn(hash: string): Promise<string[]> {
  const receipt = (await rpc(chain.rpcUrl, 'eth_getTransactionReceipt', [hash])) as Receipt | null
  expect(receipt?.status).toBe('0x1')
  const transfers =
    receipt?.logs.filter(
      ({ address, topics }) => address === chain.tokens.USDC?.toLowerCase() && topics[0] === transferTopic,
    ) ?? []
  return transfers.map(({ topics, data }) => `${topics[1]} ${topics[2]} ${BigInt(data)}`)
}

interface Receipt {
  readonly status: string
  readonly logs: readonly { readonly address: string; readonly topics: readonly string[]; readonly data: string }[]
}

function topic(address: string): string {
  return `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
}

function keysOf<K extends string>(table: Readonly<Record<K, unknown>>): K[] {
  return Object.keys(table) as K[]
}
