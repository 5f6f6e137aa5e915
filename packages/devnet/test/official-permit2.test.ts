import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { x402ResourceServer } from '@x402/core/server'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { UptoEvmScheme } from '@x402/evm/upto/server'
import { paymentMiddleware, setSettlementOverrides } from '@x402/express'
import { declareEip2612GasSponsoringExtension } from '@x402/extensions'
import { decodePaymentResponseHeader, wrapFetchWithPayment } from '@x402/fetch'
import express from 'express'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { sql } from '../../server/src/platform/db/db.ts'
import { aWorld, type Org, request, type World } from '../../server/test/world.ts'
import { type DevChain, startChain, tokenBalance } from '../src/index.ts'
import { aPermit2Payer, network, type Permit2Payer, requirementsOf, usdcOf } from './official-permit2-payers.ts'
import { facilitatorClient } from './official-shops.ts'

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

interface Shop {
  readonly url: string
  readonly payTo: `0x${string}`
  readonly walletId: string
  readonly served: string[]
}

/** A shop behind the official Express middleware: one route with a fixed price, one metered, both paid by Permit2. */
async function aShop(): Promise<Shop> {
  const wallet = await world.wallet(org)
  const served: string[] = []
  const client = facilitatorClient({ facilitatorUrl: `${world.base}/facilitator`, apiKey: org.testKey })
  const server = new x402ResourceServer(client)
    .register(network, new ExactEvmScheme())
    .register(network, new UptoEvmScheme())
  const extra = { name: 'USDC', version: '2', assetTransferMethod: 'permit2' }
  const price = { amount: '10000', asset: usdcOf(chain), extra }
  const offer = { network, payTo: wallet.address, price } as const
  const app = express()
  app.use(
    paymentMiddleware(
      {
        'GET /report': { accepts: { ...offer, scheme: 'exact' }, description: 'A report' },
        'GET /gasless': {
          accepts: { ...offer, scheme: 'exact' },
          description: 'A report for payers without coin for gas',
          extensions: declareEip2612GasSponsoringExtension(),
        },
        'GET /meter': { accepts: { ...offer, scheme: 'upto' }, description: 'A metered answer' },
      },
      server,
    ),
  )
  app.get(['/report', '/gasless'], (req, res) => {
    served.push(req.path)
    res.json({ report: 'all is well' })
  })
  app.get('/meter', (req, res) => {
    served.push(req.path)
    if (typeof req.query.used === 'string') setSettlementOverrides(res, { amount: req.query.used })
    res.json({ report: 'so much was used' })
  })
  const listening = createServer(app)
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  cleanUps.push(async () => {
    listening.closeAllConnections()
    await new Promise((resolve) => listening.close(resolve))
  })
  const { port } = listening.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, payTo: wallet.address, walletId: wallet.id, served }
}

async function buy(payer: Permit2Payer, url: string) {
  const response = await wrapFetchWithPayment(fetch, payer.client)(url)
  const receipt = response.headers.get('payment-response')
  const answered = receipt === null ? undefined : decodePaymentResponseHeader(receipt)
  return { status: response.status, body: await response.json(), receipt: answered }
}

async function spent(payer: Permit2Payer, before: bigint): Promise<bigint> {
  return before - (await tokenBalance(chain, 'USDC', payer.address))
}

test('exact by Permit2: the official client pays at the official server, and the payment is in the logs', async () => {
  const [shop, payer] = [await aShop(), await aPermit2Payer(chain)]
  const { status, body, receipt } = await buy(payer, `${shop.url}/report`)
  expect([status, body]).toEqual([200, { report: 'all is well' }])
  expect(await spent(payer, 1_000_000n)).toBe(10_000n)
  expect(await tokenBalance(chain, 'USDC', shop.payTo)).toBe(10_000n)
  const { list } = await world.call(org.testKey, 'GET', `/payments/logs?walletId=${shop.walletId}`)
  expect(list).toHaveLength(1)
  expect(list[0]).toMatchObject({ status: 'settled', amount: '0.01', payer: payer.address, protocol: 'x402' })
  expect(receipt).toMatchObject({ success: true, transaction: list[0]?.txHash, network, payer: payer.address })
})

test('a payer without allowance is answered 412 by the official server, and pays once it has given one', async () => {
  const [shop, payer] = [await aShop(), await aPermit2Payer(chain, { allowance: 0n })]
  expect((await buy(payer, `${shop.url}/report`)).status).toBe(412)
  expect(shop.served).toEqual([])
  await payer.approve(10_000n)
  expect((await buy(payer, `${shop.url}/report`)).status).toBe(200)
  expect(await tokenBalance(chain, 'USDC', shop.payTo)).toBe(10_000n)
})

test('a payer without allowance pays with a signature alone where the server sponsors the gas', async () => {
  const [shop, payer] = [await aShop(), await aPermit2Payer(chain, { allowance: 0n })]
  expect((await buy(payer, `${shop.url}/gasless`)).status).toBe(200)
  expect(await spent(payer, 1_000_000n)).toBe(10_000n)
})

test.each([
  ['all', '/meter', 10_000n],
  ['less', '/meter?used=1858', 1_858n],
])('upto: the official server charges %s that it used, and the rest stays with the payer', async (_, path, used) => {
  const [shop, payer] = [await aShop(), await aPermit2Payer(chain)]
  const { status, receipt } = await buy(payer, shop.url + path)
  expect([status, shop.served]).toEqual([200, ['/meter']])
  expect(receipt).toMatchObject({ success: true, amount: used.toString(), payer: payer.address })
  expect(await spent(payer, 1_000_000n)).toBe(used)
  expect(await tokenBalance(chain, 'USDC', shop.payTo)).toBe(used)
})

test('upto: no usage is served free of charge, without a transaction', async () => {
  const [shop, payer] = [await aShop(), await aPermit2Payer(chain)]
  const { status, receipt } = await buy(payer, `${shop.url}/meter?used=0`)
  expect(status).toBe(200)
  expect(receipt).toMatchObject({ success: true, amount: '0', transaction: '' })
  expect(await spent(payer, 1_000_000n)).toBe(0n)
})

test('upto: a server that would charge more than was permitted gets nothing', async () => {
  const [shop, payer] = [await aShop(), await aPermit2Payer(chain)]
  const { status, receipt } = await buy(payer, `${shop.url}/meter?used=10001`)
  expect(status).toBe(402)
  const errorReason = 'invalid_upto_evm_payload_settlement_exceeds_amount'
  expect(receipt).toMatchObject({ success: false, errorReason, transaction: '' })
  expect(await spent(payer, 1_000_000n)).toBe(0n)
})

test.each(['/report', '/meter'])('five requests with one permit at %s run its handler once', async (path) => {
  const [shop, payer] = [await aShop(), await aPermit2Payer(chain)]
  let paid: Request | undefined
  const listening: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    if (!request.headers.has('payment-signature')) return fetch(request)
    paid = request
    return new Response(null, { status: 599 })
  }
  await wrapFetchWithPayment(listening, payer.client)(shop.url + path)
  const headers = paid?.headers ?? {}
  const answers = await Promise.all([1, 2, 3, 4, 5].map(() => fetch(shop.url + path, { headers })))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 402, 402, 402, 402])
  expect(shop.served).toEqual([path])
  expect(await tokenBalance(chain, 'USDC', shop.payTo)).toBe(10_000n)
})

test.each(['exact', 'upto'] as const)(
  '%s: a permit of one token does not pay a price in another one',
  async (scheme) => {
    const [payer, { address: payTo }] = [await aPermit2Payer(chain), await world.wallet(org)]
    const facilitatorAddress: `0x${string}` = `0x${world.server.settlerAddress.slice(2)}`
    const offer = { scheme, amount: '10000', payTo, facilitatorAddress }
    const paymentRequirements = requirementsOf(chain, offer)
    const body = { x402Version: 2, paymentPayload: await payer.sign(paymentRequirements), paymentRequirements }
    const ask = async (verb: 'verify' | 'settle') =>
      (await request(world.base, { key: org.testKey, method: 'POST', path: `/facilitator/${verb}`, body })).body
    expect(await ask('verify')).toMatchObject({ isValid: true })
    // The chain has one token that is known. So the recorded payment gets the other one, not the requirements.
    const record = (asset: string) =>
      world.database.db.run(sql`update payments set asset = ${asset} where pay_to = ${payTo}`)
    await record(payTo)
    expect(await ask('settle')).toMatchObject({ success: false, errorReason: 'invalid_payment_requirements' })
    expect(await tokenBalance(chain, 'USDC', payTo)).toBe(0n)
    await record(paymentRequirements.asset)
    expect(await ask('settle')).toMatchObject({ success: true })
    expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
  },
)
