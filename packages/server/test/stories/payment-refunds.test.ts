import { fundNative, fundToken, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { asV1, type FacilitatorBody } from '../facilitated.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  codeOf,
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
let master: { readonly id: string; readonly address: Address }

const masters = '/wallet-infra/master-wallets'
const resource = 'https://api.example.com/weather'
const patient = { timeout: 60_000 }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  other = (await world.another({ role: 'api' })).base
  org = await world.organisation()
  payer = await aPayer(chain)
  master = await aMaster()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

async function aMaster(rawUsdc = 10_000_000n, of = org, on = 'base') {
  const { body } = await world.call(of.testKey, 'POST', masters, { chain: on, supportedTokens: ['USDC'] })
  const made = { id: String(body.id), address: body.address as Address }
  await fundNative(chain, made.address, 10n ** 18n)
  if (rawUsdc > 0n) await fundToken(chain, 'USDC', made.address, rawUsdc)
  return made
}

interface Sold {
  readonly paymentId: string
  readonly credential: string
  readonly settlementToken: unknown
}

/** A settled payment of 0.01 USDC; delivered, unless its caller reports delivery. */
async function paid(more: object = {}, change: (credential: string) => string = (same) => same): Promise<Sold> {
  const terms = { walletId: master.id, price: '0.01', resource }
  const offer = await world.call(org.testKey, 'POST', '/payments/challenge', terms)
  const credential = change(await payer.credential(offer))
  const shown = { ...terms, protocol: 'x402', credential, method: 'GET', ...more }
  const verified = await world.call(org.testKey, 'POST', '/payments/verify', shown)
  expect([verified.status, codeOf(verified)]).toEqual([200, ''])
  const { settlementToken } = verified.body
  const paymentId = String(verified.body.paymentId)
  const settled = await world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
  expect(settled.status).toBe(200)
  return { paymentId, credential, settlementToken }
}

function refund(paymentId: string, body: object = {}, base = world.base, headers = {}): Promise<Answer> {
  return request(base, { key: org.testKey, method: 'POST', path: `/payments/${paymentId}/refund`, body, headers })
}

async function refunded(paymentId: string): Promise<unknown> {
  return (await world.call(org.testKey, 'GET', `/payments/${paymentId}`)).body.refundedAmount
}

const outcomeOf = (response: Answer) => [response.status, codeOf(response)]
const Event = z.object({ payload: z.record(z.string(), z.unknown()) })

function eventsOf(paymentId: string) {
  return world.database.db.many(
    Event,
    sql`select payload from events where type = 'payment.refunded' and payload ->> 'paymentId' = ${paymentId} order by id`,
  )
}

async function statusOf({ body }: Answer): Promise<unknown> {
  const Row = z.object({ status: z.string() })
  return (await world.database.db.one(Row, sql`select status from payment_refunds where id = ${String(body.id)}`))
    .status
}

test('a settled payment is refunded to its payer by a transfer, once, and an event reports it', async () => {
  const { paymentId } = await paid()
  const before = await tokenBalance(chain, 'USDC', payer.account.address)
  const headers = { 'idempotency-key': 'refund-1' }
  const made = await refund(paymentId, { reason: 'Sold out' }, world.base, headers)
  expect(made.status).toBe(201)
  expect(made.body).toMatchObject({
    paymentId,
    fromWalletId: master.id,
    toAddress: payer.account.address,
    amount: '0.01',
    token: 'USDC',
    chain: 'base',
    reason: 'Sold out',
    completedAt: null,
  })
  expect((await refund(paymentId, { reason: 'Sold out' }, other, headers)).body.id).toBe(made.body.id)
  expect(await refunded(paymentId)).toBe('0.01')
  await expect.poll(() => statusOf(made), patient).toBe('completed')
  expect((await tokenBalance(chain, 'USDC', payer.account.address)) - before).toBe(10_000n)
  const { transferId, id: refundId } = made.body
  const transfer = (await world.call(org.testKey, 'GET', `/wallet-infra/transfers/${transferId}`)).body
  expect(transfer).toMatchObject({ status: 'confirmed', metadata: { refundOf: paymentId } })
  const common = {
    paymentId,
    refundId,
    transferId,
    amount: '0.01',
    totalRefunded: '0.01',
    token: 'USDC',
    chain: 'base',
  }
  const payload = { ...common, payer: payer.account.address, reason: 'Sold out', txHash: transfer.txHash }
  expect(await eventsOf(paymentId)).toMatchObject([{ payload }])
  expect(outcomeOf(await refund(paymentId))).toEqual([422, 'refund-exceeds-payment'])
  const policy = sql`select 1 from policy_reservations where subject_id = ${String(transferId)} and released_at is null`
  expect(await world.database.db.run(policy)).toBe(1)
})

test('a refund whose process died before it answered is returned to the repeat, and paid once', async () => {
  const { paymentId } = await paid()
  const before = await tokenBalance(chain, 'USDC', payer.account.address)
  const headers = { 'idempotency-key': 'refund-lost' }
  const made = await refund(paymentId, {}, world.base, headers)
  await world.database.db.run(
    sql`update idempotency_keys set state = 'running', status = null, headers = null, sealed_body = null where key = 'refund-lost'`,
  )
  const again = await refund(paymentId, {}, other, headers)
  expect([again.status, again.body.id, again.body.transferId]).toEqual([201, made.body.id, made.body.transferId])
  await expect.poll(() => statusOf(made), patient).toBe('completed')
  expect((await tokenBalance(chain, 'USDC', payer.account.address)) - before).toBe(10_000n)
})

test('of twenty partial refunds at once, at two processes, at most the settled amount is paid', async () => {
  const { paymentId } = await paid()
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, at) => refund(paymentId, { amount: '0.004' }, at % 2 === 0 ? world.base : other)),
  )
  const codes = answers.map((response) => `${response.status} ${codeOf(response)}`).toSorted()
  expect(codes).toEqual(['201 ', '201 ', ...Array.from({ length: 18 }, () => '422 refund-exceeds-payment')])
  expect(await refunded(paymentId)).toBe('0.008')
  const tooMuch = await refund(paymentId, { amount: '0.003' })
  expect([outcomeOf(tooMuch), tooMuch.body.refundable]).toEqual([[422, 'refund-exceeds-payment'], '0.002'])
  const rest = await refund(paymentId)
  expect([rest.status, rest.body.amount]).toEqual([201, '0.002'])
  await expect.poll(async () => (await eventsOf(paymentId)).length, patient).toBe(3)
})

test.each(['0', '0.0000001', '-1', '1e-2', ' 0.01', 'all'])('an amount of %j is invalid', async (amount) => {
  const { paymentId } = await paid()
  expect(outcomeOf(await refund(paymentId, { amount }))).toEqual([422, 'validation-error'])
  expect(await refunded(paymentId)).toBe('0')
})

async function pass(paymentId: string): Promise<void> {
  await world.database.db.run(
    sql`update payments set redemption_until = now() - interval '1 second' where id = ${paymentId}`,
  )
}

test('an answer that may still be delivered delays a refund, and a refunded payment is never served', async () => {
  const sold = await paid({ reportsDelivery: true })
  const { paymentId, credential } = sold
  const first = await refund(paymentId)
  expect([outcomeOf(first), first.headers.get('retry-after')]).toEqual([[409, 'delivery-in-progress'], '30'])
  expect(outcomeOf(await refund(paymentId, {}, other))).toEqual([409, 'delivery-in-progress'])
  const settle = { paymentId, settlementToken: sold.settlementToken }
  expect((await world.call(org.testKey, 'POST', '/payments/settle', settle)).body.redemptionRequested).toBe(true)
  await pass(paymentId)
  const redeem = () =>
    world.call(org.testKey, 'POST', '/payments/redeem', { protocol: 'x402', credential, method: 'GET', resource })
  const granted = await redeem()
  expect(granted.status).toBe(200)
  expect(outcomeOf(await refund(paymentId))).toEqual([409, 'delivery-in-progress'])
  await pass(paymentId)
  expect((await refund(paymentId, { amount: '0.001' })).status).toBe(201)
  expect(outcomeOf(await redeem())).toEqual([409, 'payment-not-redeemable'])
  const { redemptionToken } = granted.body
  const late = await world.call(org.testKey, 'POST', `/payments/${paymentId}/redeemed`, { redemptionToken })
  expect(outcomeOf(late)).toEqual([409, 'redemption-lost'])
})

test('a refund and a redemption that must wait are done by their own repeats, with the same Idempotency-Key', async () => {
  const [owed, sold] = [await paid({ reportsDelivery: true }), await paid({ reportsDelivery: true })]
  const refunding = () => refund(owed.paymentId, {}, world.base, { 'idempotency-key': 'refund when it can be' })
  const body = { protocol: 'x402', credential: sold.credential, method: 'GET', resource }
  const redeeming = () =>
    world.call(org.testKey, 'POST', '/payments/redeem', body, { 'idempotency-key': 'redeem then' })
  for (const repeat of [refunding, redeeming]) {
    const first = await repeat()
    expect([outcomeOf(first), first.headers.get('retry-after')]).toEqual([[409, 'delivery-in-progress'], '30'])
  }
  await pass(owed.paymentId)
  await pass(sold.paymentId)
  expect([(await refunding()).status, (await redeeming()).status]).toEqual([201, 200])
  const again = await refunding()
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
})

test('a refund of a payment that is being settled is done by its own repeat once it is settled', async () => {
  const { paymentId } = await paid()
  const set = (status: string) =>
    world.database.db.run(sql`update payments set status = ${status} where id = ${paymentId}`)
  const refunding = () => refund(paymentId, {}, world.base, { 'idempotency-key': 'refund when settled' })
  await set('settling')
  const first = await refunding()
  await set('settled')
  expect([outcomeOf(first), first.headers.get('retry-after')]).toEqual([[409, 'payment-not-refundable'], '5'])
  expect((await refunding()).status).toBe(201)
})

test('of a concurrent refund and redemption one succeeds', async () => {
  for (let round = 0; round < 5; round++) {
    const { paymentId, credential } = await paid({ reportsDelivery: true })
    await pass(paymentId)
    const redeem = { protocol: 'x402', credential, method: 'GET', resource }
    const answers = await Promise.all([
      refund(paymentId, {}, other),
      world.call(org.testKey, 'POST', '/payments/redeem', redeem),
    ])
    expect(answers.filter(({ status }) => status < 300)).toHaveLength(1)
  }
})

test('a delivered payment can be refunded, and so can a payment of version 1', async () => {
  const delivered = await paid({ reportsDelivery: true })
  await world.call(org.testKey, 'POST', '/payments/delivered', { paymentIds: [delivered.paymentId] })
  expect((await refund(delivered.paymentId)).status).toBe(201)
  const asVersion1 = (credential: string) => {
    const paymentPayload: V2Payload = JSON.parse(Buffer.from(credential, 'base64').toString('utf8'))
    const v1 = asV1({ x402Version: 2, paymentPayload, paymentRequirements: {} } as unknown as FacilitatorBody)
    return Buffer.from(JSON.stringify(v1.paymentPayload)).toString('base64')
  }
  expect((await refund((await paid({}, asVersion1)).paymentId)).status).toBe(201)
})

test('a session ends when its payment is refunded in full, lives on with a part of it, and no refunded payment opens one', async () => {
  const { paymentId } = await paid()
  const open = () => world.call(org.testKey, 'POST', '/sessions', { paymentId })
  const opened = await open()
  expect(opened.status).toBe(201)
  const { sessionToken } = opened.body
  const shown = { sessionToken, host: 'api.example.com', walletId: master.id }
  const verified = async () => (await world.call(org.testKey, 'POST', '/sessions/verify', shown)).status
  expect((await refund(paymentId, { amount: '0.004' })).status).toBe(201)
  expect(await verified()).toBe(200)
  expect((await refund(paymentId)).status).toBe(201)
  expect(await verified()).toBe(402)
  expect(outcomeOf(await open())).toEqual([409, 'payment-refunded'])
  const unopened = await paid()
  expect((await refund(unopened.paymentId)).status).toBe(201)
  expect(outcomeOf(await world.call(org.testKey, 'POST', '/sessions', { paymentId: unopened.paymentId }))).toEqual([
    409,
    'payment-refunded',
  ])
})

test('without a managed wallet on the payment’s network a refund is refused', async () => {
  const byo = await world.wallet(org)
  const { paymentId } = await paid({ walletId: master.id })
  const foreign = await aMaster(0n, await world.organisation())
  const elsewhere = await world.call(org.testKey, 'POST', masters, { chain: 'optimism', supportedTokens: ['USDC'] })
  const missing = master.id.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
  for (const fromWalletId of [byo.id, foreign.id, String(elsewhere.body.id), missing])
    expect(outcomeOf(await refund(paymentId, { fromWalletId }))).toEqual([422, 'managed-wallet-needed'])
  await world.database.db.run(sql`update payments set wallet_id = ${byo.id} where id = ${paymentId}`)
  expect(outcomeOf(await refund(paymentId))).toEqual([422, 'managed-wallet-needed'])
  expect((await refund(paymentId, { fromWalletId: master.id })).status).toBe(201)
})

test('a payment that moved no money is not refundable', async () => {
  const stub = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: master.id, resource }
  const { paymentId } = (await world.call(org.testKey, 'POST', '/payments/verify', stub)).body
  expect(outcomeOf(await refund(String(paymentId)))).toEqual([409, 'payment-not-refundable'])
  const offer = await world.call(org.testKey, 'POST', '/payments/challenge', {
    walletId: master.id,
    price: '0.01',
    resource,
  })
  const shown = {
    protocol: 'x402',
    price: '0.01',
    walletId: master.id,
    resource,
    credential: await payer.credential(offer),
  }
  const verified = await world.call(org.testKey, 'POST', '/payments/verify', shown)
  expect(outcomeOf(await refund(String(verified.body.paymentId)))).toEqual([409, 'payment-not-refundable'])
})

test('the refunds of a payment are listed, newest first and in pages, with their transfers', async () => {
  const { paymentId } = await paid()
  const list = (query = '', key = org.testKey) => world.call(key, 'GET', `/payments/${paymentId}/refunds${query}`)
  expect((await list()).list).toEqual([])
  const first = await refund(paymentId, { amount: '0.004', reason: 'Late' })
  const second = await refund(paymentId, { amount: '0.006' })
  await expect.poll(() => statusOf(second), patient).toBe('completed')
  await expect.poll(() => statusOf(first), patient).toBe('completed')
  const listed = (await list()).list
  expect(listed.map(({ id, amount, reason, status }) => ({ id, amount, reason, status }))).toEqual([
    { id: second.body.id, amount: '0.006', reason: null, status: 'completed' },
    { id: first.body.id, amount: '0.004', reason: 'Late', status: 'completed' },
  ])
  for (const { transferId, txHash } of listed)
    expect(txHash).toBe((await world.call(org.testKey, 'GET', `/wallet-infra/transfers/${transferId}`)).body.txHash)
  const page = await list('?limit=1')
  expect(page.list.map(({ id }) => id)).toEqual([second.body.id])
  const stranger = await world.organisation()
  expect(outcomeOf(await list('', stranger.testKey))).toEqual([404, 'payment-not-found'])
})

test('another organisation’s payment is not found, like one that never existed', async () => {
  const { paymentId } = await paid()
  const stranger = await world.organisation()
  const answers = [paymentId, paymentId.replace(/.$/, (last) => (last === '0' ? '1' : '0'))].map((id) =>
    world.call(stranger.testKey, 'POST', `/payments/${id}/refund`, {}),
  )
  for (const response of await Promise.all(answers)) expect(outcomeOf(response)).toEqual([404, 'payment-not-found'])
  expect(await refunded(paymentId)).toBe('0')
})

test('a refund that the policy or the balance does not allow leaves the payment unchanged', async () => {
  const { paymentId } = await paid()
  const bound = await aMaster()
  const policy = { operations: { transfer: { recipients: [] } }, tokens: {} }
  const set = await world.call(org.testKey, 'PUT', `${masters}/${bound.id}/policy`, policy)
  expect(set.status).toBe(200)
  expect(outcomeOf(await refund(paymentId, { fromWalletId: bound.id }))).toEqual([403, 'policy-denied'])
  const poor = await aMaster(9_999n)
  expect(outcomeOf(await refund(paymentId, { fromWalletId: poor.id }))).toEqual([422, 'insufficient-balance'])
  expect(await refunded(paymentId)).toBe('0')
  expect((await refund(paymentId)).status).toBe(201)
})

test.each([
  ['reverted', '0', 201],
  ['not-received', '0.01', 422],
])('when its transfer fails as %s the payment counts %s as refunded', async (reason, counted, again) => {
  const { paymentId } = await paid()
  const made = await refund(paymentId)
  await expect.poll(() => statusOf(made), patient).toBe('completed')
  // As if the chain had refused the transfer instead of executing it.
  const { id, transferId } = made.body
  const failed = sql`
    with transfer as (update transfers set status = 'failed', reason = ${reason} where id = ${String(transferId)})
    update payment_refunds set status = 'pending', ended_at = null where id = ${String(id)}`
  await world.database.db.run(failed)
  await expect.poll(() => statusOf(made), patient).toBe('failed')
  expect([await refunded(paymentId), (await refund(paymentId)).status]).toEqual([counted, again])
})
