import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { contentDigest } from '@purser/protocol'
import { evm, Mppx, tempo } from 'mppx/client'
import { createClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { tempoModerato } from 'viem/chains'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Answer, aPayer, aWorld, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { tokenBalance } from '../src/faucet.ts'

let chain: DevChain
let world: World
let org: Org
let wallet: { id: string; address: `0x${string}` }
const shops: Server[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterEach(async () => {
  for (const shop of shops.splice(0)) await new Promise((resolve) => shop.close(resolve))
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

interface Shop {
  readonly url: string
  /** The requests it received, in order. */
  readonly visits: readonly Visit[]
  readonly verified: readonly Answer[]
}

interface Visit {
  readonly authorization: string | undefined
  readonly paymentAuthorization: string | undefined
}

interface Offer {
  readonly price: string
  readonly credentialHeader?: string
  readonly withDigest?: boolean
}

/** The minimum that a route needs: a challenge without a credential, the content with a valid one. */
async function aShop(offer: Offer): Promise<Shop> {
  const visits: Visit[] = []
  const verified: Answer[] = []
  const server = createServer((request, response) => {
    void serve(request, response, { offer, visits, verified })
  })
  shops.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/report?of=today`, visits, verified }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  { offer, visits, verified }: { readonly offer: Offer; readonly visits: Visit[]; readonly verified: Answer[] },
): Promise<void> {
  const body: Buffer[] = []
  for await (const chunk of request) body.push(chunk)
  const { price, credentialHeader = 'Authorization', withDigest = false } = offer
  const digest = withDigest ? { digest: contentDigest(Buffer.concat(body)) } : {}
  const paid = { walletId: wallet.id, resource: `http://${request.headers.host}${request.url}`, price, ...digest }
  const visit = {
    authorization: request.headers.authorization,
    paymentAuthorization: String(request.headers['payment-authorization'] ?? '') || undefined,
  }
  visits.push(visit)
  const credential = credentialHeader === 'Authorization' ? visit.authorization : visit.paymentAuthorization
  if (credential?.startsWith('Payment ')) {
    const answer = await world.call(org.testKey, 'POST', '/payments/verify', { ...paid, protocol: 'mpp', credential })
    verified.push(answer)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
    return
  }
  const requested = { ...paid, credentialHeader, description: 'Today’s report' }
  const { body: challenge } = await world.call(org.testKey, 'POST', '/payments/challenge', requested)
  const x402 = challenge.x402 === null ? {} : { 'payment-required': String(challenge.x402) }
  response.writeHead(402, { 'www-authenticate': String(challenge.mpp), 'cache-control': 'no-store', ...x402 }).end()
}

function settle({ body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

async function aClient(rawUsdc?: bigint) {
  const { account } = await aPayer(chain, rawUsdc)
  const methods = [evm.charge({ account, authorization: { name: 'USDC', version: '2' }, networks: [84532] })]
  return { account, client: Mppx.create({ methods, polyfill: false }) }
}

test('the official client pays an evm/charge of ours, once, and the money moves at settlement', async () => {
  const [shop, { account, client }] = await Promise.all([aShop({ price: '0.01' }), aClient()])
  const before = await tokenBalance(chain, 'USDC', account.address)
  const response = await client.fetch(shop.url)
  expect([response.status, shop.visits.length]).toEqual([200, 2])
  expect(await response.json()).toMatchObject({ method: 'evm', payer: account.address, settlementPending: true })

  const [verified] = shop.verified
  const settled = verified === undefined ? undefined : await settle(verified)
  expect(settled?.status).toBe(200)
  expect(before - (await tokenBalance(chain, 'USDC', account.address))).toBe(10_000n)
  expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(10_000n)

  const credential = shop.visits[1]?.authorization ?? ''
  const replay = await fetch(shop.url, { headers: { authorization: credential } })
  expect(replay.status).toBe(409)
})

test('with another header configured, the official client leaves Authorization to the caller', async () => {
  const [shop, { client }] = await Promise.all([
    aShop({ price: '0.01', credentialHeader: 'Payment-Authorization' }),
    aClient(),
  ])
  const response = await client.fetch(shop.url, { headers: { authorization: 'Bearer theirs' } })
  expect(response.status).toBe(200)
  expect(shop.visits.map(({ authorization }) => authorization)).toEqual(['Bearer theirs', 'Bearer theirs'])
  expect(shop.visits[1]?.paymentAuthorization).toMatch(/^Payment /)
})

test('the official client pays a challenge that is bound to its request’s body, and the challenge is refused for any other body', async () => {
  const [shop, { client }] = await Promise.all([aShop({ price: '0.01', withDigest: true }), aClient()])
  const response = await client.fetch(shop.url, { method: 'POST', body: '{"of":"today"}' })
  expect(response.status).toBe(200)
  const fresh = await aClient()
  const challenged = await fetch(shop.url, { method: 'POST', body: '{"of":"today"}' })
  const credential = await fresh.client.createCredential(challenged)
  const swapped = await fetch(shop.url, {
    method: 'POST',
    body: '{"of":"everything"}',
    headers: { authorization: credential },
  })
  expect([swapped.status, await swapped.json()]).toMatchObject([402, { reason: 'invalid-challenge' }])
})

test('the official client proves its account where the price is zero, without any chain', async () => {
  const shop = await aShop({ price: '0' })
  const account = privateKeyToAccount(generatePrivateKey())
  const getClient = () => createClient({ account, chain: tempoModerato, transport: http('http://127.0.0.1:9') })
  const client = Mppx.create({ methods: [tempo.charge({ account, getClient })], polyfill: false })
  const response = await client.fetch(shop.url)
  expect([response.status, await response.json()]).toMatchObject([
    200,
    { method: 'tempo', network: 'eip155:42431', amount: '0', payer: account.address, settlementPending: false },
  ])
})

test('a payer without funds reads the reason, and nothing is recorded', async () => {
  const [shop, { client }] = await Promise.all([aShop({ price: '0.01' }), aClient(5n)])
  const response = await client.fetch(shop.url)
  expect([response.status, await response.json()]).toMatchObject([
    402,
    {
      reason: 'verification-failed',
      message: 'The authorization was refused: invalid_exact_evm_insufficient_balance.',
    },
  ])
})
