import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { offerOf, payByEvmCharge } from '../mpp-agent.ts'
import { asVersion1, endGracePeriod, type Sold, settledLongAgo, signatureFor, withExtra } from '../redemption-claims.ts'
import { timesCovered } from '../steady-witness.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  codeOf,
  countByStatus,
  type DevChain,
  type Org,
  type Payer,
  request,
  startChain,
  type V2Payload,
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
let other: string
let org: Org
let payer: Payer
let wallet: { id: string; address: `0x${string}` }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  other = (await world.another({ role: 'api' })).base
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather?city=Lima'

function post(path: string, body: unknown, base = world.base): Promise<Answer> {
  return request(base, { key: org.testKey, method: 'POST', path, body })
}

function challenge(more: object = {}): Promise<Answer> {
  return post('/payments/challenge', { walletId: wallet.id, resource, price: '0.01', ...more })
}

async function x402(change: (payload: V2Payload) => void = () => {}): Promise<Sold> {
  const credential = await payer.credential(await challenge(), { after: change })
  return { protocol: 'x402', credential, method: 'GET', resource }
}

async function mpp(): Promise<Sold> {
  const credential = await payByEvmCharge(payer.account, offerOf(await challenge()))
  return { protocol: 'mpp', credential, method: 'GET', resource }
}

function verify(sold: Sold, more: object = {}): Promise<Answer> {
  return post('/payments/verify', { ...sold, price: '0.01', walletId: wallet.id, reportsDelivery: true, ...more })
}

/** Settles a payment, like a middleware that dies before its answer leaves. */
async function settled(sold: Sold, more: object = {}): Promise<Answer> {
  const verified = await verify(sold, more)
  expect([verified.status, codeOf(verified)]).toEqual([200, ''])
  const { paymentId, settlementToken } = verified.body
  expect((await post('/payments/settle', { paymentId, settlementToken })).status).toBe(200)
  return verified
}

function redeem(sold: Sold, more: object = {}, base = world.base): Promise<Answer> {
  return post('/payments/redeem', { ...sold, ...more }, base)
}

const outcomeOf = (response: Answer) => [response.status, codeOf(response)]
const inProgress = [409, 'delivery-in-progress']
const notRedeemable = [409, 'payment-not-redeemable']

test.each([
  ['an x402 payment with the id of its offer', x402],
  ['an MPP payment', mpp],
])('%s that was settled and never delivered is served once, after a grace period', async (_, pay) => {
  const sold = await pay()
  const { paymentId, redeemable } = (await settled(sold)).body
  expect(redeemable).toBe(true)
  const first = await redeem(sold)
  expect([outcomeOf(first), first.headers.get('retry-after')]).toEqual([inProgress, '30'])
  expect(outcomeOf(await redeem(sold))).toEqual(inProgress)
  await endGracePeriod(world, paymentId)
  const granted = await redeem(sold)
  expect(granted.body).toMatchObject({
    paymentId,
    txHash: expect.stringMatching(/^0x/),
    settlementPending: false,
    expiresIn: 60,
  })
  expect(outcomeOf(await redeem(sold))).toEqual(inProgress)
  const finished = await post(`/payments/${paymentId}/redeemed`, { redemptionToken: granted.body.redemptionToken })
  expect(finished.body).toMatchObject({ deliveredAt: expect.any(String), redeemedAt: expect.any(String) })
  await endGracePeriod(world, paymentId)
  expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
})

test('of two processes that redeem one payment at once, one may serve it', async () => {
  const sold = await x402()
  const { paymentId } = (await settled(sold)).body
  await redeem(sold)
  await endGracePeriod(world, paymentId)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => redeem(sold, {}, i % 2 === 0 ? world.base : other)),
  )
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 19 })
})

test('a caller that lost the right to serve cannot finish, and two reruns are the maximum', async () => {
  const sold = await x402()
  const { paymentId } = (await settled(sold)).body
  await redeem(sold)
  await endGracePeriod(world, paymentId)
  const slow = await redeem(sold)
  await endGracePeriod(world, paymentId)
  const quick = await redeem(sold, {}, other)
  expect([slow.status, quick.status]).toEqual([200, 200])
  const finish = ({ body }: Answer) =>
    post(`/payments/${paymentId}/redeemed`, { redemptionToken: body.redemptionToken })
  expect(outcomeOf(await finish(slow))).toEqual([409, 'redemption-lost'])
  await endGracePeriod(world, paymentId)
  expect(outcomeOf(await redeem(sold))).toEqual(inProgress)
  await settledLongAgo(world, paymentId)
  expect(outcomeOf(await redeem(sold))).toEqual([409, 'answer-lost'])
  expect((await finish(quick)).status).toBe(200)
  expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
  expect(outcomeOf(await finish(quick))).toEqual([409, 'redemption-lost'])
})

test('a payment with reported delivery is not redeemed, also if it is reported again', async () => {
  const sold = await x402()
  const { paymentId } = (await settled(sold)).body
  const report = () => post('/payments/delivered', { paymentIds: [paymentId] })
  expect([(await report()).body, (await report()).body]).toEqual([{ delivered: 1 }, { delivered: 0 }])
  await redeem(sold)
  await endGracePeriod(world, paymentId)
  expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
})

test('the handler that ran first gets its own answer at once, unless another caller has it', async () => {
  const sold = await x402()
  const { settlementToken } = (await settled(sold)).body
  await redeem(sold)
  const first = { rerun: false, settlementToken }
  expect((await redeem(sold, first)).status).toBe(200)
  const second = await x402()
  const late = (await settled(second)).body
  await redeem(second)
  await endGracePeriod(world, late.paymentId)
  expect((await redeem(second)).status).toBe(200)
  expect(outcomeOf(await redeem(second, { rerun: false, settlementToken: late.settlementToken }))).toEqual(inProgress)
})

test('settling reports whether the payer has retried, so that the first answer is not sent beside a second', async () => {
  const sold = await x402()
  const { paymentId, settlementToken } = (await settled(sold)).body
  const settle = async () => (await post('/payments/settle', { paymentId, settlementToken })).body.redemptionRequested
  expect(await settle()).toBe(false)
  await redeem(sold)
  expect(await settle()).toBe(true)
})

test.each(['POST', 'PATCH', 'DELETE'])('%s is never run again; its stored answer may be returned', async (method) => {
  const sold = { ...(await x402()), method }
  const { paymentId, settlementToken } = (await settled(sold)).body
  const first = await redeem(sold)
  expect([outcomeOf(first), first.headers.get('retry-after')]).toEqual([inProgress, '30'])
  await settledLongAgo(world, paymentId)
  expect(outcomeOf(await redeem(sold))).toEqual([409, 'answer-lost'])
  expect((await redeem(sold, { rerun: false, settlementToken })).body).toMatchObject({ paymentId })
})

test.each([
  ['another address', { resource: 'https://api.example.com/weather?city=Quito' }],
  ['another method', { method: 'HEAD' }],
  ['a body that was not bound', { digest: 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:' }],
])('a payment can be redeemed only for its own request: %s', async (_, change) => {
  const sold = await x402()
  const { paymentId } = (await settled(sold)).body
  await endGracePeriod(world, paymentId)
  expect(outcomeOf(await redeem({ ...sold, ...change }))).toEqual(notRedeemable)
})

test('a bound body must be the same', async () => {
  const digest = 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:'
  const sold = await x402()
  const { paymentId } = (await settled(sold, { digest })).body
  await endGracePeriod(world, paymentId)
  expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
  expect((await redeem(sold, { digest })).status).toBe(200)
})

describe('public data from the chain redeems nothing', () => {
  test('a credential built from the transaction and a 402 of the attacker', async () => {
    const sold = await x402()
    const { paymentId } = (await settled(sold)).body
    await endGracePeriod(world, paymentId)
    const own = JSON.parse(Buffer.from(String((await challenge()).body.x402), 'base64').toString('utf8')).accepts[0]
    expect(outcomeOf(await redeem(withExtra(sold, own.extra)))).toEqual(notRedeemable)
    expect(outcomeOf(await redeem(withExtra(sold, {})))).toEqual(notRedeemable)
    expect((await redeem(sold)).status).toBe(200)
  })

  test('an offer’s id invented by the payer', async () => {
    const made = `${'a'.repeat(22)}.${'b'.repeat(43)}`
    const sold = withExtra(await x402(), { challengeId: made })
    const { paymentId, redeemable } = (await settled(sold)).body
    expect(redeemable).toBe(false)
    await endGracePeriod(world, paymentId)
    expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
  })

  test('a payment of version 1, even with the payer’s signature', async () => {
    const sold = asVersion1(await x402())
    const { paymentId } = (await settled(sold)).body
    await endGracePeriod(world, paymentId)
    expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
    expect(outcomeOf(await redeem(sold, { signature: await signatureFor(payer, sold) }))).toEqual(notRedeemable)
  })
})

test('a fresh signature of the payer over payment, route and time redeems where the credential alone does not', async () => {
  const sold = withExtra(await x402(), {})
  const { paymentId } = (await settled(sold)).body
  await endGracePeriod(world, paymentId)
  const old = new Date(Date.now() - 600_000).toISOString()
  const bad = [
    await signatureFor(payer, sold, { resource: 'https://api.example.com/other' }),
    await signatureFor(payer, sold, { signedAt: old }),
    await signatureFor(await aPayer(), sold),
  ]
  for (const signature of bad) expect(outcomeOf(await redeem(sold, { signature }))).toEqual(notRedeemable)
  expect((await redeem(sold, { signature: await signatureFor(payer, sold) })).status).toBe(200)
})

test('a payment-identifier from the first verify redeems', async () => {
  const extensions = { 'payment-identifier': { info: { required: false, id: `named_by_the_payer_${Date.now()}` } } }
  const sold = withExtra(await x402((payload) => void Object.assign(payload, { extensions })), {})
  const { paymentId } = (await settled(sold)).body
  await endGracePeriod(world, paymentId)
  expect((await redeem(sold)).status).toBe(200)
})

test('without delivery reports a payment counts as delivered when it is settled', async () => {
  const sold = await x402()
  const { paymentId } = (await settled(sold, { reportsDelivery: false })).body
  const payment = (await request(world.base, { key: org.testKey, method: 'GET', path: `/payments/${paymentId}` })).body
  expect(payment.deliveredAt).toBe(payment.settledAt)
  await endGracePeriod(world, paymentId)
  expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
})

test.each([
  ['GET', x402],
  ['POST', x402],
  ['PUT', mpp],
])(
  'a payment whose %s handler may still run is in progress, and no second payment is requested',
  async (method, pay) => {
    const sold = { ...(await pay()), method }
    const { paymentId } = (await verify(sold)).body
    const response = await redeem(sold, {}, other)
    expect([outcomeOf(response), response.headers.get('retry-after')]).toEqual([inProgress, '5'])
    expect(outcomeOf(await redeem({ ...sold, resource: 'https://api.example.com/other' }))).toEqual(notRedeemable)
    const ended = sql`update payments set status = 'voided', failure_reason = 'not_settled_in_time' where id = ${String(paymentId)}`
    await world.database.db.run(ended)
    expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
  },
)

test('a payment of version 1 is in progress until it is settled, and cannot be redeemed after it', async () => {
  const sold = asVersion1(await x402())
  const { paymentId, settlementToken } = (await verify(sold)).body
  expect(outcomeOf(await redeem(sold))).toEqual(inProgress)
  await post('/payments/settle', { paymentId, settlementToken })
  expect(outcomeOf(await redeem(sold))).toEqual(notRedeemable)
  expect(outcomeOf(await redeem(sold, { settlementToken }))).toEqual(notRedeemable)
})

test('the handler that verified a payment serves its own connection, whatever the credential is', async () => {
  const bare = withExtra(await x402(), {})
  for (const sold of [bare, asVersion1(await x402()), { ...(await mpp()), method: 'POST' }]) {
    const { paymentId, settlementToken } = (await settled(sold)).body
    const own = { rerun: false, settlementToken, paymentId }
    expect(outcomeOf(await redeem(sold, { ...own, settlementToken: 'made up' }))).toEqual(notRedeemable)
    const granted = await redeem(sold, own)
    expect(outcomeOf(granted)).toEqual([200, ''])
    expect(outcomeOf(await redeem(sold, { ...own, rerun: false }))).toEqual(inProgress)
  }
  const lone = {
    ...bare,
    settlementToken: undefined,
    paymentId: (await settled(withExtra(await x402(), {}))).body.paymentId,
  }
  expect(outcomeOf(await redeem(lone))).toEqual([422, 'validation-error'])
})

test('an undelivered answer is released only with its token, and can then be redeemed at once', async () => {
  const sold = await x402()
  const { paymentId, settlementToken } = (await settled(sold)).body
  const kept = { rerun: false, settlementToken }
  const { redemptionToken } = (await redeem(sold, kept)).body
  const tell = (verb: string, token: unknown) => post(`/payments/${paymentId}/${verb}`, { redemptionToken: token })
  expect((await tell('redeemed', redemptionToken)).status).toBe(200)
  expect(outcomeOf(await redeem(sold, kept))).toEqual(notRedeemable)
  expect(outcomeOf(await tell('undelivered', 'of-somebody-else'))).toEqual([409, 'redemption-lost'])
  const taken = await tell('undelivered', redemptionToken)
  expect(taken.body).toMatchObject({ deliveredAt: null, redeemedAt: null })
  expect(outcomeOf(await tell('undelivered', redemptionToken))).toEqual([409, 'redemption-lost'])
  // A late report must not end what was released.
  expect(outcomeOf(await tell('redeemed', redemptionToken))).toEqual([409, 'redemption-lost'])
  const answers = await Promise.all([redeem(sold, kept), redeem(sold, {}, other), redeem(sold, kept, other)])
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 2 })
})

test('settling reports a requested redemption also for a payment that a signature alone redeems', async () => {
  const sold = withExtra(await x402(), {})
  const { paymentId, settlementToken, redeemable } = (await settled(sold)).body
  expect(outcomeOf(await redeem(sold, { signature: await signatureFor(payer, sold) }))).toEqual(inProgress)
  const again = await post('/payments/settle', { paymentId, settlementToken })
  expect([redeemable, again.body.redemptionRequested]).toEqual([false, true])
})

test('another organisation cannot redeem, report or finish', async () => {
  const stranger = await world.organisation()
  const sold = await x402()
  const { paymentId, settlementToken } = (await settled(sold)).body
  await redeem(sold)
  await endGracePeriod(world, paymentId)
  const ask = (path: string, body: unknown) => world.call(stranger.testKey, 'POST', path, body)
  expect(outcomeOf(await ask('/payments/redeem', sold))).toEqual(notRedeemable)
  expect((await ask('/payments/delivered', { paymentIds: [paymentId] })).body).toEqual({ delivered: 0 })
  const { redemptionToken } = (await redeem(sold)).body
  for (const verb of ['redeemed', 'undelivered'])
    expect(outcomeOf(await ask(`/payments/${paymentId}/${verb}`, { redemptionToken }))).toEqual([
      404,
      'payment-not-found',
    ])
  const own = { ...sold, rerun: false, paymentId, settlementToken }
  expect(outcomeOf(await ask('/payments/redeem', own))).toEqual(notRedeemable)
})

test('a lost answer of a redemption is repeated by its Idempotency-Key, and the witness covers it', async () => {
  const sold = await x402()
  const { paymentId } = (await settled(sold)).body
  await redeem(sold)
  await endGracePeriod(world, paymentId)
  const headers = { 'idempotency-key': 'lost-answer' }
  const ask = () =>
    request(world.base, { key: org.testKey, method: 'POST', path: '/payments/redeem', body: sold, headers })
  const before = await timesCovered(world.database.db)
  const [one, two] = [await ask(), await ask()]
  expect([one.status, two.body]).toEqual([200, one.body])
  expect(await timesCovered(world.database.db)).toBeGreaterThan(before)
})

test('the right to serve is stored sealed with its Idempotency-Key, and repeated for no other API key', async () => {
  const sold = await x402()
  const { paymentId } = (await settled(sold)).body
  await redeem(sold)
  await endGracePeriod(world, paymentId)
  const headers = { 'idempotency-key': 'sealed-right' }
  const ask = (key: string) =>
    request(world.base, { key, method: 'POST', path: '/payments/redeem', body: sold, headers })
  const granted = await ask(org.testKey)
  const token = String(granted.body.redemptionToken)
  const Row = z.object({ resourceId: z.string(), sealedBody: z.instanceof(Uint8Array), sealed: z.boolean() })
  const row = await world.database.db.one(
    Row,
    sql`select resource_id, sealed_body, sealed from idempotency_keys where key = 'sealed-right'`,
  )
  expect([row.sealed, row.resourceId.includes(token), Buffer.from(row.sealedBody).includes(token)]).toEqual([
    true,
    false,
    false,
  ])
  const made = await world.call(org.testKey, 'POST', '/organisations/current/api-keys', {
    name: 'other',
    environment: 'test',
  })
  expect(outcomeOf(await ask(String(made.body.key)))).toEqual([422, 'idempotency-key-reused'])
  expect((await ask(org.testKey)).body).toEqual(granted.body)
})
