import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { type EchoedCredential, offerOf, payByProof } from '../../../../test/mpp-agent.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../../../../test/world.ts'
import { sql } from '../../../platform/db/db.ts'

let world: World
let org: Org
let wallet: { id: string; address: `0x${string}` }
const account = privateKeyToAccount(generatePrivateKey())
let now = new Date('2026-11-22T00:00:00.000Z')

beforeAll(async () => {
  world = await aWorld({ boot: { clock: { now: () => now } } })
})
beforeEach(async () => {
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterAll(() => world?.stop())

const resource = 'https://api.example.com/free'

type Fields = Readonly<Record<string, unknown>>

function challenge(changes: Fields = {}): Promise<Answer> {
  const body = { walletId: wallet.id, resource, price: '0', ...changes }
  return world.call(org.testKey, 'POST', '/payments/challenge', body)
}

function verify(credential: string, changes: Fields = {}, base = world.base): Promise<Answer> {
  const body = { protocol: 'mpp', credential, price: '0', walletId: wallet.id, resource, ...changes }
  return request(base, { key: org.testKey, method: 'POST', path: '/payments/verify', body })
}

async function paymentsOf({ id }: Org): Promise<number> {
  const Row = z.object({ count: z.bigint() })
  const row = await world.database.db.one(Row, sql`select count(*) from payments where organisation_id = ${id}`)
  return Number(row.count)
}

async function refusalOf(response: Answer): Promise<unknown> {
  expect(await paymentsOf(org)).toBe(0)
  return [response.status, codeOf(response), response.body.reason]
}

const refused = (reason: string) => [402, 'payment-verification-failed', reason]

test('a proof of the account buys what costs nothing, and is settled at once', async () => {
  const offer = offerOf(await challenge())
  const verified = await verify(await payByProof(account, offer))
  expect([verified.status, verified.body]).toMatchObject([
    200,
    {
      protocol: 'mpp',
      scheme: 'charge',
      method: 'tempo',
      challengeId: offer.id,
      network: 'eip155:42431',
      amount: '0',
      coin: 'pathUSD',
      payer: account.address,
      txHash: null,
      settledAt: now.toISOString(),
      settlementPending: false,
    },
  ])
  const payment = await world.call(org.testKey, 'GET', `/payments/${verified.body.paymentId}`)
  expect(payment.body).toMatchObject({ status: 'settled', chain: 'tempo', network: 'tempo-moderato', rawAmount: '0' })
  const usage = await world.call(org.testKey, 'GET', '/billing/usage')
  expect(usage.body.payments, 'proofs have a count of their own').toMatchObject({ used: 0 })
  const { paymentId, settlementToken } = verified.body
  const settled = await world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
  expect([settled.status, settled.body]).toEqual([
    200,
    { receipt: expect.any(String), txHash: null, settledAt: now.toISOString(), redemptionRequested: false },
  ])
})

test('a hundred copies of one proof, sent to two processes at once, buy once', async () => {
  const other = await world.another()
  const credential = await payByProof(account, offerOf(await challenge()))
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) => verify(credential, {}, index % 2 === 0 ? world.base : other.base)),
  )
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 99 })
  expect(await paymentsOf(org)).toBe(1)
})

test('a proof for a wallet on Tempo is stored under the wallet’s own chain name', async () => {
  const body = { address: account.address, chain: 'tempo-moderato', supportedTokens: ['AlphaUSD'] }
  const { id } = (await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', body)).body
  const credential = await payByProof(account, offerOf(await challenge({ walletId: id })))
  const verified = await verify(credential, { walletId: id, network: 'eip155:42431' })
  expect(verified.status).toBe(200)
  const payment = await world.call(org.testKey, 'GET', `/payments/${verified.body.paymentId}`)
  expect(payment.body).toMatchObject({ chain: 'tempo-moderato', network: 'tempo-moderato', payTo: account.address })
})

test('a proof is valid for one account, one challenge, one realm and one chain only', async () => {
  const stranger = privateKeyToAccount(generatePrivateKey())
  for (const about of [
    { account: stranger.address },
    { challengeId: offerOf(await challenge()).id },
    { realm: 'www.example.com' },
    { chainId: 4217 },
  ]) {
    const credential = await payByProof(account, offerOf(await challenge()), { about })
    expect(await refusalOf(await verify(credential)), JSON.stringify(about)).toEqual(refused('verification-failed'))
  }
})

test.each<readonly [name: string, reason: string, change: (whole: EchoedCredential) => unknown]>([
  ['names nobody', 'verification-failed', (whole) => delete whole.source],
  [
    'names another account',
    'verification-failed',
    (whole) => (whole.source = `did:pkh:eip155:42431:0x${'7'.repeat(40)}`),
  ],
  ['names another chain', 'verification-failed', (whole) => (whole.source = `did:pkh:eip155:4217:${account.address}`)],
  ['is by a contract account', 'verification-failed', ({ payload }) => (payload.signature = `0x${'7'.repeat(400)}`)],
  ['has no signature', 'invalid-payload', ({ payload }) => delete payload.signature],
  ['is a transaction', 'invalid-payload', ({ payload }) => (payload.type = 'transaction')],
  ['is a hash', 'invalid-payload', (whole) => (whole.payload = { type: 'hash', hash: `0x${'7'.repeat(64)}` })],
])('a proof that %s is refused as %s', async (_, reason, change) => {
  const after = (whole: EchoedCredential): void => void change(whole)
  const credential = await payByProof(account, offerOf(await challenge()), { after })
  expect(await refusalOf(await verify(credential))).toEqual(refused(reason))
})

test('a proof does not pay a price above zero, and a price that drops to zero requires no money', async () => {
  const proof = await payByProof(account, offerOf(await challenge()))
  expect(await refusalOf(await verify(proof, { price: '0.01' }))).toEqual(refused('payment-insufficient'))
  const paid = offerOf(await challenge({ price: '0.01' }))
  const credential = await payByProof(account, paid)
  expect(await refusalOf(await verify(credential, { price: '0.01' }))).toEqual(refused('invalid-payload'))
  expect(await refusalOf(await verify(credential))).toEqual(refused('invalid-challenge'))
})

test('a proof expires with its challenge', async () => {
  const credential = await payByProof(account, offerOf(await challenge()))
  now = new Date(now.getTime() + 300_000)
  expect(await refusalOf(await verify(credential))).toEqual(refused('payment-expired'))
})

test('x402 cannot pay a price of zero, and a stub of the test mode can', async () => {
  const stub = await verify('stub_payment_accepted', { protocol: 'x402', price: '0.00' })
  expect([stub.status, stub.body.amount, stub.body.scheme]).toEqual([200, '0', 'stub'])
  const byX402 = await verify(Buffer.from('{}').toString('base64'), { protocol: 'x402' })
  expect(byX402.status).not.toBe(200)
})

test('proofs have a count of their own: a hundred of them take no payment’s place, and the next one is refused and not used up', async () => {
  org = await world.organisation('hobby')
  wallet = await world.wallet(org)
  const usage = async () => (await world.call(org.testKey, 'GET', '/billing/usage')).body.payments
  const prove = async () => verify(await payByProof(account, offerOf(await challenge())))
  expect(countByStatus(await Promise.all(Array.from({ length: 99 }, prove)))).toEqual({ 200: 99 })
  expect((await verify('stub_payment_accepted')).status).toBe(200)
  expect(await usage()).toMatchObject({ used: 1 })
  expect((await world.call(org.testKey, 'POST', '/billing/rebuild-cache')).body).toEqual({ rebuilt: true })
  expect(await usage()).toMatchObject({ used: 1 })
  const [first, second] = await Promise.all(
    [challenge(), challenge()].map(async (requested) => payByProof(account, offerOf(await requested))),
  )
  expect((await verify(first ?? '')).status).toBe(200)
  const over = await verify(second ?? '')
  expect([over.status, codeOf(over), over.body.current]).toEqual([429, 'payment-limit-reached', 100])
  expect((await verify('stub_payment_accepted')).status).toBe(200)
  await world.server.deps.db.run(sql`update organisations set plan = 'pro' where id = ${org.id}`)
  expect((await verify(second ?? '')).status).toBe(200)
})
