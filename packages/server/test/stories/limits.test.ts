import { type DevChain, startChain } from '@purser/devnet'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import {
  type Answer,
  aPayer,
  aWorld,
  codeOf,
  countByStatus,
  type Org,
  type Payer,
  request,
  unreachableMain,
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: string }

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

const resource = 'https://api.example.com/weather'
const stub = 'stub_payment_accepted'

interface Requested {
  readonly key?: string
  readonly walletId?: unknown
  readonly price?: unknown
}

/** A live wallet, made by a process that has a node for its network; the process under test has none. */
async function aLiveWallet(): Promise<string> {
  const { base, server } = await world.another({ rpcUrls: unreachableMain, role: 'api' })
  const body = { address: privateKeyToAddress(generatePrivateKey()), chain: 'base', supportedTokens: ['USDC'] }
  const made = await request(base, { key: org.liveKey, method: 'POST', path: '/wallet-infra/byo-wallets', body })
  await server.stop()
  return String(made.body.id)
}

function challenge(
  { key = org.testKey, walletId = wallet.id, price = '0.01' }: Requested = {},
  base = world.base,
): Promise<Answer> {
  return request(base, { key, method: 'POST', path: '/payments/challenge', body: { walletId, resource, price } })
}

function verify(
  credential: string,
  { key = org.testKey, walletId = wallet.id, price = '0.01' }: Requested = {},
  base = world.base,
): Promise<Answer> {
  return request(base, {
    key,
    method: 'POST',
    path: '/payments/verify',
    body: { protocol: 'x402', credential, price, walletId, resource },
  })
}

const Counted = z.object({ payments: z.bigint(), events: z.bigint(), used: z.bigint() })

async function footprint(ofOrg: Org): Promise<[payments: number, events: number, used: number]> {
  const { payments, events, used } = await world.database.db.one(
    Counted,
    sql`select (select count(*) from payments where organisation_id = ${ofOrg.id}) as payments,
      (select count(*) from events where organisation_id = ${ofOrg.id} and type = 'payment.received') as events,
      (select coalesce(sum(used), 0)::bigint from usage_counters where organisation_id = ${ofOrg.id} and kind = 'payments') as used`,
  )
  return [Number(payments), Number(events), Number(used)]
}

async function codesOf(answers: Promise<Answer>[]): Promise<string[]> {
  return (await Promise.all(answers)).map((response) => `${response.status} ${codeOf(response)}`.trim())
}

test('a price that the token cannot express, or zero where a transfer must pay it, is 422', async () => {
  const credential = await payer.credential(await challenge())
  const before = await footprint(org)
  const ask = (price: unknown) =>
    codesOf([challenge({ price }), verify(credential, { price }), verify(stub, { price })])
  const asInvalid = ['0.0100001', '0.0100000', '0.0000000', '01', '1'.padEnd(60, '0').concat('.0000001')]
  for (const price of asInvalid) expect(await ask(price), price).toEqual(Array(3).fill('422 amount-invalid'))
  for (const price of ['0', '0.000000']) {
    const requested = { walletId: wallet.id, resource, price, acceptMPP: false }
    const byX402 = codesOf([
      world.call(org.testKey, 'POST', '/payments/challenge', requested),
      verify(credential, { price }),
    ])
    expect(await byX402, price).toEqual(Array(2).fill('422 amount-invalid'))
  }
  const unreadable = [
    '-0.01',
    '+0.01',
    '1e-2',
    '0x1',
    '.01',
    '1.',
    '1,00',
    ' 0.01',
    '0.01 ',
    '０.０１',
    'NaN',
    'Infinity',
    '',
    (2n ** 256n).toString(),
    0.01,
    null,
    true,
    ['0.01'],
    {},
  ]
  for (const price of unreadable)
    expect(await ask(price), JSON.stringify(price)).toEqual(Array(3).fill('422 validation-error'))
  expect(await footprint(org)).toEqual(before)
})

test('a payment below the minimum is 422, and the minimum itself is accepted', async () => {
  expect(await codesOf([challenge({ price: '0.000999' })])).toEqual(['422 amount-below-minimum'])
  expect((await challenge({ price: '0.000999' })).body.detail).toMatch(
    /^The price is below 0\.001 USD, .* on base-sepolia/,
  )
  const smallest = await challenge({ price: '0.001' })
  const credential = await payer.credential(smallest)
  expect(await codesOf([verify(credential, { price: '0.000999' })])).toEqual(['422 amount-below-minimum'])
  expect((await verify(credential, { price: '0.001' })).status).toBe(200)
})

test('a wallet that never existed, was deleted, or is another tenant’s or environment’s is the same 422', async () => {
  const other = await world.organisation()
  const deleted = await world.wallet(org)
  expect((await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${deleted.id}`)).status).toBe(204)
  const ids = [
    'byw_01h455vb4pex5vsknk084sn02q',
    'mwt_01h455vb4pex5vsknk084sn02q',
    'cad_01h455vb4pex5vsknk084sn02q',
    deleted.id,
    (await world.wallet(other)).id,
    await aLiveWallet(),
  ]
  const credential = await payer.credential(await challenge())
  const before = await footprint(org)
  const answers = await Promise.all(
    ids.flatMap((walletId) => [challenge({ walletId }), verify(credential, { walletId }), verify(stub, { walletId })]),
  )
  const bodies = answers.map(({ status, body: { requestId: _, ...body } }) => JSON.stringify([status, body]))
  expect(new Set(bodies).size).toBe(1)
  expect([answers[0]?.status, codeOf(await challenge({ walletId: deleted.id }))]).toEqual([422, 'wallet-not-found'])
  for (const walletId of ['byw_x', 'key_01h455vb4pex5vsknk084sn02q', 7, null])
    expect(await codesOf([verify(stub, { walletId })])).toEqual(['422 validation-error'])
  expect(await footprint(org)).toEqual(before)
})

test('of 150 payments sent at once a plan of 100 accepts 100, and the others get the plan’s limit error', async () => {
  const hobby = await world.organisation('hobby')
  const { id } = await world.wallet(hobby)
  const answers = await Promise.all(
    Array.from({ length: 150 }, () => verify(stub, { key: hobby.testKey, walletId: id })),
  )
  expect(countByStatus(answers)).toEqual({ 200: 100, 429: 50 })
  expect(await footprint(hobby)).toEqual([100, 100, 100])
  const { detail, requestId, ...refused } = answers.find(({ status }) => status === 429)?.body ?? {}
  expect(refused).toEqual({
    type: 'http://purser.test/problems/payment-limit-reached',
    title: 'Plan Limit Reached',
    status: 429,
    limit: 100,
    current: 100,
    upgradeUrl: 'http://dashboard.test/settings/billing',
  })
  expect([typeof detail, typeof requestId]).toEqual(['string', 'string'])

  const real = await challenge({ key: hobby.testKey, walletId: id })
  expect(await codesOf([verify(await payer.credential(real), { key: hobby.testKey, walletId: id })])).toEqual([
    '429 payment-limit-reached',
  ])
  expect(await footprint(hobby)).toEqual([100, 100, 100])
})

test('a numbered stub that bought before is a duplicate, also when the quota is used up', async () => {
  const hobby = await world.organisation('hobby')
  const { id } = await world.wallet(hobby)
  const requested = { key: hobby.testKey, walletId: id }
  expect((await verify('stub_payment_1', requested)).status).toBe(200)
  await Promise.all(Array.from({ length: 99 }, () => verify(stub, requested)))
  expect(await codesOf([verify('stub_payment_1', requested), verify('stub_payment_2', requested)])).toEqual([
    '409 duplicate-payment',
    '429 payment-limit-reached',
  ])
})

test('only payments whose gas fits the day’s remaining budget are accepted, also of ten at once on a plan with a limit', async () => {
  const thrifty = await world.another({ settleNanoUsdPerDayMax: 250_000n })
  for (const plan of ['pro', 'enterprise'] as const) {
    const spender = await world.organisation(plan)
    const requested = { key: spender.testKey, walletId: (await world.wallet(spender)).id }
    const credentials = await Promise.all(
      Array.from({ length: 10 }, async () => (await aPayer(chain)).credential(await challenge(requested))),
    )
    const answers: Answer[] = []
    if (plan === 'pro')
      answers.push(...(await Promise.all(credentials.map((credential) => verify(credential, requested, thrifty.base)))))
    else for (const credential of credentials) answers.push(await verify(credential, requested, thrifty.base))
    expect(countByStatus(answers)).toEqual({ 200: 2, 429: 8 })
    expect(new Set(answers.filter(({ status }) => status === 429).map(codeOf))).toEqual(
      new Set(['settlement-budget-exceeded']),
    )
    expect(await footprint(spender)).toEqual([2, 2, 2])
    expect((await verify(stub, requested, thrifty.base)).status).toBe(200)
  }
})

test('a live key refuses every stub, and a chain without a node is 503 in both environments, without a row', async () => {
  const live = { key: org.liveKey, walletId: await aLiveWallet() }
  const test = { key: org.testKey, walletId: (await world.wallet(org, { chain: 'ethereum' })).id }
  const before = await footprint(org)
  for (const credential of [stub, 'stub_payment_7', 'stub_payment_']) {
    const response = await verify(credential, live)
    expect([response.status, codeOf(response)]).toEqual([402, 'payment-verification-failed'])
  }
  for (const requested of [live, test]) {
    const credential = await payer.credential(await challenge(requested))
    expect(await codesOf([verify(credential, requested)])).toEqual(['503 chain-not-configured'])
  }
  expect(await footprint(org)).toEqual(before)
  expect((await verify(stub, test)).status).toBe(200)
})
