import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sandboxFlaggedAddress } from '../../src/partners/screening/index.ts'
import { type Sql, sql } from '../../src/platform/db/db.ts'
import {
  aPaymentBody,
  asV1,
  type Facilitator,
  type FacilitatorBody,
  facilitatorOf,
  type Purchase,
  soldAt,
  withRequirements,
} from '../facilitated.ts'
import { offerOf, payByEvmCharge } from '../mpp-agent.ts'
import { aPayer, aWorld, type CredentialChanges, codeOf, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: `0x${string}` }
let facilitator: Facilitator

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
  facilitator = facilitatorOf(world.base, org.testKey)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const used = 'invalid_exact_evm_nonce_already_used'

function pay(changes: Partial<Purchase> = {}): Promise<FacilitatorBody> {
  return aPaymentBody(world, org, { payer, wallet, ...changes })
}

test.each([
  ['2', (body: FacilitatorBody) => body, 'eip155:84532'],
  ['1', asV1, 'base-sepolia'],
])('a payment of version %s is verified, settled and logged like any other', async (_, written, network) => {
  const body = written(await pay())
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  expect((await facilitator.verify(body)).body).toEqual({ isValid: true, payer: payer.account.address })
  const settled = await facilitator.settle(body)
  expect([settled.status, settled.body]).toEqual([
    200,
    { success: true, transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/), network, payer: payer.account.address },
  ])
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
  const [log] = (await world.call(org.testKey, 'GET', '/payments/logs?limit=1')).list
  expect(log).toMatchObject({
    status: 'settled',
    txHash: settled.body.transaction,
    walletId: wallet.id,
    route: 'https://api.example.com/weather',
    amount: '0.01',
    payer: payer.account.address,
  })
})

test('a signature is found valid once, in however many concurrent requests', async () => {
  const body = await pay()
  const answers = await Promise.all(Array.from({ length: 200 }, () => facilitator.verify(body)))
  const valid = answers.filter((response) => response.body.isValid === true)
  expect(valid).toHaveLength(1)
  expect(
    new Set(answers.filter((response) => !valid.includes(response)).map((response) => JSON.stringify(response.body))),
  ).toEqual(new Set([JSON.stringify({ isValid: false, invalidReason: used, payer: payer.account.address })]))
})

test('five settlements at once of a verified payment are one transaction and one success, and a repeat is none', async () => {
  const body = await pay()
  await facilitator.verify(body)
  const answers = await Promise.all(Array.from({ length: 5 }, () => facilitator.settle(body)))
  answers.push(await facilitator.settle(body))
  const refused = answers.filter((response) => response.body.success !== true)
  expect(refused).toHaveLength(5)
  for (const { body: answered } of refused) expect(answered).toMatchObject({ success: false, errorReason: used })
})

test('a server that settles before it serves gets success once, however many copies come at once or later', async () => {
  const body = withRequirements(await pay(), { extra: { paymentFlow: 'upfront' } })
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const answers = await Promise.all(Array.from({ length: 5 }, () => facilitator.settle(body)))
  answers.push(await facilitator.settle(body))
  expect(answers.map((response) => response.body.success).filter(Boolean)).toHaveLength(1)
  for (const { body: reported } of answers.filter((response) => response.body.success !== true))
    expect(reported).toEqual({
      success: false,
      errorReason: used,
      transaction: '',
      network: 'eip155:84532',
      payer: payer.account.address,
    })
  expect((await facilitator.verify(body)).body).toMatchObject({ isValid: false, invalidReason: used })
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
})

test('a payment that was served after verify does not buy again where the server settles before it serves', async () => {
  const body = await pay()
  await facilitator.verify(body)
  expect((await facilitator.settle(body)).body.success).toBe(true)
  const upfront = withRequirements(body, { extra: { paymentFlow: 'upfront' } })
  expect((await facilitator.settle(upfront)).body).toMatchObject({ success: false, errorReason: used, transaction: '' })
})

test('success is not reported for other signed parts under the same nonce, which anybody can read on the chain', async () => {
  const body = await pay()
  await facilitator.verify(body)
  expect((await facilitator.settle(body)).body.success).toBe(true)
  const payload = Object(body.paymentPayload.payload)
  for (const forged of [
    { ...payload, signature: `0x${'11'.repeat(64)}1b` },
    { ...payload, authorization: { ...payload.authorization, validBefore: '99999999999' } },
  ]) {
    const response = await facilitator.settle({ ...body, paymentPayload: { ...body.paymentPayload, payload: forged } })
    expect(response.body).toMatchObject({ success: false, errorReason: used, transaction: '' })
  }
})

test('only the verified payment is settled: another amount or account in the requirements is refused, and nothing moves', async () => {
  const body = await pay()
  await facilitator.verify(body)
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  for (const change of [{ amount: '9999' }, { amount: '10001' }, { payTo: payer.account.address }]) {
    const response = await facilitator.settle(withRequirements(body, change))
    expect(response.body).toMatchObject({
      success: false,
      errorReason: 'invalid_payment_requirements',
      transaction: '',
    })
  }
  expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(before)
  expect((await facilitator.settle(body)).body.success).toBe(true)
})

test('another organisation, and the other environment, cannot settle a payment, learn of it, or find it valid again', async () => {
  const stranger = await world.organisation()
  const body = await pay()
  await facilitator.verify(body)
  for (const key of [stranger.testKey, stranger.liveKey, org.liveKey]) {
    const strange = facilitatorOf(world.base, key)
    const isTest = key === stranger.testKey
    expect((await strange.verify(body)).body).toMatchObject({
      isValid: false,
      invalidReason: isTest ? used : 'invalid_network',
    })
    expect((await strange.settle(body)).body).toMatchObject({
      success: false,
      errorReason: isTest ? used : 'invalid_network',
      transaction: '',
    })
  }
  expect((await world.call(stranger.testKey, 'GET', '/payments/logs')).list).toEqual([])
  expect((await facilitator.settle(body)).body.success).toBe(true)
  expect((await facilitatorOf(world.base, stranger.testKey).settle(body)).body).toMatchObject({
    success: false,
    errorReason: used,
  })
})

test('one signature sent as x402, as MPP and to the facilitator of two processes at once is one payment', async () => {
  const { base } = await world.another()
  const requested = { walletId: wallet.id, resource: soldAt, price: '0.01' }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', requested)
  const asMpp = await payByEvmCharge(payer.account, offerOf(challenge))
  const {
    type: _,
    signature,
    ...authorization
  } = JSON.parse(Buffer.from(asMpp.slice('Payment '.length), 'base64url').toString('utf8')).payload
  const body = await pay()
  const paymentPayload = { ...body.paymentPayload, payload: { signature, authorization } }
  const shown = { ...body, paymentPayload }
  const credential = Buffer.from(JSON.stringify(paymentPayload)).toString('base64')

  const [asOurs, ofMpp, ...facilitated] = await Promise.all([
    world.call(org.testKey, 'POST', '/payments/verify', { ...requested, protocol: 'x402', credential }),
    world.call(org.testKey, 'POST', '/payments/verify', { ...requested, protocol: 'mpp', credential: asMpp }),
    facilitator.verify(shown),
    facilitatorOf(base, org.testKey).verify(shown),
  ])
  const isFacilitated = facilitated.some((response) => response.body.isValid === true)
  const bought = [
    asOurs?.status === 200,
    ofMpp?.status === 200,
    ...facilitated.map((response) => response.body.isValid === true),
  ]
  expect(bought.filter(Boolean)).toHaveLength(1)
  expect((await facilitator.settle(shown)).body.success).toBe(isFacilitated)
})

test('a payment to an account that is no wallet here is accepted, and its log names no wallet', async () => {
  const stranger = await aPayer()
  const body = await pay({
    changes: {
      sign: { to: stranger.account.address },
      after: ({ accepted }) => Object.assign(accepted, { payTo: stranger.account.address }),
    },
  })
  expect((await facilitator.verify(body)).body.isValid).toBe(true)
  const [log] = (await world.call(org.testKey, 'GET', '/payments/logs?limit=1')).list
  expect(log).toMatchObject({ walletId: null, status: 'verified', chain: 'base-sepolia' })
})

test('a wallet is found by its address in any letter case', async () => {
  const after: CredentialChanges['after'] = ({ accepted, payload }) => {
    accepted.payTo = wallet.address.toLowerCase()
    payload.authorization.to = wallet.address.toLowerCase()
  }
  const body = await pay({ changes: { after } })
  expect((await facilitator.verify(body)).body.isValid).toBe(true)
  expect((await facilitator.settle(body)).body.success).toBe(true)
  const [log] = (await world.call(org.testKey, 'GET', '/payments/logs?limit=1')).list
  expect(log).toMatchObject({ walletId: wallet.id, status: 'settled' })
})

test('a payment below the minimum, and one to a flagged wallet, is refused with a message and not recorded', async () => {
  const cheap = await pay({
    changes: { sign: { value: '999' }, after: ({ accepted }) => Object.assign(accepted, { amount: '999' }) },
  })
  const flagged = await world.wallet(org)
  const toFlagged = await pay({ wallet: flagged })
  const amlStatus = async () =>
    (await world.call(org.testKey, 'GET', `/wallet-infra/byo-wallets/${flagged.id}`)).body.amlStatus
  // Its first screening is over, so that nothing overwrites the flag.
  await expect.poll(amlStatus).toBe('clear')
  await world.database.db.run(sql`update byo_wallets set aml_status = 'flagged' where id = ${flagged.id}`)
  for (const body of [cheap, toFlagged]) {
    expect((await facilitator.verify(body)).body).toEqual({
      isValid: false,
      invalidReason: 'invalid_payment_requirements',
      invalidMessage: expect.any(String),
      payer: payer.account.address,
    })
    expect((await facilitator.settle(body)).body).toMatchObject({
      success: false,
      errorReason: 'invalid_payment_requirements',
    })
  }
})

test('an exhausted monthly quota is 429 and not an invalid payment', async () => {
  const small = await world.organisation('hobby')
  const body = await pay()
  const month = world.server.deps.clock.now().toISOString().slice(0, 7)
  await world.database.db.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used) values (${small.id}, 'test', 'payments', ${month}, 1000000)
    on conflict (organisation_id, environment, kind, period) do update set used = excluded.used`)
  const response = await facilitatorOf(world.base, small.testKey).verify(body)
  expect([response.status, codeOf(response)]).toEqual([429, 'payment-limit-reached'])
  expect((await facilitator.verify(body)).body.isValid).toBe(true)
})

test('a malformed payment is a negative answer, never a server error', async () => {
  const good = await pay()
  const cases = [
    [{ ...good, paymentPayload: {} }, 'invalid_x402_version'],
    [{ ...good, x402Version: 1 }, 'invalid_x402_version'],
    [{ ...good, paymentPayload: { x402Version: 2 } }, 'invalid_payload'],
    [{ ...good, paymentRequirements: {} }, 'invalid_payment_requirements'],
    [withRequirements(good, { network: 'eip155:1' }), 'invalid_payment_requirements'],
    [withRequirements(good, { network: 'eip155:999' }), 'invalid_network'],
    [withRequirements(good, { network: 'solana:x' }), 'invalid_network'],
    [withRequirements(good, { scheme: 'batch-settlement' }), 'invalid_exact_evm_scheme'],
  ] as const
  for (const [body, reason] of cases) {
    const verified = await facilitator.verify(body)
    expect([verified.status, verified.body]).toMatchObject([200, { isValid: false, invalidReason: reason }])
    const settled = await facilitator.settle(body)
    expect([settled.status, settled.body]).toMatchObject([
      200,
      { success: false, errorReason: reason, transaction: '' },
    ])
  }
})

test('a repeat with the same Idempotency-Key gets the same answer, also that a signature was valid', async () => {
  const body = await pay()
  const first = await facilitator.verify(body, { 'idempotency-key': 'verify-once' })
  const again = await facilitator.verify(body, { 'idempotency-key': 'verify-once' })
  expect([first.body.isValid, again.body, again.headers.get('idempotency-replayed')]).toEqual([
    true,
    first.body,
    'true',
  ])
  const settled = await facilitator.settle(body, { 'idempotency-key': 'settle-once' })
  expect((await facilitator.settle(body, { 'idempotency-key': 'settle-once' })).body).toEqual(settled.body)
})

test('a repeat of an unanswered verification does not find a payment valid once it has ended, expired, is refunded or has a sanctioned payer', async () => {
  const pays = async (key: string) => {
    const body = await pay()
    await facilitator.verify(body, { 'idempotency-key': key })
    // The row that a process leaves when it ends after recording and before responding.
    await world.database.db.run(sql`
      update idempotency_keys set state = 'running', status = null, headers = null, sealed_body = null where key = ${key}`)
    const change = (set: Sql) =>
      world.database.db.run(
        sql`update payments set ${set} where id = (select resource_id from idempotency_keys where key = ${key})`,
      )
    return { repeat: async () => (await facilitator.verify(body, { 'idempotency-key': key })).body, change }
  }
  const [voided, expired, sanctioned] = [await pays('to-void'), await pays('to-expire'), await pays('to-sanction')]
  const refunded = await pays('to-refund')
  const { account } = payer
  expect(await voided.repeat()).toEqual({ isValid: true, payer: account.address })
  await voided.change(sql`status = 'voided', failure_reason = 'settlement_withdrawn'`)
  await expired.change(sql`valid_before = now() - interval '1 second'`)
  await sanctioned.change(sql`payer = ${sandboxFlaggedAddress}`)
  await refunded.change(sql`status = 'settled', settled_at = now(), refunded_raw = 1`)
  const refused = (invalidReason: string, address: string = account.address) =>
    expect.objectContaining({ isValid: false, invalidReason, payer: address })
  expect([await voided.repeat(), await expired.repeat(), await refunded.repeat(), await sanctioned.repeat()]).toEqual([
    refused('settlement_withdrawn'),
    refused('invalid_exact_evm_payload_authorization_valid_before'),
    refused(used),
    refused('payer_sanctioned', sandboxFlaggedAddress),
  ])
})

test('payTo cannot be a token or an address of this service', async () => {
  const { settlerAddress } = world.server
  for (const payTo of [chain.tokens.USDC ?? '', settlerAddress]) {
    const body = await pay({ changes: { sign: { to: payTo as `0x${string}` } } })
    const accepted = { ...Object(body.paymentPayload.accepted), payTo }
    const requested = { ...withRequirements(body, { payTo }), paymentPayload: { ...body.paymentPayload, accepted } }
    const invalid = { isValid: false, invalidReason: 'invalid_payment_requirements' }
    expect((await facilitator.verify(requested)).body).toMatchObject({
      ...invalid,
      invalidMessage: 'payTo is a token or an address of this service',
    })
    expect((await facilitator.settle(requested)).body).toMatchObject({ success: false, transaction: '' })
  }
})

test('a resource whose route is too long for an index is sold without a route, and fails no other payment of its batch', async () => {
  const wide = Array.from({ length: 1_500 }, (_, at) => String.fromCodePoint(0x4e00 + ((at * 7_919) % 20_000))).join('')
  const bodies = await Promise.all([pay(), pay(), pay()])
  const urls = [`https://a.example/${wide}`, soldAt, `https://${wide}.example/`]
  const named = bodies.map((body, at) => ({
    ...body,
    paymentPayload: { ...body.paymentPayload, resource: { url: urls[at] } },
  }))
  const responses = await Promise.all(named.map((body) => facilitator.verify(body)))
  expect(responses.map(({ status, body }) => [status, body.isValid])).toEqual(Array(3).fill([200, true]))
  const logs = (await world.call(org.testKey, 'GET', '/payments/logs?limit=3')).list
  expect(logs.map(({ route }) => route).toSorted()).toEqual(['https://api.example.com/weather', null, null])
})
