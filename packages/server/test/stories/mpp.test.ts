import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import type { requirementsV2 } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { authorizationFor, offerOf, payByEvmCharge } from '../mpp-agent.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  codeOf,
  countByStatus,
  type Org,
  type Payer,
  request,
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: `0x${string}` }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather?city=Lima'

function challenge(changes: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
  const body = { walletId: wallet.id, resource, price: '0.01', ...changes }
  return world.call(org.testKey, 'POST', '/payments/challenge', body)
}

function verifyBody(credential: string, changes: Readonly<Record<string, unknown>> = {}) {
  return { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource, method: 'GET', ...changes }
}

function verify(credential: string, changes: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/verify', verifyBody(credential, changes))
}

function settle({ body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

async function count(table: 'payments' | 'events'): Promise<number> {
  const Row = z.object({ count: z.bigint() })
  const query =
    table === 'payments'
      ? sql`select count(*) from payments`
      : sql`select count(*) from events where type like 'payment.%'`
  return Number((await world.database.db.one(Row, query)).count)
}

test('an evm/charge is verified and settled like an x402 payment, and refused when it is sent again', async () => {
  const [walletBefore, payerBefore] = await Promise.all([balance(wallet.address), balance(payer.account.address)])
  const offer = offerOf(await challenge())
  const credential = await payByEvmCharge(payer.account, offer)

  const verified = await verify(credential, { network: 'eip155:84532' })
  expect([verified.status, verified.body]).toMatchObject([
    200,
    {
      valid: true,
      protocol: 'mpp',
      scheme: 'charge',
      method: 'evm',
      challengeId: offer.id,
      network: 'eip155:84532',
      amount: '0.01',
      coin: 'USDC',
      payer: payer.account.address,
      txHash: null,
      settlementPending: true,
    },
  ])
  const settled = await settle(verified)
  expect([settled.status, settled.body.txHash]).toEqual([200, expect.stringMatching(/^0x[0-9a-f]{64}$/)])
  expect((await balance(wallet.address)) - walletBefore).toBe(10_000n)
  expect(payerBefore - (await balance(payer.account.address))).toBe(10_000n)
  const payment = await world.call(org.testKey, 'GET', `/payments/${verified.body.paymentId}`)
  expect(payment.body).toMatchObject({ status: 'settled', protocol: 'mpp', txHash: settled.body.txHash, resource })

  const again = await verify(credential)
  expect([again.status, codeOf(again)]).toEqual([409, 'duplicate-payment'])
})

test('a hundred copies of one credential sent at once, to two processes, buy one thing', async () => {
  const other = await world.another()
  const [payments, events] = [await count('payments'), await count('events')]
  const credential = await payByEvmCharge(payer.account, offerOf(await challenge()))
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      request(index % 2 === 0 ? world.base : other.base, {
        key: org.testKey,
        method: 'POST',
        path: '/payments/verify',
        body: verifyBody(credential),
      }),
    ),
  )
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 99 })
  expect([(await count('payments')) - payments, (await count('events')) - events]).toEqual([1, 1])
})

test('one signature sent as x402 and as MPP at once pays once', async () => {
  const payments = await count('payments')
  const offer = offerOf(await challenge())
  const asMpp = await payByEvmCharge(payer.account, offer)
  const { payload } = JSON.parse(Buffer.from(asMpp.slice('Payment '.length), 'base64url').toString())
  const { type: _, signature, ...authorization } = payload
  expect(authorization).toEqual(authorizationFor(payer.account, offer))
  const required = JSON.parse(Buffer.from(String((await challenge()).body.x402), 'base64').toString())
  const accepted: ReturnType<typeof requirementsV2> = required.accepts[0]
  const message = { x402Version: 2, accepted, payload: { signature, authorization } }
  const asX402 = Buffer.from(JSON.stringify(message)).toString('base64')

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? verify(asMpp) : verify(asX402, { protocol: 'x402' }))),
  )
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 19 })
  expect((await count('payments')) - payments).toBe(1)
})

test('one challenge given to two payers does not buy for both', async () => {
  const other = await aPayer(chain)
  const offer = offerOf(await challenge())
  const answers = await Promise.all(
    [payer, other].map(async ({ account }) => verify(await payByEvmCharge(account, offer))),
  )
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 1 })
})

test('many MPP and x402 payments settled at once are each on chain once', async () => {
  const before = await balance(wallet.address)
  const verified = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const requested = await challenge()
      if (index % 2 === 0) return verify(await payByEvmCharge(payer.account, offerOf(requested)))
      return verify(await payer.credential(requested), { protocol: 'x402' })
    }),
  )
  expect(countByStatus(verified)).toEqual({ 200: 12 })
  expect(countByStatus(await Promise.all(verified.map(settle)))).toEqual({ 200: 12 })
  expect((await balance(wallet.address)) - before).toBe(120_000n)
})

test('a node that does not answer is 503, records nothing, and the same credential pays afterwards', async () => {
  const { base, server } = await world.another({ rpcUrls: { 'base-sepolia': ['http://127.0.0.1:9'] }, role: 'api' })
  const payments = await count('payments')
  const credential = await payByEvmCharge(payer.account, offerOf(await challenge()))
  const failed = await request(base, {
    key: org.testKey,
    method: 'POST',
    path: '/payments/verify',
    body: verifyBody(credential),
  })
  expect([failed.status, codeOf(failed)]).toEqual([503, 'chain-unavailable'])
  expect(await count('payments')).toBe(payments)
  expect((await verify(credential)).status).toBe(200)
  await server.stop()
})

test('a repeat under one Idempotency-Key gets the first answer', async () => {
  const credential = await payByEvmCharge(payer.account, offerOf(await challenge()))
  const send = () =>
    world.call(org.testKey, 'POST', '/payments/verify', verifyBody(credential), {
      'idempotency-key': credential.slice(-40),
    })
  const first = await send()
  const second = await send()
  expect([first.status, second.status, second.headers.get('idempotency-replayed')]).toEqual([200, 200, 'true'])
  expect(second.body).toEqual(first.body)
})

function balance(address: `0x${string}`): Promise<bigint> {
  return tokenBalance(chain, 'USDC', address)
}
