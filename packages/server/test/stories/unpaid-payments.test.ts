import { type DevChain, sendFromDevAccount, startChain } from '@purser/devnet'
import { encodeTransferWithAuthorization, type TransferAuthorization } from '@purser/protocol'
import { createTestClient, http } from 'viem'
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
  type World,
} from '../world.ts'

let chain: DevChain
let world: World
let other: string
let aheadMs = 0

const resource = 'https://api.example.com/weather'
const hourMs = 3_600_000
/** Ten ordinary payments. */
const budget = 1_000_000n

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({
    chains: [chain],
    config: { settleNanoUsdPerDayMax: budget },
    boot: { clock: { now: () => new Date(Date.now() + aheadMs) }, releasedPerDayMin: 1_000 },
  })
  other = (await world.another({ role: 'api' })).base
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

interface Shop {
  readonly org: Org
  readonly walletId: string
}

async function aShop(plan: 'hobby' | 'enterprise' = 'enterprise'): Promise<Shop> {
  const org = await world.organisation(plan)
  return { org, walletId: (await world.wallet(org)).id }
}

async function credentialFor({ org, walletId }: Shop, payer: Payer, price: string, validBefore?: string) {
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', { walletId, resource, price })
  return payer.credential(challenge, validBefore === undefined ? {} : { sign: { validBefore } })
}

async function verify(shop: Shop, credential: string, price: string, base = world.base): Promise<Answer> {
  const body = { protocol: 'x402', credential, price, walletId: shop.walletId, resource }
  return request(base, { key: shop.org.testKey, method: 'POST', path: '/payments/verify', body })
}

async function pay(shop: Shop, payer: Payer, price = '0.01', base = world.base): Promise<Answer> {
  return verify(shop, await credentialFor(shop, payer, price), price, base)
}

async function used({ org }: Shop): Promise<unknown> {
  return (await world.call(org.testKey, 'GET', '/billing/usage')).body.payments
}

async function reserved({ org }: Shop): Promise<bigint> {
  const row = await world.database.db.one(
    z.object({ nanoUsd: z.string() }),
    sql`select coalesce(sum(nano_usd), 0)::text as nano_usd from gas_budgets where organisation_id = ${org.id}`,
  )
  return BigInt(row.nanoUsd)
}

async function statusOf({ org }: Shop, verified: Answer): Promise<unknown> {
  return (await world.call(org.testKey, 'GET', `/payments/${String(verified.body.paymentId)}`)).body.status
}

test('an account with 0.01 USDC has one payment of 0.01 open, whatever it signs, and uses up neither the month nor the budget', async () => {
  const [shop, poor] = [await aShop('hobby'), await aPayer(chain, 10_000n)]
  const answers = await Promise.all(Array.from({ length: 12 }, () => pay(shop, poor)))
  expect(countByStatus(answers)).toEqual({ 200: 1, 402: 11 })
  const refused = answers.filter(({ status }) => status === 402)
  expect(new Set(refused.map(({ body }) => body.reason))).toEqual(new Set(['insufficient_funds']))
  expect(await used(shop)).toMatchObject({ used: 1 })
  expect(await reserved(shop)).toBe(100_000n)
  expect((await pay(shop, await aPayer(chain))).status, 'an honest payer').toBe(200)
})

test('a payer’s open payments are counted across organisations and processes that verify at the same instant', async () => {
  const [one, two, payer] = [await aShop(), await aShop(), await aPayer(chain, 20_000n)]
  const bases = [world.base, other]
  const answers = await Promise.all(
    [one, two].flatMap((shop) => bases.flatMap((base) => [0, 1, 2].map(() => pay(shop, payer, '0.01', base)))),
  )
  expect(countByStatus(answers)[200]).toBe(2)
  const refusals = answers.filter(({ status }) => status !== 200).map((answer) => answer.body.reason ?? codeOf(answer))
  expect(['insufficient_funds', 'too-many-open-payments']).toEqual(expect.arrayContaining([...new Set(refusals)]))
})

test('a payer who has spent almost everything can pay with the rest', async () => {
  const [shop, payer] = [await aShop(), await aPayer(chain, 20_000n)]
  for (const _ of [0, 1]) {
    const { body } = await pay(shop, payer)
    const settle = { paymentId: body.paymentId, settlementToken: body.settlementToken }
    expect((await world.call(shop.org.testKey, 'POST', '/payments/settle', settle)).status).toBe(200)
  }
})

test.each(['hobby', 'enterprise'] as const)(
  'recording has one writer: payers at two processes at the same instant do not exceed the day’s gas budget of the plan %s',
  async (plan) => {
    const shop = await aShop(plan)
    const payers = await Promise.all(Array.from({ length: 14 }, () => aPayer(chain)))
    const answers = await Promise.all(
      payers.map((payer, index) => pay(shop, payer, '0.01', index % 2 === 0 ? world.base : other)),
    )
    expect(countByStatus(answers)).toEqual({ 200: 10, 429: 4 })
    expect(await reserved(shop)).toBe(budget)
    expect(await used(shop)).toMatchObject({ used: 10 })
  },
)

test('a payer has at most a hundred payments open at one organisation', async () => {
  const [shop, payer] = [await aShop(), await aPayer(chain)]
  const seed = await pay(shop, payer)
  await world.database.db.run(sql`update payments set gas_reserved_nano_usd = 0 where organisation_id = ${shop.org.id}`)
  await world.database.db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, door, scheme, chain, network, token, asset,
      decimals, raw_amount, payer, pay_to, status, created_at)
    select 'pay_' || lpad(n::text, 26, '0'), 'plog_' || lpad(n::text, 26, '0'), organisation_id, environment, api_key_id, protocol, door, scheme,
      chain, network, token, asset, decimals, 1, payer, pay_to, 'verified', created_at
    from payments, generate_series(1, 98) as n where id = ${String(seed.body.paymentId)}`)
  const answers = await Promise.all(
    [world.base, other].flatMap((base) => [0, 1].map(() => pay(shop, payer, '0.01', base))),
  )
  expect(countByStatus(answers)).toEqual({ 200: 1, 429: 3 })
  expect(new Set(answers.filter(({ status }) => status === 429).map(codeOf))).toEqual(
    new Set(['too-many-open-payments']),
  )
  expect((await pay(await aShop(), payer)).status, 'at another organisation').toBe(200)
  expect((await pay(shop, await aPayer(chain))).status, 'another payer').toBe(200)
})

test('open payments of one payer take a tenth of the month, whatever the payer has; another payer buys', async () => {
  const [shop, payer, honest] = [await aShop('hobby'), await aPayer(chain), await aPayer(chain)]
  const opened: Answer[] = []
  for (let index = 0; index < 12; index += 1) {
    opened.push(await pay(shop, payer))
    await world.database.db.run(
      sql`update payments set gas_reserved_nano_usd = 0 where organisation_id = ${shop.org.id}`,
    )
    await world.database.db.run(sql`delete from gas_budgets where organisation_id = ${shop.org.id}`)
  }
  expect(countByStatus(opened)).toEqual({ 200: 10, 429: 2 })
  expect(new Set(opened.slice(10).map(codeOf))).toEqual(new Set(['too-many-open-payments']))
  expect((await pay(shop, honest)).status).toBe(200)
})

test('open payments of one payer reserve a tenth of the day’s gas; one is always allowed', async () => {
  const [shop, payer] = [await aShop(), await aPayer(chain)]
  const first = await pay(shop, payer)
  expect(countByStatus([first, await pay(shop, payer)])).toEqual({ 200: 1, 429: 1 })
  const release = { settlementToken: first.body.settlementToken }
  await world.call(shop.org.testKey, 'POST', `/payments/${String(first.body.paymentId)}/release`, release)
  expect((await pay(shop, payer)).status).toBe(200)
})

test('payments whose settlement was requested reserve of that tenth too until they are settled: the payer may move its money first', async () => {
  const anvil = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  const [shop, payer] = [await aShop(), await aPayer(chain)]
  const { paymentId, settlementToken } = (await pay(shop, payer)).body
  await anvil.setAutomine(false)
  const prefer = { prefer: 'respond-async' }
  await world.call(shop.org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken }, prefer)
  const next = await pay(shop, payer)
  await anvil.setAutomine(true)
  await anvil.mine({ blocks: 1 })
  expect([next.status, codeOf(next)]).toEqual([429, 'too-many-open-payments'])
  await expect.poll(async () => (await pay(shop, payer)).status, { timeout: 60_000 }).toBe(200)
})

test('a release voids a verified payment at once, by its own token only, and never one whose settlement was requested', async () => {
  const [shop, payer] = [await aShop('hobby'), await aPayer(chain)]
  const validBefore = String(Math.floor(Date.now() / 1_000) + 86_400)
  const credential = await credentialFor(shop, payer, '0.01', validBefore)
  const verified = await verify(shop, credential, '0.01')
  const release = (settlementToken: unknown, { org }: Shop = shop, payment = verified) =>
    world.call(org.testKey, 'POST', `/payments/${String(payment.body.paymentId)}/release`, { settlementToken })
  const other = await pay(shop, await aPayer(chain))
  const refusals = [
    await release(other.body.settlementToken),
    await release(verified.body.settlementToken, await aShop()),
  ]
  expect(refusals.map((answer) => [answer.status, codeOf(answer)])).toEqual([
    [422, 'settlement-token-invalid'],
    [404, 'payment-not-found'],
  ])
  expect(await statusOf(shop, verified)).toBe('verified')
  for (const _ of [0, 1]) {
    const released = await release(verified.body.settlementToken)
    expect(released.body).toMatchObject({ status: 'voided', failureReason: 'released', txHash: null })
  }
  expect([await used(shop), await reserved(shop)]).toMatchObject([{ used: 1 }, 100_000n])
  const settle = { paymentId: verified.body.paymentId, settlementToken: verified.body.settlementToken }
  expect(codeOf(await world.call(shop.org.testKey, 'POST', '/payments/settle', settle))).toBe('payment-voided')

  const settled = { paymentId: other.body.paymentId, settlementToken: other.body.settlementToken }
  expect((await world.call(shop.org.testKey, 'POST', '/payments/settle', settled)).status).toBe(200)
  const late = await release(other.body.settlementToken, shop, other)
  expect([late.status, codeOf(late)]).toEqual([409, 'payment-in-settlement'])

  await sendByAnybody(credential)
  aheadMs = hourMs
  await expect.poll(() => statusOf(shop, verified), { timeout: 60_000 }).toBe('settled')
  aheadMs = 0
})

/** The month of the instant that is so far ahead, as `2026-11`. */
function monthOf(laterMs: number): string {
  return new Date(Date.now() + laterMs).toISOString().slice(0, 7)
}

test('a payment that is not settled within an hour is voided and releases its count and its gas, once; money that moves later settles it', async () => {
  // All of it happens in one month: the last hours of this one are left out.
  const beginMs = monthOf(4 * hourMs) === monthOf(0) ? 0 : 4 * hourMs
  aheadMs = beginMs
  const [shop, payer] = [await aShop('hobby'), await aPayer(chain)]
  const validBefore = String(Math.floor(Date.now() / 1_000) + 86_400)
  const credential = await credentialFor(shop, payer, '0.01', validBefore)
  const verified = await verify(shop, credential, '0.01')
  expect([verified.status, await reserved(shop)]).toEqual([200, 100_000n])
  aheadMs = beginMs + hourMs + 1_000
  await expect.poll(() => statusOf(shop, verified), { timeout: 60_000 }).toBe('voided')
  expect(await reserved(shop)).toBe(0n)
  expect(await used(shop)).toMatchObject({ used: 0 })
  expect((await world.call(shop.org.testKey, 'POST', '/billing/rebuild-cache')).body).toEqual({ rebuilt: true })
  expect(await used(shop)).toMatchObject({ used: 0 })
  const again = await verify(shop, credential, '0.01')
  expect([again.status, codeOf(again)], 'its claim stays').toEqual([409, 'duplicate-payment'])

  await sendByAnybody(credential)
  aheadMs = beginMs + 3 * hourMs
  await expect.poll(() => statusOf(shop, verified), { timeout: 60_000 }).toBe('settled')
  expect(await used(shop)).toMatchObject({ used: 1 })
  await world.call(shop.org.testKey, 'POST', '/billing/rebuild-cache')
  expect(await used(shop)).toMatchObject({ used: 1 })
  aheadMs = 0
})

test('sessions of unsettled payments do not use up the vault quota, and their vaults end with them', async () => {
  const shop = await aShop('hobby')
  for (const _ of [0, 1, 2]) {
    const { body } = await pay(shop, await aPayer(chain))
    expect((await world.call(shop.org.testKey, 'POST', '/sessions', { paymentId: body.paymentId })).status).toBe(201)
  }
  expect((await world.call(shop.org.testKey, 'POST', '/vaults', {})).status).toBe(201)
  expect((await world.call(shop.org.testKey, 'GET', '/vaults/quota')).body.active).toMatchObject({ used: 1, limit: 3 })
})

const Credential = z.object({
  accepted: z.object({ asset: z.templateLiteral(['0x', z.string()]) }),
  payload: z.object({
    signature: z.templateLiteral(['0x', z.string()]),
    authorization: z.object({
      from: z.templateLiteral(['0x', z.string()]),
      to: z.templateLiteral(['0x', z.string()]),
      value: z.string(),
      validAfter: z.string(),
      validBefore: z.string(),
      nonce: z.templateLiteral(['0x', z.string()]),
    }),
  }),
})

/** Sends a signed authorization, as any observer can. */
async function sendByAnybody(credential: string): Promise<void> {
  const { accepted, payload } = Credential.parse(JSON.parse(Buffer.from(credential, 'base64').toString('utf8')))
  const { value, validAfter, validBefore, ...parties } = payload.authorization
  const authorization: TransferAuthorization = {
    ...parties,
    value: BigInt(value),
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
  }
  const signature = { kind: 'bytes', signature: payload.signature } as const
  await sendFromDevAccount(chain, accepted.asset, encodeTransferWithAuthorization(authorization, signature))
}
