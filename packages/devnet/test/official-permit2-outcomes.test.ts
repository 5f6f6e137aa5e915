import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import { resetAssetContractCache } from '@x402/evm'
import { type Address, createTestClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { markCharged, settling } from '../../server/src/features/payments/settlement-store.ts'
import { relays } from '../../server/src/features/relayer/index.ts'
import { sql } from '../../server/src/platform/db/db.ts'
import { aPaymentBody, facilitatorOf } from '../../server/test/facilitated.ts'
import { type Answer, aPayer, aWorld, type Org, request, type World } from '../../server/test/world.ts'
import {
  type DevChain,
  deploySmartWallet,
  exactPermit2ProxyAddress,
  fundToken,
  permit2Address,
  sendFromDevAccount,
  startChain,
  tokenBalance,
} from '../src/index.ts'
import {
  approvePermit2,
  giveUp,
  Logged,
  nonceOf,
  officialFacilitator,
  settleData,
  signedBy,
  signedWithNonce,
  throughWallet,
  transferTo,
} from './official-permit2-calls.ts'
import { aPermit2Payer, network, type Permit2Payer, requirementsOf, usdcOf } from './official-permit2-payers.ts'

let chain: DevChain
let world: World
let org: Org
let settler: Address

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  settler = world.server.settlerAddress as Address
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const schemes = ['exact', 'upto'] as const
type Scheme = (typeof schemes)[number]
const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/)

const merchant = (): Address => privateKeyToAccount(generatePrivateKey()).address

function requested(scheme: Scheme, payTo: Address, amount = '10000'): PaymentRequirements {
  return requirementsOf(chain, { scheme, amount, payTo, facilitatorAddress: settler })
}

function ask(
  verb: 'verify' | 'settle',
  paymentPayload: PaymentPayload,
  paymentRequirements: PaymentRequirements,
  { base = world.base, key = org.testKey } = {},
): Promise<Answer> {
  const body = { x402Version: 2, paymentPayload, paymentRequirements }
  return request(base, { key, method: 'POST', path: `/facilitator/${verb}`, body })
}

/** A payment of scheme `scheme` that was verified, not settled yet. */
async function verified(scheme: Scheme, payer: Permit2Payer, amount = '10000') {
  const payTo = merchant()
  const requirements = requested(scheme, payTo, amount)
  const payload = await payer.sign(requirements)
  const response = await ask('verify', payload, requirements)
  expect([response.status, response.body]).toEqual([200, { isValid: true, payer: payer.address }])
  const settle = (change: Partial<PaymentRequirements> = {}, base = world.base) =>
    ask('settle', payload, { ...requirements, ...change }, { base })
  return { payTo, requirements, payload, settle }
}

async function paymentTo(payTo: Address): Promise<z.output<typeof Logged>> {
  return world.database.db.one(
    Logged,
    sql`select id, status, tx_hash, failure_reason, raw_amount from payments where pay_to = ${payTo}`,
  )
}

async function eventsOf(payTo: Address): Promise<string[]> {
  const { id } = await paymentTo(payTo)
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload->>'paymentId' = ${id} order by id`,
  )
  return rows.map(({ type }) => type)
}

test.each(schemes)(
  '%s: a payment settles to the unit, and five settlements at once at two processes are one transaction and one success',
  async (scheme) => {
    const payer = await aPermit2Payer(chain)
    const { payTo, settle } = await verified(scheme, payer)
    const another = (await world.another()).base
    const answers = await Promise.all([1, 2, 3, 4, 5].map((turn) => settle({}, turn % 2 === 0 ? world.base : another)))
    answers.push(await settle())
    const [first, ...more] = answers.filter(({ body }) => body.success === true)
    const amount = scheme === 'upto' ? { amount: '10000' } : {}
    expect(first?.body).toEqual({ success: true, transaction: hash, network, payer: payer.address, ...amount })
    expect(more).toEqual([])
    for (const { body } of answers.filter(({ body }) => body.success !== true))
      expect(body).toMatchObject({ success: false, errorReason: 'permit2_invalid_nonce', transaction: '' })
    expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
    expect(await tokenBalance(chain, 'USDC', payer.address)).toBe(990_000n)
    expect(await eventsOf(payTo)).toEqual(['payment.received', 'payment.settled'])
  },
)

test('permits and authorizations that arrive at once all settle, each permit in a separate transaction', async () => {
  const wallet = await world.wallet(org)
  const permits = await Promise.all(
    [...schemes, ...schemes].map(async (scheme) => verified(scheme, await aPermit2Payer(chain))),
  )
  const authorizations = await Promise.all(
    [1, 2, 3].map(async () => aPaymentBody(world, org, { payer: await aPayer(chain), wallet })),
  )
  const facilitator = facilitatorOf(world.base, org.testKey)
  for (const body of authorizations) expect((await facilitator.verify(body)).body.isValid).toBe(true)
  const settled = await Promise.all([
    ...permits.map(({ settle }) => settle()),
    ...authorizations.map((body) => facilitator.settle(body)),
  ])
  expect(settled.map(({ body }) => body.success)).toEqual(settled.map(() => true))
  expect(new Set(settled.slice(0, permits.length).map(({ body }) => body.transaction)).size).toBe(permits.length)
  for (const { payTo } of permits) expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
  expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(30_000n)
})

test.each(schemes)('%s: a permit buys once, also if another organisation sends it again', async (scheme) => {
  const payer = await aPermit2Payer(chain)
  const { payTo, requirements, payload, settle } = await verified(scheme, payer)
  const used = { isValid: false, invalidReason: 'permit2_invalid_nonce', payer: payer.address }
  const stranger = { key: (await world.organisation()).testKey }
  expect((await ask('verify', payload, requirements)).body).toEqual(used)
  expect((await ask('verify', payload, requirements, stranger)).body).toEqual(used)
  const taken = { success: false, errorReason: 'permit2_invalid_nonce', transaction: '', network, payer: payer.address }
  expect((await ask('settle', payload, requirements, stranger)).body).toEqual(taken)
  await settle()
  expect((await ask('verify', payload, requirements)).body).toEqual(used)
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
})

test('twenty copies of one permit that arrive together are accepted once', async () => {
  const payer = await aPermit2Payer(chain)
  const requirements = requested('exact', merchant())
  const payload = await payer.sign(requirements)
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask('verify', payload, requirements)))
  expect(answers.filter(({ body }) => body.isValid === true)).toHaveLength(1)
  expect(new Set(answers.map(({ body }) => body.invalidReason))).toEqual(new Set([undefined, 'permit2_invalid_nonce']))
})

test('one nonce of an owner is one payment, whatever amount or receiver a second permit names', async () => {
  const payer = await aPermit2Payer(chain)
  const { payload } = await verified('exact', payer)
  const requirements = requested('exact', merchant(), '7770')
  const nonce = nonceOf(payload)
  const second = await signedWithNonce(chain, payer, requirements, nonce)
  expect((await ask('verify', second, requirements)).body).toMatchObject({ invalidReason: 'permit2_invalid_nonce' })
  const third = await signedWithNonce(chain, payer, requirements, String(BigInt(nonce) ^ 1n))
  expect((await ask('verify', third, requirements)).body).toMatchObject({ isValid: true })
})

test.each(schemes)('%s: a permit that is first seen at settle publishes one success event', async (scheme) => {
  const payer = await aPermit2Payer(chain)
  const payTo = merchant()
  const requirements = requested(scheme, payTo)
  const payload = await payer.sign(requirements)
  const answers = await Promise.all([1, 2, 3, 4, 5].map(() => ask('settle', payload, requirements)))
  expect(answers.filter(({ body }) => body.success === true)).toHaveLength(1)
  expect(new Set(answers.map(({ body }) => body.errorReason))).toEqual(new Set([undefined, 'permit2_invalid_nonce']))
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
})

test('upto: the payer pays the settled amount, and the payment then shows it', async () => {
  const payer = await aPermit2Payer(chain)
  const { payTo, settle } = await verified('upto', payer, '20000')
  const settled = await settle({ amount: '1858' })
  expect(settled.body).toMatchObject({ success: true, amount: '1858', transaction: hash })
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(1_858n)
  const { id, ...row } = await paymentTo(payTo)
  expect(row).toMatchObject({ status: 'settled', rawAmount: '1858', txHash: settled.body.transaction })
  const { body } = await world.call(org.testKey, 'GET', `/payments/${id}`)
  expect(body).toMatchObject({ amount: '0.001858', rawAmount: '1858' })
})

test('upto: of several concurrent settlements the first counts, and one success event states its amount', async () => {
  const payer = await aPermit2Payer(chain)
  const { payTo, settle } = await verified('upto', payer, '20000')
  const answers = await Promise.all(['1000', '2000', '3000', '4000', '5000'].map((amount) => settle({ amount })))
  const successes = answers.filter(({ body }) => body.success === true)
  expect(successes.map(({ body }) => body.amount)).toEqual([String(await tokenBalance(chain, 'USDC', payTo))])
  expect((await settle({ amount: '20000' })).body).toMatchObject({ success: false, transaction: '' })
})

test('upto: a payment without a settled amount is not sent, and of two settlements the second changes nothing', async () => {
  const { payTo, settle } = await verified('upto', await aPermit2Payer(chain))
  const { id } = await paymentTo(payTo)
  const { deps } = world.server
  await deps.settlements.request(id)
  expect(await paymentTo(payTo)).toMatchObject({ status: 'verified', rawAmount: '10000' })
  const charges = await deps.db.tx(async (tx) => [
    await markCharged(tx, id, 10_001n, deps.clock.now()),
    await markCharged(tx, id, 100n, deps.clock.now()),
    await markCharged(tx, id, 200n, deps.clock.now()),
  ])
  expect(charges.map((row) => row?.rawAmount)).toEqual([undefined, 100n, undefined])
  await relays.enqueue(deps.db, 'payments', settling(id))
  expect((await settle({ amount: '300' })).body).toMatchObject({ success: true, amount: '100' })
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(100n)
})

test('upto: an amount of zero is settled at once without a transaction, and stays so', async () => {
  const payer = await aPermit2Payer(chain)
  const { payTo, settle } = await verified('upto', payer)
  const nothing = { success: true, transaction: '', network, payer: payer.address, amount: '0' }
  expect((await settle({ amount: '0' })).body).toEqual(nothing)
  expect((await settle({ amount: '5000' })).body).toMatchObject({ success: false, transaction: '' })
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(0n)
  expect(await paymentTo(payTo)).toMatchObject({ status: 'settled', rawAmount: '0', txHash: null })
  expect(await eventsOf(payTo)).toEqual(['payment.received', 'payment.settled'])
})

test('upto: more than was permitted is refused, and leaves the permitted amount intact', async () => {
  const payer = await aPermit2Payer(chain)
  const { payTo, settle } = await verified('upto', payer)
  expect((await settle({ amount: '10001' })).body).toMatchObject({
    success: false,
    errorReason: 'invalid_upto_evm_payload_settlement_exceeds_amount',
    transaction: '',
  })
  expect((await settle({ amount: '9999' })).body).toMatchObject({ success: true, amount: '9999' })
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(9_999n)
})

test('a payment that somebody else broadcasts is settled by their transaction', async () => {
  const payer = await aPermit2Payer(chain)
  const { payTo, payload, settle } = await verified('exact', payer)
  // A payment of the same amount between the same two accounts, which must not be mistaken for it.
  await payer.send(usdcOf(chain), transferTo(payTo))
  const theirs = await sendFromDevAccount(chain, exactPermit2ProxyAddress, settleData(payload))
  await payer.send(usdcOf(chain), transferTo(payTo))
  expect((await settle()).body).toMatchObject({ success: true, transaction: theirs })
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(30_000n)
  expect(await eventsOf(payTo)).toEqual(['payment.received', 'payment.settled'])
})

test('a payment whose payer invalidates its nonce fails, also where they paid the same amount otherwise', async () => {
  const payer = await aPermit2Payer(chain)
  const { payTo, payload, settle } = await verified('exact', payer)
  await payer.send(permit2Address, giveUp(payload))
  await payer.send(usdcOf(chain), transferTo(payTo))
  expect((await settle()).body).toMatchObject({ success: false, errorReason: 'permit2_invalid_nonce', transaction: '' })
  expect(await paymentTo(payTo)).toMatchObject({ status: 'settlement_failed', txHash: null })
  expect(await eventsOf(payTo)).toEqual(['payment.received', 'payment.settlement_failed'])
})

test.each(schemes)(
  '%s: a payment whose payer revokes the allowance fails with that reason, and no money moves',
  async (scheme) => {
    const payer = await aPermit2Payer(chain)
    const { payTo, settle } = await verified(scheme, payer)
    await payer.approve(0n)
    const failed = { success: false, errorReason: 'permit2_allowance_required', transaction: '' }
    expect((await settle()).body).toMatchObject(failed)
    expect((await settle()).body).toMatchObject(failed)
    expect(await tokenBalance(chain, 'USDC', payTo)).toBe(0n)
  },
)

test('a contract account pays with its owner’s signature, and with nobody else’s', async () => {
  const owner = await aPermit2Payer(chain)
  const wallet = await deploySmartWallet(chain, owner.address, 7n)
  await fundToken(chain, 'USDC', wallet, 50_000n)
  await owner.send(wallet, throughWallet(usdcOf(chain), approvePermit2()))
  const signer = { address: wallet, signTypedData: owner.account.signTypedData }
  const payTo = merchant()
  const requirements = requested('exact', payTo)
  const payload = await signedBy(signer, requirements)
  const byStranger = await signedBy(
    { address: wallet, signTypedData: (await aPermit2Payer(chain)).account.signTypedData },
    requirements,
  )
  expect((await ask('verify', byStranger, requirements)).body).toMatchObject({
    invalidReason: 'invalid_permit2_signature',
  })
  expect((await ask('verify', payload, requirements)).body).toEqual({ isValid: true, payer: wallet })
  expect((await ask('settle', payload, requirements)).body).toMatchObject({ success: true })
  expect(await tokenBalance(chain, 'USDC', wallet)).toBe(40_000n)
})

test('a missing allowance is refused with the reason that makes official servers answer 412, and an EIP-2612 permit replaces it', async () => {
  const payer = await aPermit2Payer(chain, { allowance: 0n })
  const payTo = merchant()
  const requirements = requested('exact', payTo)
  const bare = await payer.sign(requirements)
  expect((await ask('verify', bare, requirements)).body).toMatchObject({ invalidReason: 'permit2_allowance_required' })
  const payload = await payer.sign(requirements, { eip2612GasSponsoring: { info: {}, schema: {} } })
  expect(payload.extensions).toHaveProperty('eip2612GasSponsoring')
  expect((await ask('verify', payload, requirements)).body).toMatchObject({ isValid: true })
  expect((await ask('settle', payload, requirements)).body).toMatchObject({ success: true })
  expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
})

test.each(schemes)('%s: the official facilitator on the same chain refuses with the same reasons', async (scheme) => {
  const rich = await aPermit2Payer(chain)
  const poor = await aPermit2Payer(chain, { balance: 5n })
  const unable = await aPermit2Payer(chain, { allowance: 9_999n })
  const neither = await aPermit2Payer(chain, { balance: 0n, allowance: 0n })
  const requirements = requested(scheme, merchant())
  const elsewhere = requirementsOf(chain, {
    scheme: 'upto',
    amount: '10000',
    payTo: requirements.payTo as Address,
    facilitatorAddress: merchant(),
  })
  const good = await rich.sign(requirements)
  const cases = [
    await poor.sign(requirements),
    await unable.sign(requirements),
    await neither.sign(requirements),
    await rich.sign({ ...requirements, amount: '9999' }),
    await rich.sign({ ...requirements, payTo: merchant() }),
    await rich.sign({ ...requirements, maxTimeoutSeconds: 1 }),
    { ...good, payload: { ...good.payload, signature: `0x${'11'.repeat(64)}1b` } },
    {
      ...good,
      payload: { ...good.payload, permit2Authorization: { ...Object(good.payload.permit2Authorization), nonce: '5' } },
    },
    {
      ...(await neither.sign(requirements)),
      payload: {
        ...good.payload,
        permit2Authorization: { ...Object(good.payload.permit2Authorization), from: neither.address },
      },
    },
    ...(scheme === 'upto' ? [await rich.sign(elsewhere)] : []),
    good,
  ]
  resetAssetContractCache()
  const official = officialFacilitator(chain, settler, scheme)
  for (const payload of cases) {
    const theirs = await official.verify(payload, requirements)
    const { body } = await ask('verify', payload, requirements)
    expect([body.isValid, body.invalidReason], JSON.stringify(payload)).toEqual([theirs.isValid, theirs.invalidReason])
  }
})

test('a failing node is a problem, not an invalid payment, and nothing is recorded', async () => {
  const payer = await aPermit2Payer(chain)
  const requirements = requested('exact', merchant())
  const payload = await payer.sign(requirements)
  const { base } = await world.another({ rpcUrls: { 'base-sepolia': ['http://127.0.0.1:9'] } })
  const response = await ask('verify', payload, requirements, { base })
  expect([response.status, String(response.body.type)]).toEqual([503, expect.stringContaining('chain-unavailable')])
  expect((await ask('verify', payload, requirements)).body.isValid).toBe(true)
})

test('upto is offered where its proxy is, with the settling account, and left out while the node fails', async () => {
  const kind = { x402Version: 2, scheme: 'upto', network, extra: { facilitatorAddress: settler } }
  const { body } = await world.call(org.testKey, 'GET', '/facilitator/supported')
  expect(body.kinds).toContainEqual(kind)
  expect(body.extensions).toContain('eip2612GasSponsoring')
  const { base } = await world.another({ rpcUrls: { 'base-sepolia': ['http://127.0.0.1:9'] } })
  const blind = await request(base, { key: org.testKey, method: 'GET', path: '/facilitator/supported' })
  expect(blind.status).toBe(200)
  expect(JSON.stringify(blind.body.kinds)).not.toContain('upto')
})

// Last, because the chain's time does not go back.
test('a permit that nobody settles in time is voided, and one that somebody else settled is not', async () => {
  const [unsent, sent, unmetered] = await Promise.all([
    verified('exact', await aPermit2Payer(chain)),
    verified('exact', await aPermit2Payer(chain)),
    verified('upto', await aPermit2Payer(chain)),
  ])
  const theirs = await sendFromDevAccount(chain, exactPermit2ProxyAddress, settleData(sent.payload))
  // A block moves the chain's time past the deadline, at a depth that is final.
  const anvil = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  await anvil.mine({ blocks: 10, interval: 120 })
  await world.database.db.run(sql`update payments set check_at = now() where status = 'verified'`)
  const expired = { status: 'voided', failureReason: 'permit2_deadline_expired', txHash: null }
  await expect.poll(() => paymentTo(unsent.payTo), { timeout: 60_000 }).toMatchObject(expired)
  await expect.poll(() => paymentTo(unmetered.payTo), { timeout: 60_000 }).toMatchObject(expired)
  await expect
    .poll(() => paymentTo(sent.payTo), { timeout: 60_000 })
    .toMatchObject({ status: 'settled', txHash: theirs })
  const reported = await unmetered.settle({ amount: '5' })
  expect(reported.body).toMatchObject({ success: false, errorReason: 'permit2_deadline_expired', transaction: '' })
})
