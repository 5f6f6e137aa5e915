import { x402HTTPClient } from '@x402/core/client'
import { SettleError, VerifyError } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { withBazaar } from '@x402/extensions/bazaar'
import { appendPaymentIdentifierToExtensions } from '@x402/extensions/payment-identifier'
import { x402Client } from '@x402/fetch'
import type { PrivateKeyAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../server/src/platform/db/db.ts'
import { aPayer, aWorld, codeOf, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { tokenBalance } from '../src/faucet.ts'
import { rpc } from '../src/rpc.ts'
import { fetchAgent } from './official-agents.ts'
import {
  facilitatorClient,
  type OfficialShop,
  type OfficialShopAccount,
  officialExpressShop,
  officialHonoShop,
} from './official-shops.ts'

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

const shops = { '@x402/express': officialExpressShop, '@x402/hono': officialHonoShop }

describe.each(['@x402/express', '@x402/hono'] as const)(
  'a server of the official %s with Purser as its facilitator',
  (make) => {
    test('is paid by the official client, and the payment is in the logs like any other', async () => {
      const { shop, wallet, account } = await stage()
      const before = await tokenBalance(chain, 'USDC', account.address)
      const call = await fetchAgent({ account }).call(`${shop.url}/report`)

      expect([call.status, call.body]).toEqual([200, { report: 'all is well' }])
      expect(before - (await tokenBalance(chain, 'USDC', account.address))).toBe(rawPrice)
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
      const [log, ...others] = await logsOf(wallet.id)
      expect(others).toEqual([])
      expect(log).toMatchObject({
        status: 'settled',
        amount: '0.01',
        protocol: 'x402',
        payer: account.address,
        route: `${shop.url}/report`,
      })
      expect(call.receipt).toMatchObject({
        success: true,
        transaction: log?.txHash,
        network: 'eip155:84532',
        payer: account.address,
      })
    })

    test.each(['/report', '/upfront'])('serves %s once for five requests at once with one signature', async (path) => {
      const { shop, wallet, account } = await stage()
      const headers = await paymentFor(`${shop.url}${path}`, account)
      const answers = await Promise.all(Array.from({ length: 5 }, () => fetch(`${shop.url}${path}`, { headers })))

      expect(answers.map(({ status }) => status).sort()).toEqual([200, 402, 402, 402, 402])
      expect(shop.served).toEqual([path])
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
      expect((await fetch(`${shop.url}${path}`, { headers })).status).toBe(402)
      expect(shop.served).toEqual([path])
      expect(await logsOf(wallet.id)).toHaveLength(1)
    })

    test('that settles before it serves is paid, and a payment used at verify cannot be spent there again', async () => {
      const { shop, wallet, account } = await stage()
      const call = await fetchAgent({ account }).call(`${shop.url}/upfront`)
      expect([call.status, call.receipt]).toMatchObject([200, { success: true }])
      const headers = await paymentFor(`${shop.url}/report`, account)
      expect((await fetch(`${shop.url}/report`, { headers })).status).toBe(200)
      expect((await fetch(`${shop.url}/upfront`, { headers })).status).toBe(402)
      expect(shop.served).toEqual(['/upfront', '/report'])
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(2n * rawPrice)
    })

    test('whose handler fails charges nothing', async () => {
      const { shop, wallet, account } = await stage()
      expect((await fetchAgent({ account }).call(`${shop.url}/breaks`)).status).toBe(500)
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(0n)
      expect(await logsOf(wallet.id)).toMatchObject([{ status: 'verified' }])
    })

    test('declares its route by being paid, and the official discovery client finds it', async () => {
      const { shop, wallet, account } = await stage()
      await fetchAgent({ account }).call(`${shop.url}/report`)
      const client = withBazaar(facilitatorClient({ facilitatorUrl: `${world.base}/facilitator`, apiKey: org.testKey }))
      const found = await client.extensions.bazaar.listResources({
        type: 'http',
        payTo: wallet.address,
        network: 'eip155:84532',
        scheme: 'exact',
        extensions: 'bazaar',
      })
      expect(found).toMatchObject({
        x402Version: 2,
        items: [
          {
            resource: `${shop.url}/report`,
            type: 'http',
            x402Version: 2,
            description: 'A report',
            accepts: [{ scheme: 'exact', network: 'eip155:84532', amount: '10000', payTo: wallet.address }],
          },
        ],
        pagination: { limit: 20, offset: 0, total: 1 },
      })
    })

    async function stage(): Promise<{
      shop: OfficialShop
      wallet: Awaited<ReturnType<World['wallet']>>
      account: PrivateKeyAccount
    }> {
      const wallet = await world.wallet(org)
      const { account } = await aPayer(chain)
      const shop = await shops[make]({
        facilitatorUrl: `${world.base}/facilitator`,
        apiKey: org.testKey,
        payTo: wallet.address,
      })
      cleanUps.push(shop.stop)
      return { shop, wallet, account }
    }
  },
)

test('while the chain has not confirmed, the official server requests again and gets the same payment’s outcome', async () => {
  const { base } = await world.another({ facilitatorWaitMs: 6_000 })
  const wallet = await world.wallet(org)
  const { account } = await aPayer(chain)
  const reported: (string | undefined)[] = []
  const onSettled: OfficialShopAccount['onSettled'] = async ({ errorReason, transaction }) => {
    reported.push(errorReason)
    if (errorReason !== 'settlement_pending') return
    expect(transaction).toMatch(/^0x[0-9a-f]{64}$/)
    await rpc(chain.rpcUrl, 'evm_setAutomine', [true])
    await rpc(chain.rpcUrl, 'evm_mine', [])
  }
  const till = { facilitatorUrl: `${base}/facilitator`, apiKey: org.testKey, payTo: wallet.address, onSettled }
  const shop = await officialExpressShop(till)
  cleanUps.push(shop.stop, () => rpc(chain.rpcUrl, 'evm_setAutomine', [true]))
  const headers = await paymentFor(`${shop.url}/report`, account)
  await rpc(chain.rpcUrl, 'evm_setAutomine', [false])
  const response = await fetch(`${shop.url}/report`, { headers })

  expect([response.status, reported, shop.served]).toEqual([200, ['settlement_pending', undefined], ['/report']])
  expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
  expect(await logsOf(wallet.id)).toMatchObject([{ status: 'settled' }])
})

test('a seller’s limit or outage is a response that the official client reads, and a buyer sees nothing of the seller’s account', async () => {
  const wallet = await world.wallet(org)
  const { account } = await aPayer(chain)
  const limited = await world.another({ keyLimit: { perSecond: 1, burst: 1 } })
  const till = { facilitatorUrl: `${limited.base}/facilitator`, apiKey: org.testKey, payTo: wallet.address }
  const shop = await officialExpressShop({ ...till, facilitatorUrl: `${world.base}/facilitator` })
  cleanUps.push(shop.stop)
  const headers = await paymentFor(`${shop.url}/report`, account)
  const { paymentPayload, paymentRequirements } = bodyOf(headers)
  const client = facilitatorClient(till)
  const ask = (verb: 'verify' | 'settle') =>
    client[verb](paymentPayload, paymentRequirements).catch((error: unknown) => error)
  await ask('verify')
  const [verified, settled] = [await ask('verify'), await ask('settle')]
  expect(verified).toBeInstanceOf(VerifyError)
  expect(verified).toMatchObject({ statusCode: 429, invalidReason: 'unexpected_verify_error' })
  expect(settled).toBeInstanceOf(SettleError)
  expect(settled).toMatchObject({
    statusCode: 429,
    errorReason: 'unexpected_settle_error',
    transaction: '',
    // The request is refused before its body, which names the network, is read.
    network: '',
  })

  const small = await world.organisation('hobby')
  const month = world.server.deps.clock.now().toISOString().slice(0, 7)
  await world.database.db.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used) values (${small.id}, 'test', 'payments', ${month}, 1000000)
    on conflict (organisation_id, environment, kind, period) do update set used = excluded.used`)
  const full = await officialExpressShop({
    ...till,
    facilitatorUrl: `${world.base}/facilitator`,
    apiKey: small.testKey,
  })
  cleanUps.push(full.stop)
  const refused = await fetch(`${full.url}/report`, { headers: await paymentFor(`${full.url}/report`, account) })
  const shown = `${Buffer.from(refused.headers.get('payment-required') ?? '', 'base64')}${await refused.text()}`
  expect([refused.status, full.served]).toEqual([402, []])
  expect(shown).not.toMatch(/problems|payment-limit|upgradeUrl|requestId/)
})

test('the payer’s idempotency id of a payment is kept: the same payment under it is reused, another one is a conflict', async () => {
  const wallet = await world.wallet(org)
  const { account } = await aPayer(chain)
  const shop = await officialExpressShop({
    facilitatorUrl: `${world.base}/facilitator`,
    apiKey: org.testKey,
    payTo: wallet.address,
  })
  cleanUps.push(shop.stop)
  const url = `${shop.url}/report`
  const name = `pay_${crypto.randomUUID().replaceAll('-', '')}`
  const first = await paymentFor(url, account, name)
  expect((await fetch(url, { headers: first })).status).toBe(200)
  expect((await fetch(url, { headers: first })).status).toBe(402)
  const [log] = await logsOf(wallet.id)
  expect(log).toMatchObject({ status: 'settled' })

  const other = await paymentFor(url, account, name)
  expect((await fetch(url, { headers: other })).ok).toBe(false)
  const response = await world.call(org.testKey, 'POST', '/facilitator/verify', bodyOf(other))
  expect([response.status, codeOf(response)]).toEqual([409, 'payment-identifier-conflict'])
  expect(shop.served).toEqual(['/report'])
  expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
})

test('our own challenge lets the official client give its payment an id, and payments.verify enforces that id', async () => {
  const wallet = await world.wallet(org)
  const { account } = await aPayer(chain)
  const name = `pay_${crypto.randomUUID().replaceAll('-', '')}`
  const requested = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const signed = async () => {
    const { body } = await world.call(org.testKey, 'POST', '/payments/challenge', requested)
    const credential = Object.values(await headerFor(String(body.x402), account, name))[0]
    return { protocol: 'x402', credential, ...requested }
  }
  const first = await signed()
  expect((await world.call(org.testKey, 'POST', '/payments/verify', first)).status).toBe(200)
  const answers = [first, await signed()].map((body) => world.call(org.testKey, 'POST', '/payments/verify', body))
  expect((await Promise.all(answers)).map(codeOf)).toEqual(['duplicate-payment', 'payment-identifier-conflict'])
})

/** Requests the route, signs for its first offer with the official client, and returns the header to send. */
async function paymentFor(
  url: string,
  account: PrivateKeyAccount,
  paymentId?: string,
): Promise<Record<string, string>> {
  return headerFor(String((await fetch(url)).headers.get('payment-required')), account, paymentId)
}

async function headerFor(
  challenge: string,
  account: PrivateKeyAccount,
  paymentId?: string,
): Promise<Record<string, string>> {
  const client = new x402HTTPClient(new x402Client().register('eip155:84532', new ExactEvmScheme(account)))
  const required = client.getPaymentRequiredResponse(() => challenge)
  if (paymentId !== undefined) appendPaymentIdentifierToExtensions(required.extensions ?? {}, paymentId)
  return client.encodePaymentSignatureHeader(await client.createPaymentPayload(required))
}

/** The body that a server would send to its facilitator for this header. */
function bodyOf(headers: Record<string, string>) {
  const paymentPayload = JSON.parse(Buffer.from(Object.values(headers)[0] ?? '', 'base64').toString('utf8'))
  return { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }
}

async function logsOf(walletId: string): Promise<readonly Record<string, unknown>[]> {
  return (await world.call(org.testKey, 'GET', `/payments/logs?limit=100&walletId=${walletId}`)).list
}
