import { tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OfficialShop, officialExpressShop } from '../../devnet/test/official-shops.ts'
import { aTransferStage, stranger, type TransferStage } from '../../server/test/transfer-stage.ts'
import { aPayer } from '../../server/test/wallet-payment-stage.ts'
import { anAgent, type Env } from './stage.ts'

let stage: TransferStage
let env: Env
let shop: OfficialShop
let payTo: `0x${string}`

/** A shop behind the official x402 middleware, with Purser as its facilitator. */
beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia', config: { webhooksAllowPrivate: true } })
  env = { PURSER_API_KEY: stage.key, PURSER_BASE_URL: stage.world.base }
  const seller = await stage.world.organisation()
  payTo = stranger()
  const facilitatorUrl = `${stage.world.base}/facilitator`
  shop = await officialExpressShop({ facilitatorUrl, apiKey: seller.testKey, payTo })
})
afterAll(async () => {
  await shop?.stop()
  await stage?.stop()
})

test('an agent pays a route and gets the goods, a repeat pays nothing, and the route is found by another agent, who pays it too', async () => {
  const buyer = await anAgent(env)
  const { child } = await aPayer(stage)
  const purchase = { fromWalletId: child.id, url: `${shop.url}/report`, maxAmount: '0.05', idempotencyKey: 'report-9' }
  const paid = await buyer.call('pay_and_fetch', purchase)
  expect([paid.isError, paid.structured]).toEqual([
    false,
    expect.objectContaining({
      amount: '0.01',
      fromToken: 'USDC',
      method: 'x402/v2',
      outcome: 'paid',
      idempotencyKey: 'report-9',
      response: expect.objectContaining({
        status: 200,
        body: JSON.stringify({ report: 'all is well' }),
        receipt: expect.objectContaining({ txHash: expect.stringMatching(/^0x[0-9a-f]{64}$/) }),
      }),
    }),
  ])
  const again = await buyer.call('pay_and_fetch', purchase)
  expect(again.structured.id).toBe(paid.structured.id)
  expect([shop.served, await tokenBalance(stage.dev, 'USDC', payTo)]).toEqual([['/report'], 10_000n])

  const other = await anAgent(env)
  const found = await other.call('discover', { payTo, network: 'eip155:84532' })
  const resource = { resource: `${shop.url}/report`, type: 'http', description: 'A report' }
  expect(found.structured.items).toEqual([expect.objectContaining(resource)])
  const second = await other.call('pay_and_fetch', {
    fromWalletId: child.id,
    url: resource.resource,
    maxAmount: '0.01',
  })
  expect(second.structured).toMatchObject({ outcome: 'paid', response: { status: 200 } })
  expect([shop.served.length, await tokenBalance(stage.dev, 'USDC', payTo)]).toEqual([2, 20_000n])
})

test('a price over maxAmount, an empty wallet and a policy that forbids it are results with the problem, and nothing is paid', async () => {
  const { call } = await anAgent(env)
  const { child } = await aPayer(stage)
  const forbidding = { operations: { pay: { recipients: [stranger()] } }, tokens: { USDC: { perDay: '5' } } }
  const bound = await aPayer(stage, forbidding)
  const before = shop.served.length
  const url = `${shop.url}/report`
  for (const [fromWalletId, maxAmount, code] of [
    [child.id, '0.009', 'no-payable-offer'],
    [bound.child.id, '0.05', 'policy-denied'],
  ] as const) {
    const { isError, read } = await call('pay_and_fetch', { fromWalletId, url, maxAmount })
    expect([isError, read.type]).toEqual([true, expect.stringContaining(code)])
  }
  const free = await call('pay_and_fetch', {
    fromWalletId: child.id,
    url: `${stage.world.base}/healthz`,
    maxAmount: '1',
  })
  expect(free.structured).toMatchObject({ id: null, response: { status: 200, body: '{"status":"ok"}' } })
  expect(shop.served.length).toBe(before)
})

test('without --allow-money the tool is not offered and cannot be called, and the search is', async () => {
  const { client, call } = await anAgent(env, ['--allow-changes'])
  const names = (await client.listTools()).tools.map(({ name }) => name)
  expect([names.includes('pay_and_fetch'), names.includes('discover')]).toEqual([false, true])
  await expect(call('pay_and_fetch', { url: `${shop.url}/report` })).rejects.toMatchObject({ code: -32_602 })
})
