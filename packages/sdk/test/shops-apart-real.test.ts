import { createServer, type Server } from 'node:http'
import express from 'express'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import {
  type Answer,
  aPayer,
  aWorld,
  type DevChain,
  type Org,
  startChain,
  type World,
} from '../../server/test/world.ts'
import { payMiddleware, walletMiddleware } from '../src/middleware/express.ts'
import { close, listen } from './fake-purser.ts'

let chain: DevChain
let world: World
const shops: Server[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  // As a service waits by default. The middleware waits fifteen seconds for a response, and then sends its request again.
  world = await aWorld({ chains: [chain], config: { challengesPerCallerMax: 1_000, settleWaitMs: 10_000 } })
})
afterAll(async () => {
  for (const shop of shops) await close(shop)
  await world?.stop()
  await chain?.stop()
})

/** A shop of an organisation, whose route answers once `slow` is resolved. It waits for a payment that is not settled for `holdMsMax`. */
async function aShop(
  org: Org,
  slow: Promise<void>,
  holdMsMax = 60_000,
): Promise<{ readonly url: string; readonly runs: () => number }> {
  const { id: walletId } = await world.wallet(org)
  const app = express()
  let runs = 0
  const options = {
    apiKey: org.testKey,
    baseUrl: world.base,
    walletId,
    challengeBatch: 1,
    registry: false,
    holdMsMax,
  } as const
  app.use(walletMiddleware({ ...options, publicUrl: 'https://shop.test', onFault: () => {} }))
  app.get('/report', payMiddleware({ price: '0.01' }), async (_req, res) => {
    runs += 1
    await slow
    res.json({ report: 'the goods' })
  })
  const shop = createServer(app)
  shops.push(shop)
  return { url: `${await listen(shop)}/report`, runs: () => runs }
}

/** The challenge of a shop, as the service answers one to its key. */
async function challengeOf(url: string): Promise<Answer> {
  const { status, headers } = await fetch(url)
  return { status, headers, body: { x402: headers.get('payment-required') }, list: [] }
}

const pay = (url: string, credential: string) => fetch(url, { headers: { 'PAYMENT-SIGNATURE': credential } })

test('120 payments of a slow route that are settled right before they expire delay no buyer of another shop', async () => {
  const release = Promise.withResolvers<void>()
  const slow = await aShop(await world.organisation(), release.promise, 20_000)
  const other = await aShop(await world.organisation(), Promise.resolve())
  // A payer may have a hundred payments open.
  const [one, another, honest] = await Promise.all([aPayer(chain), aPayer(chain), aPayer(chain)])
  const challenge = await challengeOf(slow.url)
  const endsAt = Math.floor(Date.now() / 1_000) + 20
  const requests = Array.from({ length: 120 }, async (_, index) =>
    pay(
      slow.url,
      await (index % 2 === 0 ? one : another).credential(challenge, { sign: { validBefore: String(endsAt) } }),
    ),
  )
  await vi.waitFor(() => expect(slow.runs()).toBe(120), { timeout: 15_000 })
  // The relayer sends nothing that ends within two seconds.
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(endsAt * 1_000 - 3_000), { timeout: 30_000 })
  release.resolve()

  const bought = await pay(other.url, await honest.credential(await challengeOf(other.url)))
  expect(bought.status).toBe(200)
  expect(await bought.json()).toEqual({ report: 'the goods' })
  const answered = await Promise.all(requests)
  expect(answered.filter(({ status }) => ![200, 402, 503].includes(status)).map(({ status }) => status)).toEqual([])
}, 120_000)
