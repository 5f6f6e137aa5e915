import { createServer, type Server } from 'node:http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import express from 'express'
import { evm, Fetch } from 'mppx/client'
import { createTestClient, http } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { sql } from '../../server/src/platform/db/db.ts'
import { aPayer, aWorld, type DevChain, type Org, type Payer, startChain, type World } from '../../server/test/world.ts'
import { payMiddleware, walletMiddleware } from '../src/middleware/express.ts'
import { close, listen } from './fake-purser.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let walletId: string
let shop: Server
let url: string
const runs: string[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 300 } })
  org = await world.organisation()
  walletId = (await world.wallet(org)).id
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})
beforeEach(async () => {
  runs.length = 0
  await openShop()
})
afterEach(() => close(shop))

/** A provider's server; opened again, it has forgotten everything, as after a crash. */
async function openShop(challengeBatch = 1, slow = Promise.resolve(), holdMsMax = 0): Promise<void> {
  const app = express()
  const options = {
    apiKey: org.testKey,
    baseUrl: world.base,
    walletId,
    challengeBatch,
    onFault: () => {},
    registry: false,
  }
  app.use(walletMiddleware({ ...options, publicUrl: 'https://shop.test', holdMsMax }))
  app.all('/report', payMiddleware({ price: '0.01' }), async (req, res) => {
    runs.push(req.method)
    await slow
    res.json({ report: 'the goods' })
  })
  shop = createServer(app)
  url = await listen(shop)
}

/** Pays with an official client and answers what it sent with its payment, and the answer. */
async function buyWith(wrap: (own: typeof fetch) => typeof fetch, method = 'GET') {
  const sent: Request[] = []
  const recording: typeof fetch = (input, init) => {
    const request = new Request(input, init)
    sent.push(request.clone())
    return fetch(request)
  }
  const response = await wrap(recording)(`${url}/report`, { method })
  return { response, ...repeatOf(sent, method) }
}

/** Repeats a payment to the server that is running now. */
function repeatOf(sent: readonly Request[], method: string) {
  const names = ['payment-signature', 'authorization']
  const paid = sent.find((request) => names.some((name) => request.headers.has(name)))
  const headers = Object.fromEntries([...(paid?.headers ?? [])].filter(([name]) => names.includes(name)))
  return { again: () => fetch(`${url}/report`, { method, headers }) }
}

const clients: [string, (own: typeof fetch) => typeof fetch][] = [
  [
    '@x402/fetch',
    (own) => wrapFetchWithPayment(own, new x402Client().register('eip155:84532', new ExactEvmScheme(payer.account))),
  ],
  [
    'mppx',
    (own) => {
      const authorization = { name: 'USDC', version: '2' }
      const methods = evm({ account: payer.account, maxAmount: '1', decimals: 6, authorization })
      return Fetch.from({ methods, fetch: own })
    },
  ],
]

async function withoutBlocks<T>(work: () => Promise<T>): Promise<T> {
  const anvil = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  await anvil.setAutomine(false)
  try {
    return await work()
  } finally {
    await anvil.setAutomine(true)
    await anvil.mine({ blocks: 1 })
  }
}

async function settledStatus(): Promise<unknown> {
  const [log] = (await world.call(org.testKey, 'GET', '/payments/logs?limit=1')).list
  return log?.status
}

/** The period of grace for the handler that ran first is over. */
async function passGrace(): Promise<void> {
  await world.database.db.run(
    sql`update payments set redemption_until = now() - interval '1 second' where redemption_until is not null`,
  )
}

test.each(clients.flatMap(([name, wrap]) => ['GET', 'POST'].map((method) => [name, method, wrap] as const)))(
  '%s %s: while no block comes the answer is withheld, and served once to the same credential after it',
  async (_name, method, wrap) => {
    const { response, again } = await withoutBlocks(() => buyWith(wrap, method))
    expect(response.status).toBe(503)
    await vi.waitFor(async () => expect(await settledStatus()).toBe('settled'), { timeout: 60_000 })
    const answers = await Promise.all([again(), again(), again()])
    const served = answers.filter(({ status }) => status === 200)
    expect(served).toHaveLength(1)
    expect(await served[0]?.json()).toEqual({ report: 'the goods' })
    expect((await again()).status).toBe(409)
    expect(runs).toEqual([method])
  },
)

test.each(clients)(
  '%s: a server that dies between settling and answering serves a GET again, once',
  async (_name, wrap) => {
    const { response, again } = await withoutBlocks(() => buyWith(wrap))
    expect(response.status).toBe(503)
    await vi.waitFor(async () => expect(await settledStatus()).toBe('settled'), { timeout: 60_000 })
    await close(shop)
    await openShop()
    const waiting = await again()
    expect([waiting.status, waiting.headers.get('retry-after')]).toEqual([409, '30'])
    await passGrace()
    expect(await (await again()).json()).toEqual({ report: 'the goods' })
    await passGrace()
    expect((await again()).status).toBe(409)
    expect(runs).toEqual(['GET', 'GET'])
  },
)

test.each(clients)(
  '%s: a POST that is sent again while it runs is in progress at every process, and is paid once',
  async (_name, wrap) => {
    await close(shop)
    const slow = Promise.withResolvers<void>()
    await openShop(1, slow.promise, 60_000)
    const sent: Request[] = []
    const recording: typeof fetch = (input, init) => {
      const request = new Request(input, init)
      sent.push(request.clone())
      return fetch(request)
    }
    const first = wrap(recording)(`${url}/report`, { method: 'POST' })
    await vi.waitFor(() => expect(runs).toEqual(['POST']), { timeout: 20_000 })
    const { again } = repeatOf(sent, 'POST')
    const firstShop = shop
    expect((await again()).status).toBe(409)
    await openShop()
    try {
      for (const repeat of [await again(), await again()]) {
        expect([repeat.status, repeat.headers.get('retry-after')]).toEqual([409, '5'])
        expect(await repeat.json()).toMatchObject({ code: 'delivery-in-progress' })
      }
      slow.resolve()
      expect(await (await first).json()).toEqual({ report: 'the goods' })
      expect(runs).toEqual(['POST'])
    } finally {
      await close(firstShop)
    }
  },
)

test('a challenge that was fetched ahead with others redeems like one of its own', async () => {
  await close(shop)
  await openShop(5)
  const wrap = clients[0]?.[1]
  if (wrap === undefined) throw new Error('no client')
  const { response, again } = await withoutBlocks(() => buyWith(wrap))
  expect(response.status).toBe(503)
  await vi.waitFor(async () => expect(await settledStatus()).toBe('settled'), { timeout: 60_000 })
  expect((await again()).status).toBe(200)
})
