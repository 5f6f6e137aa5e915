import { type DevChain, startChain, startFaultProxy, tokenBalance } from '@purser/devnet'
import { createTestClient, http } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aPaymentBody, type FacilitatorBody, facilitatorOf, type Purchase } from '../facilitated.ts'
import { aPayer, aWorld, codeOf, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: `0x${string}` }
/** What the servers' clock shows beside the machine's; time stands where a test puts it. */
let aheadMs = 0
const cleanUps: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  const clock = { now: () => new Date(Date.now() + aheadMs) }
  world = await aWorld({ chains: [chain], boot: { clock } })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterEach(async () => {
  aheadMs = 0
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const used = 'invalid_exact_evm_nonce_already_used'

function pay(changes: Partial<Purchase> = {}): Promise<FacilitatorBody> {
  return aPaymentBody(world, org, { payer, wallet, ...changes })
}

/** The same payment with extensions of the payer's. */
function extended(body: FacilitatorBody, extensions: Readonly<Record<string, unknown>>): FacilitatorBody {
  return { ...body, paymentPayload: { ...body.paymentPayload, extensions } }
}

test('while the chain has not said, the answer is pending, also under an Idempotency-Key, and then the outcome', async () => {
  const { base } = await world.another({ facilitatorWaitMs: 0 })
  const impatient = facilitatorOf(base, org.testKey)
  const facilitator = facilitatorOf(world.base, org.testKey)
  const body = await pay()
  await facilitator.verify(body)
  const anvil = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  await anvil.setAutomine(false)
  cleanUps.push(() => anvil.setAutomine(true))
  const key = { 'idempotency-key': 'settle-pending' }
  const first = await impatient.settle(body, key)
  expect([first.status, first.body]).toMatchObject([200, { success: false, errorReason: 'settlement_pending' }])
  await expect.poll(async () => (await impatient.settle(body)).body.transaction, { timeout: 20_000 }).toMatch(/^0x/)
  await anvil.setAutomine(true)
  await anvil.mine({ blocks: 1 })
  const settled = await facilitator.settle(body)
  expect(settled.body).toMatchObject({ success: true, network: 'eip155:84532', payer: payer.account.address })
  const again = await impatient.settle(body, key)
  expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([settled.body, 'true'])
})

test('a payment that cannot be settled any more fails with the protocol’s reason, for whoever asks', async () => {
  const poor = await aPayer(chain, 10_000n)
  const both = await Promise.all([pay({ payer: poor }), pay({ payer: poor })])
  const facilitator = facilitatorOf(world.base, org.testKey)
  for (const body of both) expect((await facilitator.verify(body)).body.isValid).toBe(true)
  const answers = await Promise.all(both.map((body) => facilitator.settle(body)))
  const failed = both[answers.findIndex((answer) => answer.body.success === false)]
  expect(answers.filter((answer) => answer.body.success === true)).toHaveLength(1)
  for (const answer of [await facilitator.settle(failed), await facilitator.settle(failed)])
    expect(answer.body).toEqual({
      success: false,
      errorReason: 'invalid_exact_evm_insufficient_balance',
      transaction: '',
      network: 'eip155:84532',
      payer: poor.account.address,
    })
})

test('a success is told again for ten minutes and no longer, so that old payments buy nothing', async () => {
  const facilitator = facilitatorOf(world.base, org.testKey)
  const body = await pay()
  await facilitator.verify(body)
  const settled = await facilitator.settle(body)
  aheadMs = 590_000
  expect((await facilitator.settle(body)).body).toEqual(settled.body)
  aheadMs = 610_000
  expect((await facilitator.settle(body)).body).toMatchObject({ success: false, errorReason: used, transaction: '' })
})

test('a node that fails is 503 and never a bad payment, and nothing is recorded', async () => {
  const proxy = await startFaultProxy(chain.rpcUrl)
  cleanUps.push(() => proxy.stop())
  const { base } = await world.another({ rpcUrls: { 'base-sepolia': [proxy.url] }, role: 'api' })
  const behind = facilitatorOf(base, org.testKey)
  const body = await pay()
  proxy.set('drop')
  for (const answer of [await behind.verify(body), await behind.settle(body)]) {
    expect([answer.status, codeOf(answer)]).toEqual([503, 'chain-unavailable'])
    expect(JSON.stringify(answer.body)).not.toContain(proxy.url)
  }
  expect((await facilitatorOf(world.base, org.testKey).verify(body)).body.isValid).toBe(true)
})

test('a payment without the name that its challenge demanded, or with one of another shape, is refused in words', async () => {
  const facilitator = facilitatorOf(world.base, org.testKey)
  const body = await pay()
  const missing = { info: { required: true } }
  const short = { info: { required: false, id: 'too-short' } }
  const strange = { info: { required: false, id: 'with spaces and é, long enough' } }
  for (const extension of [missing, short, strange]) {
    const answer = await facilitator.verify(extended(body, { 'payment-identifier': extension }))
    expect(answer.body).toMatchObject({
      isValid: false,
      invalidReason: 'invalid_payload',
      invalidMessage: expect.stringContaining('payment identifier'),
    })
  }
  expect((await facilitator.verify(body)).body.isValid).toBe(true)
})

test('of two payments sent at once under one name one is taken, and the other is a conflict', async () => {
  const facilitator = facilitatorOf(world.base, org.testKey)
  const named = { 'payment-identifier': { info: { required: false, id: 'one-name-for-two-payments' } } }
  const answers = await Promise.all([await pay(), await pay()].map((body) => facilitator.verify(extended(body, named))))
  expect(answers.map((answer) => (answer.status === 200 ? answer.body.isValid : codeOf(answer))).sort()).toEqual([
    'payment-identifier-conflict',
    true,
  ])
  const stranger = await world.organisation()
  const theirs = await facilitatorOf(world.base, stranger.testKey).verify(extended(await pay(), named))
  expect(theirs.body.isValid).toBe(true)
})

test('what a payment declares is listed for its environment, whoever asks, and is told in the answer’s header', async () => {
  const facilitator = facilitatorOf(world.base, org.testKey)
  const declared = { bazaar: { info: { input: { type: 'http', method: 'GET', queryParams: { city: 'Lima' } } } } }
  const body = extended(await pay(), declared)
  expect((await facilitator.verify(body)).headers.get('extension-responses')).toBeNull()
  expect(toldOf((await facilitator.settle(body)).headers)).toEqual({ bazaar: { status: 'success' } })
  const stranger = await world.organisation()
  const path = `/facilitator/discovery/resources?payTo=${wallet.address.toLowerCase()}&limit=1`
  const found = await world.call(stranger.testKey, 'GET', path)
  expect(found.body).toMatchObject({
    x402Version: 2,
    items: [
      {
        resource: 'https://api.example.com/weather',
        type: 'http',
        x402Version: 2,
        description: 'Weather',
        accepts: [body.paymentRequirements],
        extensions: declared,
      },
    ],
    pagination: { limit: 1, offset: 0, total: 1 },
  })
  expect((await world.call(org.liveKey, 'GET', path)).body).toMatchObject({ items: [], pagination: { total: 0 } })
  expect((await world.call(org.testKey, 'GET', `${path}&network=eip155:1`)).body).toMatchObject({ items: [] })
  expect((await world.call(org.testKey, 'GET', `${path}&offset=1`)).body).toMatchObject({
    items: [],
    pagination: { total: 1 },
  })
})

test('a declaration that cannot be listed is told so, and the payment is settled all the same', async () => {
  const facilitator = facilitatorOf(world.base, org.testKey)
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const cases = [
    [{ info: { input: { type: 'ftp' } } }, 'invalid_discovery_info'],
    [{ info: { input: { type: 'http', method: 'GET' } }, more: 'x'.repeat(20_000) }, 'declaration_too_large'],
  ] as const
  for (const [bazaar, rejectedReason] of cases) {
    const body = extended(await pay(), { bazaar })
    await facilitator.verify(body)
    const settled = await facilitator.settle(body)
    expect([settled.body.success, toldOf(settled.headers)]).toEqual([
      true,
      { bazaar: { status: 'rejected', rejectedReason } },
    ])
  }
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(20_000n)
})

test('a test key is told of test networks alone, with the account that settles; a live key of none here', async () => {
  const path = '/facilitator/supported'
  const { body } = await world.call(org.testKey, 'GET', path)
  expect(body).toMatchObject({
    kinds: expect.arrayContaining([
      { x402Version: 2, scheme: 'exact', network: 'eip155:84532' },
      { x402Version: 1, scheme: 'exact', network: 'base-sepolia' },
    ]),
    extensions: expect.arrayContaining(['bazaar', 'payment-identifier']),
    signers: { 'eip155:*': [world.server.settlerAddress] },
  })
  expect((await world.call(org.liveKey, 'GET', path)).body.kinds).toEqual([])
})

function toldOf(headers: Headers): unknown {
  return JSON.parse(Buffer.from(headers.get('extension-responses') ?? '', 'base64').toString('utf8'))
}
