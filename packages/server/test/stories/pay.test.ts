import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { spend } from '../spend.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  codeOf,
  countByStatus,
  type Org,
  type Payer,
  unreachableMain,
  type V2Payload,
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: `0x${string}` }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], rpcUrls: unreachableMain })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world.stop()
  await chain.stop()
})

const resource = 'https://api.example.com/weather?city=Lima'

function challenge(price = '0.01'): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/challenge', { walletId: wallet.id, resource, price })
}

function verify(credential: string, price = '0.01', headers: Record<string, string> = {}): Promise<Answer> {
  const body = { protocol: 'x402', credential, price, currency: 'USD', walletId: wallet.id, resource, method: 'GET' }
  return world.call(org.testKey, 'POST', '/payments/verify', body, headers)
}

function settle(verified: Answer, headers: Record<string, string> = {}): Promise<Answer> {
  const { paymentId, settlementToken } = verified.body
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken }, headers)
}

test('a signed payment is verified, settled on chain, logged, and refused when sent again', async () => {
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const credential = await payer.credential(await challenge())

  const verified = await verify(credential)
  expect([
    verified.status,
    verified.body.valid,
    verified.body.amount,
    verified.body.coin,
    verified.body.settlementPending,
  ]).toEqual([200, true, '0.01', 'USDC', true])
  expect(verified.body.payer).toBe(payer.account.address)

  const settled = await settle(verified)
  expect(settled.status).toBe(200)
  expect(settled.body.txHash).toMatch(/^0x[0-9a-f]{64}$/)
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)

  const [log] = (await world.call(org.testKey, 'GET', '/payments/logs?limit=1')).list
  expect(log).toMatchObject({
    paymentId: verified.body.paymentId,
    status: 'settled',
    txHash: settled.body.txHash,
    route: 'https://api.example.com/weather',
    method: 'GET',
  })
  expect([(await verify(credential)).status, codeOf(await verify(credential))]).toEqual([409, 'duplicate-payment'])
  expect(await settle(verified)).toMatchObject({ status: 200, body: settled.body })
})

test('a thousand copies of one payment sent at once buy one thing', async () => {
  const credential = await payer.credential(await challenge())
  const answers = await Promise.all(Array.from({ length: 1_000 }, () => verify(credential)))
  expect(countByStatus(answers)).toEqual({ 200: 1, 409: 999 })
})

test('five settlements of one payment at once are one transaction and five equal answers', async () => {
  const verified = await verify(await payer.credential(await challenge()))
  const answers = await Promise.all(Array.from({ length: 5 }, () => settle(verified)))
  expect(new Set(answers.map((response) => JSON.stringify([response.status, response.body]))).size).toBe(1)
  expect(answers[0]?.status).toBe(200)
})

test('many payments settled at once share transactions, and each is on chain once', async () => {
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const credentials = await Promise.all(Array.from({ length: 60 }, async () => payer.credential(await challenge())))
  const verified = await Promise.all(credentials.map((credential) => verify(credential)))
  const settled = await Promise.all(verified.map((response) => settle(response)))
  expect(countByStatus(settled)).toEqual({ 200: 60 })
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(600_000n)
  expect(new Set(settled.map((response) => response.body.txHash)).size).toBeLessThan(60)
})

test('a repeat of a settlement with its Idempotency-Key gets the same answer, and an unknown token is refused', async () => {
  const verified = await verify(await payer.credential(await challenge()), '0.01', { 'idempotency-key': 'verify-1' })
  const first = await settle(verified, { 'idempotency-key': 'settle-1' })
  const again = await settle(verified, { 'idempotency-key': 'settle-1' })
  expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 200, 'true'])
  const forged = await world.call(org.testKey, 'POST', '/payments/settle', {
    paymentId: verified.body.paymentId,
    settlementToken: 'stl_forged',
  })
  expect([forged.status, codeOf(forged)]).toEqual([422, 'settlement-token-invalid'])
})

test('one bad payment in a batch fails alone', async () => {
  const poor = await aPayer(chain, 20_000n)
  const both = await Promise.all([0, 1].map(async () => verify(await poor.credential(await challenge()))))
  const good = await verify(await payer.credential(await challenge()))
  await spend(chain, poor.account.address, 10_000n)
  expect(countByStatus([...both, good])).toEqual({ 200: 3 })
  const [first, second, third] = await Promise.all([...both, good].map((verified) => settle(verified)))
  const statuses = [first?.status, second?.status].sort()
  expect(statuses).toEqual([200, 409])
  expect(third?.status).toBe(200)
  const failed = [first, second].find((response) => response?.status === 409)
  expect(failed?.body.reason).toBe('invalid_exact_evm_insufficient_balance')
})

test('stub payments pay in test mode any number of times, numbered ones once, and never live', async () => {
  expect((await verify('stub_payment_accepted')).status).toBe(200)
  expect(await verify('stub_payment_accepted')).toMatchObject({
    status: 200,
    body: { settlementPending: false, txHash: null, payer: null },
  })
  expect((await verify('stub_payment_7')).status).toBe(200)
  expect(codeOf(await verify('stub_payment_7'))).toBe('duplicate-payment')
  const live = await world.wallet(org, { chain: 'base', key: org.liveKey })
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: live.id, resource }
  expect((await world.call(org.liveKey, 'POST', '/payments/verify', body)).status).toBe(402)
})

test('a settlement that was pending is answered with its current status when its Idempotency-Key comes again', async () => {
  const verified = await verify(await payer.credential(await challenge()))
  const headers = { 'idempotency-key': 'settle-later', prefer: 'respond-async' }
  const first = await settle(verified, headers)
  expect(first.status).toBe(202)
  await expect.poll(async () => (await settle(verified, headers)).status).toBe(200)
})

test('a repeat of an unanswered verification does not get success once the payment has failed', async () => {
  const poor = await aPayer(chain, 20_000n)
  const headers = { 'idempotency-key': 'verify-then-die' }
  const [credential, other] = [await poor.credential(await challenge()), await poor.credential(await challenge())]
  const verified = await verify(credential, '0.01', headers)
  // The row that a process leaves when it dies after recording and before answering.
  await world.database.db.run(sql`
    update idempotency_keys set state = 'running', status = null, headers = null, sealed_body = null where key = 'verify-then-die'`)
  expect(await verify(credential, '0.01', headers)).toMatchObject({ status: 200, body: { settlementPending: true } })
  expect((await settle(await verify(other))).status).toBe(200)
  await spend(chain, poor.account.address, 10_000n)
  expect((await settle(verified)).status).toBe(409)
  const again = await verify(credential, '0.01', headers)
  expect([again.status, codeOf(again), again.body.reason]).toEqual([
    402,
    'payment-verification-failed',
    'invalid_exact_evm_insufficient_balance',
  ])
})

test('a payment identifier belongs to its payer: a stranger who has used it first takes it from nobody', async () => {
  const after = (payload: V2Payload): void => {
    Object.assign(payload, {
      extensions: { 'payment-identifier': { info: { required: false, id: 'order-2026-11-29-0001' } } },
    })
  }
  const stranger = await aPayer(chain)
  const answers: string[] = []
  for (const one of [stranger, payer, stranger]) {
    const response = await verify(await one.credential(await challenge(), { after }))
    answers.push(`${response.status} ${codeOf(response)}`)
  }
  expect(answers).toEqual(['200 ', '200 ', '409 payment-identifier-conflict'])
})

test('of two payments sent at once under one id one is accepted, and the other gets a conflict', async () => {
  const after = (payload: V2Payload): void => {
    Object.assign(payload, {
      extensions: { 'payment-identifier': { info: { required: false, id: `name_${'a'.repeat(20)}` } } },
    })
  }
  const credentials = [
    await payer.credential(await challenge(), { after }),
    await payer.credential(await challenge(), { after }),
  ]
  const answers = await Promise.all(credentials.map((credential) => verify(credential)))
  expect(answers.map((response) => `${response.status} ${codeOf(response)}`).sort()).toEqual([
    '200 ',
    '409 payment-identifier-conflict',
  ])
})
