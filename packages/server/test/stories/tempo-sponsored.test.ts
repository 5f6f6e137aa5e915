import { type DevChain, fundToken, startChain, startFaultProxy, tokenBalance } from '@purser/devnet'
import { decodeMppJson, type MppChallenge, parseTempoChargeRequest } from '@purser/protocol'
import type { Address } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aTempoPayer, aTempoWallet, fundSponsor, nodeCall, offerOf, push, type TempoPayer } from '../tempo-payer.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, type World } from '../world.ts'

let chain: DevChain
let world: World
let settler: Address
const clock = new ShiftedClock()

const resource = 'https://api.example.com/weather'
const price = 10_000n
/** In billionths of a US dollar. A payer's open payments reserve a tenth at most: twelve fees. */
const budget = 90_000_000n
const gas = 700_000n

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  world = await aWorld({
    chains: [chain],
    config: { sponsorTempoFees: true, settleNanoUsdPerDayMax: budget },
    boot: { clock },
  })
  settler = z.templateLiteral(['0x', z.string()]).parse(world.server.settlerAddress)
  await fundSponsor(chain, settler)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

/** A new organisation with its own daily gas budget. */
async function aShop() {
  const org = await world.organisation()
  const wallet = await aTempoWallet(world, org)
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  return {
    org,
    wallet,
    challenge: async () => offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested)),
    verify: (credential: string): Promise<Answer> =>
      world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'mpp', credential, ...requested }),
  }
}

/** A payer with exactly the money for its payments and nothing for fees. */
async function aPayerWithoutFees(payments = 1n): Promise<TempoPayer> {
  const payer = await aTempoPayer(chain, { funded: false })
  await fundToken(chain, 'pathUSD', payer.account.address, price * payments)
  return payer
}

function outcomeOf({ status, body: { reason, message } }: Answer): string {
  return `${status} ${String(reason)} ${String(message)}`
}

function promisesFee(offer: MppChallenge): boolean | undefined {
  return parseTempoChargeRequest(decodeMppJson(offer.request) ?? {})?.feePayer
}

async function taken(org: Org): Promise<bigint> {
  const row = await world.database.db.maybeOne(
    z.object({ nanoUsd: z.string() }),
    sql`select nano_usd::text as nano_usd from gas_budgets where organisation_id = ${org.id}`,
  )
  return row === undefined ? 0n : BigInt(row.nanoUsd)
}

test('a payer with exactly the price pays it to the last unit, and the service pays the fee', async () => {
  const { org, wallet, challenge, verify } = await aShop()
  const payer = await aPayerWithoutFees()
  const before = await tokenBalance(chain, 'pathUSD', settler)
  const offer = await challenge()
  expect(promisesFee(offer)).toBe(true)
  const response = await verify(await payer.pull(offer, { gas }))
  expect([response.status, response.body.settlementPending]).toEqual([200, false])
  expect(await tokenBalance(chain, 'pathUSD', payer.account.address)).toBe(0n)
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  const fee = before - (await tokenBalance(chain, 'pathUSD', settler))
  expect(fee).toBeGreaterThan(0n)
  expect(fee).toBeLessThan((gas * 20_000_000_000n) / 10n ** 12n)
  expect(((await taken(org)) + 999n) / 1_000n, 'the day is charged with the fee that was paid').toBe(fee)
})

test('a payer who pays their own fee without need costs the service nothing', async () => {
  const { org, challenge, verify } = await aShop()
  const before = await tokenBalance(chain, 'pathUSD', settler)
  const payer = await aTempoPayer(chain)
  expect((await verify(await payer.pull(await challenge(), { sponsored: false }))).status).toBe(200)
  expect(await tokenBalance(chain, 'pathUSD', settler)).toBe(before)
  expect(await taken(org)).toBe(0n)
})

test('a used up daily budget ends sponsoring: 429 for an earlier sponsored challenge, and no new one is sponsored', async () => {
  const { org, challenge, verify } = await aShop()
  const payer = await aPayerWithoutFees(2n)
  const [first, second] = [await challenge(), await challenge()]
  expect((await verify(await payer.pull(first, { gas }))).status).toBe(200)
  await world.database.db.run(sql`
    update gas_budgets set nano_usd = ${(budget - gas + 1n).toString()} where organisation_id = ${org.id}`)
  const refused = await verify(await payer.pull(second, { gas }))
  expect([refused.status, codeOf(refused)]).toEqual([429, 'settlement-budget-exceeded'])
  expect(promisesFee(await challenge())).not.toBe(true)
  expect(promisesFee(await (await aShop()).challenge())).toBe(true)
})

const greedy = [
  ['requests more gas than a payment uses', { gas: 1_000_001n }, 'the gas limit is above'],
  [
    'offers the highest fee as its tip',
    { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 100_000_000_000n },
    'maxPriorityFeePerGas is above',
  ],
  ['offers more for gas than the limit', { maxFeePerGas: 100_000_000_001n }, 'maxFeePerGas is above'],
  ['runs out of gas', { gas: 60_000n }, 'the gas limit is too low'],
  ['pays more than the payer has', { amount: price * 2n }, 'the amount is not the requested one'],
] as const

test.each(greedy)('a sponsored transaction that %s is not signed', async (_name, changes, words) => {
  const { org, challenge, verify } = await aShop()
  const before = await tokenBalance(chain, 'pathUSD', settler)
  const payer = await aPayerWithoutFees()
  const response = await verify(await payer.pull(await challenge(), changes))
  expect([response.status, response.body.reason]).toEqual([402, 'verification-failed'])
  expect(response.body.message).toContain(words)
  expect(await tokenBalance(chain, 'pathUSD', settler)).toBe(before)
  expect(await taken(org)).toBe(0n)
})

test('a sponsored transaction that would fail is not signed: its payer has no money', async () => {
  const { org, challenge, verify } = await aShop()
  const payer = await aTempoPayer(chain, { funded: false })
  const response = await verify(await payer.pull(await challenge(), { gas }))
  expect([response.status, response.body.message]).toEqual([402, 'the payer holds too little of the token'])
  expect(await taken(org)).toBe(0n)
})

test('of sponsored transactions that together exceed their payer’s balance, at two shops at once, only those that it can pay are signed and sent', async () => {
  const [one, two] = [await aShop(), await aShop()]
  const payer = await aPayerWithoutFees(2n)
  const shops = [one, two, one, two, one, two]
  const credentials = await Promise.all(shops.map(async ({ challenge }) => payer.pull(await challenge(), { gas })))
  const before = await tokenBalance(chain, 'pathUSD', settler)
  await nodeCall(chain, 'evm_setAutomine', [false])
  await nodeCall(chain, 'evm_setIntervalMining', [0])
  const answers: Answer[] = []
  const verifying = credentials.map(async (credential, index) => {
    const response = await shops[index]?.verify(credential)
    if (response !== undefined) answers.push(response)
  })
  await expect.poll(() => answers.length, { timeout: 15_000 }).toBe(4)
  expect(answers.map(outcomeOf)).toEqual(
    Array.from({ length: 4 }, () => '402 verification-failed The authorization was refused: insufficient_funds.'),
  )
  await nodeCall(chain, 'evm_setIntervalMining', [1])
  await nodeCall(chain, 'evm_setAutomine', [true])
  await Promise.all(verifying)
  expect(countByStatus(answers)).toEqual({ 200: 2, 402: 4 })
  const fees = before - (await tokenBalance(chain, 'pathUSD', settler))
  const charged = (await taken(one.org)) + (await taken(two.org))
  // Each fee is rounded up to a unit of the token.
  expect(fees - charged / 1_000n, 'the days are charged with the fees of two payments').toBeLessThanOrEqual(2n)
  expect(fees * 1_000n).toBeGreaterThanOrEqual(charged)
  // Payments that are in a block do not count against the balance twice.
  const next = await one.challenge()
  await fundToken(chain, 'pathUSD', payer.account.address, price)
  expect((await one.verify(await payer.pull(next, { gas }))).status).toBe(200)
})

test('a sponsored challenge requests a transaction, and a hash that is bound to it is credited too', async () => {
  const { org, wallet, challenge, verify } = await aShop()
  const payer = await aTempoPayer(chain)
  const offer = await challenge()
  expect(parseTempoChargeRequest(decodeMppJson(offer.request) ?? {})).toMatchObject({
    feePayer: true,
    supportedModes: ['pull'],
  })
  const hash = await payer.broadcast(offer)
  const response = await verify(push(offer, hash, payer))
  expect([response.status, response.body.settlementPending, response.body.txHash]).toEqual([200, false, hash])
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  expect((await world.call(org.testKey, 'GET', '/payments/logs')).list).toMatchObject([
    { status: 'settled', txHash: hash, amount: '0.01', payer: payer.account.address },
  ])
  expect(await taken(org)).toBe(0n)
  expect(codeOf(await verify(push(offer, hash, payer)))).toBe('duplicate-payment')
})

test('a push for one sponsored challenge is credited to that challenge alone, once, also by many requests at once', async () => {
  const { org, wallet, challenge, verify } = await aShop()
  const payer = await aTempoPayer(chain)
  const [paid, unpaid] = [await challenge(), await challenge()]
  const hash = await payer.broadcast(paid)
  const refused = await verify(push(unpaid, hash, payer))
  expect([refused.status, refused.body.reason]).toEqual([402, 'verification-failed'])
  const credentials = [paid, unpaid, paid, unpaid, paid].map((offer) => push(offer, hash, payer))
  const answers = await Promise.all(credentials.map((credential) => verify(credential)))
  expect(answers.filter(({ status }) => status === 200).length).toBe(1)
  for (const offer of [paid, unpaid]) expect(codeOf(await verify(push(offer, hash, payer)))).toBe('duplicate-payment')
  // The challenge is paid: a transaction for it is neither signed nor sent.
  expect(codeOf(await verify(await payer.pull(paid, { gas })))).toBe('duplicate-payment')
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  expect((await world.call(org.testKey, 'GET', '/payments/logs')).list).toMatchObject([{ txHash: hash }])
  expect(await taken(org)).toBe(0n)
})

test('without sponsoring, or without money for it, no challenge is sponsored', async () => {
  const off = await aWorld({ chains: [chain] })
  const poor = await aWorld({ chains: [chain], config: { sponsorTempoFees: true } })
  for (const other of [off, poor]) {
    const org = await other.organisation()
    const wallet = await aTempoWallet(other, org)
    const requested = { walletId: wallet.id, resource, price: '0.01' }
    const offer = offerOf(await other.call(org.testKey, 'POST', '/payments/challenge', requested))
    expect(promisesFee(offer)).not.toBe(true)
    await other.stop()
  }
})

test('a failing node is queried for the sponsor’s balance once for many unpaid requests, and none of them is sponsored', async () => {
  const node = await startFaultProxy(chain.rpcUrl)
  const now = new Date()
  const other = await aWorld({
    rpcUrls: { 'tempo-moderato': [node.url] },
    config: { sponsorTempoFees: true, role: 'api' },
    boot: { clock: { now: () => now } },
  })
  try {
    const org = await other.organisation()
    const wallet = await aTempoWallet(other, org)
    const requested = { walletId: wallet.id, resource, price: '0.01' }
    node.set('error500')
    const before = node.requests
    for (let request = 0; request < 5; request += 1) {
      const offer = offerOf(await other.call(org.testKey, 'POST', '/payments/challenge', requested))
      expect(promisesFee(offer)).not.toBe(true)
    }
    expect(node.requests - before).toBe(1)
  } finally {
    await other.stop()
    await node.stop()
  }
})

test('pushed money is in the log also where the quota is used up, and where the challenge has expired since', async () => {
  const hobby = await world.organisation('hobby')
  const wallet = await aTempoWallet(world, hobby)
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  const month = clock.now().toISOString().slice(0, 7)
  await world.database.db.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used) values (${hobby.id}, 'test', 'payments', ${month}, 1000000)
    on conflict (organisation_id, environment, kind, period) do update set used = excluded.used`)
  const payer = await aTempoPayer(chain)
  const offer = offerOf(await world.call(hobby.testKey, 'POST', '/payments/challenge', requested))
  const credential = push(offer, await payer.broadcast(offer), payer)
  clock.forward(400_000)
  const response = await world.call(hobby.testKey, 'POST', '/payments/verify', {
    protocol: 'mpp',
    credential,
    ...requested,
  })
  expect([response.status, response.body.settlementPending]).toEqual([200, false])
  expect((await world.call(hobby.testKey, 'GET', '/payments/logs')).list).toMatchObject([{ status: 'settled' }])
})

test('a challenge that was paid after the price rose is credited after its expiry, and buys nothing', async () => {
  const own = await world.organisation()
  const wallet = await aTempoWallet(world, own)
  const route = { walletId: wallet.id, resource, price: '0.01', method: 'GET' }
  const payer = await aTempoPayer(chain)
  const offer = offerOf(await world.call(own.testKey, 'POST', '/payments/challenge', route))
  const credential = push(offer, await payer.broadcast(offer), payer)
  clock.forward(400_000)
  const shown = { ...route, protocol: 'mpp', credential, price: '0.02' }
  const response = await world.call(own.testKey, 'POST', '/payments/verify', shown)
  expect([response.status, response.body.reason]).toEqual([402, 'payment-insufficient'])
  expect((await world.call(own.testKey, 'GET', '/payments/logs')).list).toMatchObject([{ status: 'settled' }])
})

test('pushed money is credited though the secret of its challenge was replaced since', async () => {
  const { challenge, verify, org } = await aShop()
  const payer = await aTempoPayer(chain)
  const offer = await challenge()
  const credential = push(offer, await payer.broadcast(offer), payer)
  const { keyEncryption } = world.config
  const KEY_ENCRYPTION_KEY = 'base64' in keyEncryption ? keyEncryption.base64 : ''
  const rotated = await runAdmin(['rotate-mpp-secret'], { DATABASE_URL: world.database.url, KEY_ENCRYPTION_KEY })
  expect(rotated.exitCode).toBe(0)
  clock.forward(400_000)
  expect((await verify(credential)).status).toBe(200)
  expect((await world.call(org.testKey, 'GET', '/payments/logs')).list).toMatchObject([{ status: 'settled' }])
})
