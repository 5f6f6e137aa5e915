import { type DevChain, fundNative, startChain, startFaultProxy, tokenBalance } from '@purser/devnet'
import { createTestClient, http } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aPaymentBody, type FacilitatorBody, facilitatorOf, type Purchase } from '../facilitated.ts'
import { spend } from '../spend.ts'
import { aPayer, aWorld, codeOf, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: `0x${string}` }
const cleanUps: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterEach(async () => {
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

/** The payment with extensions of the payer. */
function extended(body: FacilitatorBody, extensions: Readonly<Record<string, unknown>>): FacilitatorBody {
  return { ...body, paymentPayload: { ...body.paymentPayload, extensions } }
}

async function stopBlocks(): Promise<() => Promise<void>> {
  const anvil = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  await anvil.setAutomine(false)
  const resume = async (): Promise<void> => {
    await anvil.setAutomine(true)
    await anvil.mine({ blocks: 1 })
  }
  cleanUps.push(resume)
  return resume
}

test('while the chain has not confirmed, the answer is pending with the hash, and then the outcome under the same Idempotency-Key', async () => {
  const { base } = await world.another({ facilitatorWaitMs: 4_000 })
  const impatient = facilitatorOf(base, org.testKey)
  const body = await pay()
  await impatient.verify(body)
  const resume = await stopBlocks()
  const key = { 'idempotency-key': 'settle-pending' }
  const first = await impatient.settle(body, key)
  expect([first.status, first.body]).toMatchObject([
    200,
    { success: false, errorReason: 'settlement_pending', transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
  ])
  await resume()
  const settled = await facilitatorOf(world.base, org.testKey).settle(body, key)
  expect(settled.body).toMatchObject({ success: true, network: 'eip155:84532', payer: payer.account.address })
  for (const facilitator of [impatient, facilitatorOf(world.base, org.testKey)]) {
    const again = await facilitator.settle(body, key)
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([settled.body, 'true'])
  }
  expect((await impatient.settle(body)).body).toMatchObject({ success: false, errorReason: used })
})

test.each([
  ['that could not be sent', 0],
  ['whose transaction ended without it', 1],
])('a settlement %s is refused finally when the wait ends, and its payer is never charged', async (_, attempts) => {
  const proxy = await startFaultProxy(chain.rpcUrl)
  cleanUps.push(() => proxy.stop())
  const cut = await aWorld({
    rpcUrls: { 'base-sepolia': [proxy.url] },
    config: { facilitatorWaitMs: 1_500 },
  })
  cleanUps.push(() => cut.stop())
  await fundNative(chain, z.templateLiteral(['0x', z.string()]).parse(cut.server.settlerAddress), 10n ** 20n)
  const own = await cut.organisation()
  const shop = { payer, wallet: await cut.wallet(own) }
  const facilitator = facilitatorOf(cut.base, own.testKey)
  const body = await aPaymentBody(cut, own, shop)
  expect((await facilitator.verify(body)).body.isValid).toBe(true)
  const before = await tokenBalance(chain, 'USDC', payer.account.address)
  proxy.set('drop')
  const failed = { success: false, errorReason: 'settlement_withdrawn', transaction: '' }
  const settling = Promise.all([facilitator.settle(body), facilitator.settle(body)])
  await expect.poll(() => setAttempts(cut, attempts)).toBe(1)
  const answers = await settling
  for (const response of answers) expect([response.status, response.body]).toMatchObject([200, failed])
  proxy.set('pass')
  // A later payment settles, so any waiting one would have been sent by now.
  const next = await aPaymentBody(cut, own, shop)
  await expect.poll(async () => (await facilitator.verify(next)).body.isValid, { timeout: 60_000 }).toBe(true)
  // The short wait of this process may end before the next block: the key's repeat returns the outcome.
  const settleNext = () => facilitator.settle(next, { 'idempotency-key': 'settle-next' })
  await expect.poll(async () => (await settleNext()).body.success, { timeout: 60_000 }).toBe(true)
  expect((await facilitator.settle(body)).body).toMatchObject(failed)
  expect(before - (await tokenBalance(chain, 'USDC', payer.account.address))).toBe(10_000n)
  const [, log] = (await cut.call(own.testKey, 'GET', '/payments/logs')).list
  expect(log).toMatchObject({ status: 'voided' })
  // A withdrawn payment counts neither in the month nor in the reserved gas.
  const Count = z.object({ used: z.bigint(), reserved: z.string() })
  const counted = await cut.database.db.one(
    Count,
    sql`
    select (select used from usage_counters where organisation_id = ${own.id} and kind = 'payments') as used,
      (select sum(gas_reserved_nano_usd)::text from payments where organisation_id = ${own.id}) as reserved`,
  )
  expect(counted).toEqual({ used: 1n, reserved: '0' })
})

/** As if this many transactions had included the world's only relay and ended without its money. */
function setAttempts({ database }: World, attempts: number): Promise<number> {
  return database.db.run(sql`
    update relays set attempts = ${attempts}, alone = ${attempts > 0}, next_attempt_at = null, check_at = now() where state = 'waiting'`)
}

test('a block that does not move the money leaves the answer pending with the hash of its transaction', async () => {
  const { base } = await world.another({ facilitatorWaitMs: 1_500, role: 'api' })
  const impatient = facilitatorOf(base, org.testKey)
  const body = await pay()
  await impatient.verify(body)
  const resume = await stopBlocks()
  const first = await impatient.settle(body)
  const hash = first.body.transaction
  expect(hash).toMatch(/^0x[0-9a-f]{64}$/)
  // What the relayer does when a block that is not final shows the transaction without the transfer.
  const forgotten = await world.database.db.run(sql`update payments set tx_hash = null where tx_hash = ${String(hash)}`)
  expect(forgotten).toBe(1)
  expect((await impatient.settle(body)).body).toMatchObject({ errorReason: 'settlement_pending', transaction: hash })
  await resume()
  expect((await facilitatorOf(world.base, org.testKey).settle(body)).body.success).toBe(true)
})

test('sixty verifies and settlements of one payment at once, on two processes, are one success', async () => {
  const { base } = await world.another()
  const facilitators = [facilitatorOf(world.base, org.testKey), facilitatorOf(base, org.testKey)]
  const body = await pay()
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, index) => {
      const facilitator = facilitators[index % 2] ?? facilitatorOf(base, org.testKey)
      return index % 3 === 0 ? facilitator.verify(body) : facilitator.settle(body)
    }),
  )
  expect(answers.filter((response) => response.body.success === true)).toHaveLength(1)
  expect(answers.filter((response) => response.body.isValid === true).length).toBeLessThanOrEqual(1)
  for (const facilitator of facilitators)
    expect((await facilitator.settle(body)).body).toMatchObject({ success: false, errorReason: used })
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
})

test('a settlement that was pending for many callers at two processes while blocks stood still is one success afterwards', async () => {
  const impatient = { facilitatorWaitMs: 2_000 }
  const bases = await Promise.all([world.another(impatient), world.another(impatient)])
  const facilitators = bases.map(({ base }) => facilitatorOf(base, org.testKey))
  const body = await pay()
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const resume = await stopBlocks()
  const all = async (round: string) => {
    const responses = Array.from({ length: 24 }, (_, index) => {
      const keyOf = (place: number): Record<string, string> =>
        index % 3 === 0 ? { 'idempotency-key': `${round} ${index} ${place}` } : {}
      return facilitators.map((facilitator, place) => facilitator.settle(body, keyOf(place)))
    })
    return (await Promise.all(responses.flat())).map((response) => response.body)
  }
  const pending = await all('outage')
  expect(pending.filter(({ success }) => success === true)).toEqual([])
  expect(new Set(pending.map(({ errorReason }) => errorReason))).toEqual(new Set(['settlement_pending']))
  await resume()
  await expect.poll(async () => (await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
  const answers = [...(await all('first')), ...(await all('second'))]
  expect(answers.filter(({ success }) => success === true)).toHaveLength(1)
})

test('a payment that cannot be settled any more fails with the protocol’s reason, for every caller', async () => {
  const poor = await aPayer(chain, 20_000n)
  const both = await Promise.all([pay({ payer: poor }), pay({ payer: poor })])
  const facilitator = facilitatorOf(world.base, org.testKey)
  for (const body of both) expect((await facilitator.verify(body)).body.isValid).toBe(true)
  await spend(chain, poor.account.address, 10_000n)
  const answers = await Promise.all(both.map((body) => facilitator.settle(body)))
  const failed = both[answers.findIndex((response) => response.body.success === false)]
  expect(answers.filter((response) => response.body.success === true)).toHaveLength(1)
  for (const response of [await facilitator.settle(failed), await facilitator.settle(failed)])
    expect(response.body).toEqual({
      success: false,
      errorReason: 'invalid_exact_evm_insufficient_balance',
      transaction: '',
      network: 'eip155:84532',
      payer: poor.account.address,
    })
})

test('a failing node is 503 and never an invalid payment, and nothing is recorded', async () => {
  const proxy = await startFaultProxy(chain.rpcUrl)
  cleanUps.push(() => proxy.stop())
  const { base } = await world.another({ rpcUrls: { 'base-sepolia': [proxy.url] }, role: 'api' })
  const behind = facilitatorOf(base, org.testKey)
  const body = await pay()
  proxy.set('drop')
  for (const response of [await behind.verify(body), await behind.settle(body)]) {
    expect([response.status, codeOf(response)]).toEqual([503, 'chain-unavailable'])
    expect(response.body).toMatchObject(
      'isValid' in response.body
        ? { isValid: false, invalidReason: 'unexpected_verify_error' }
        : { success: false, errorReason: 'unexpected_settle_error', transaction: '', network: 'eip155:84532' },
    )
    expect(JSON.stringify(response.body)).not.toContain(proxy.url)
  }
  expect((await facilitatorOf(world.base, org.testKey).verify(body)).body.isValid).toBe(true)
})

test('a payment without the id that its challenge requires, or with a malformed one, is refused with a message', async () => {
  const facilitator = facilitatorOf(world.base, org.testKey)
  const body = await pay()
  const missing = { info: { required: true } }
  const short = { info: { required: false, id: 'too-short' } }
  const strange = { info: { required: false, id: 'with spaces and é, long enough' } }
  for (const extension of [missing, short, strange]) {
    const response = await facilitator.verify(extended(body, { 'payment-identifier': extension }))
    expect(response.body).toMatchObject({
      isValid: false,
      invalidReason: 'invalid_payload',
      invalidMessage: expect.stringContaining('payment identifier'),
    })
  }
  expect((await facilitator.verify(body)).body.isValid).toBe(true)
})

test('of two payments sent at once under one id one is accepted, and the other is a conflict', async () => {
  const facilitator = facilitatorOf(world.base, org.testKey)
  const named = { 'payment-identifier': { info: { required: false, id: 'one-name-for-two-payments' } } }
  const answers = await Promise.all([await pay(), await pay()].map((body) => facilitator.verify(extended(body, named))))
  expect(
    answers.map((response) => (response.status === 200 ? response.body.isValid : codeOf(response))).sort(),
  ).toEqual(['payment-identifier-conflict', true])
  const stranger = await world.organisation()
  const theirs = await facilitatorOf(world.base, stranger.testKey).verify(extended(await pay(), named))
  expect(theirs.body.isValid).toBe(true)
})

test('a payment’s declaration is listed for its environment, for every caller, and reported in the response header', async () => {
  const facilitator = facilitatorOf(world.base, org.testKey)
  const declared = { bazaar: { info: { input: { type: 'http', method: 'GET', queryParams: { city: 'Lima' } } } } }
  const body = extended(await pay(), declared)
  expect((await facilitator.verify(body)).headers.get('extension-responses')).toBeNull()
  expect(reportOf((await facilitator.settle(body)).headers)).toEqual({ bazaar: { status: 'success' } })
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

test('a declaration that cannot be listed is reported as such, and the payment is settled anyway', async () => {
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
    expect([settled.body.success, reportOf(settled.headers)]).toEqual([
      true,
      { bazaar: { status: 'rejected', rejectedReason } },
    ])
  }
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(20_000n)
})

test('a test key sees test networks alone, with the settling account; a live key sees none here', async () => {
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

function reportOf(headers: Headers): unknown {
  return JSON.parse(Buffer.from(headers.get('extension-responses') ?? '', 'base64').toString('utf8'))
}
