import { type DevChain, fundToken, startChain } from '@purser/devnet'
import { type Hex, keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { followTransactions } from '../../src/features/payments/methods/mpp-tempo/follow.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type LyingNode, startLyingNode } from '../lying-node.ts'
import { runOnce } from '../run-once.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { aTempoPayer, aTempoWallet, fundSponsor, nodeCall, offerOf, type TempoPayer } from '../tempo-payer.ts'
import { StoppedClock } from '../webhooks/clock.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, type World } from '../world.ts'

/** A process that only answers: the chain is read for an open payment when a test does it. */
let chain: DevChain
let node: LyingNode
let world: World
let screening: FakeScreening
const clock = new StoppedClock()

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  node = await startLyingNode(chain.rpcUrl)
  screening = createFakeScreening(() => clock.now())
  const config = { role: 'api', settleWaitMs: 50, sponsorTempoFees: true } as const
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'tempo-moderato': [node.url] },
    config,
    boot: { clock, screening },
  })
  await fundSponsor(chain, world.server.settlerAddress)
})
afterEach(() => node.tellTheTruth())
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await chain?.stop()
})

async function aShop(price = '0.01', token = 'pathUSD') {
  const org = await world.organisation('hobby')
  const wallet = await aTempoWallet(world, org, 'tempo-moderato', token)
  const requested = { walletId: wallet.id, resource: 'https://api.example.com/weather', price }
  const offer = async () => offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', requested))
  const sign = async (payer: TempoPayer, nonceKey: bigint, sponsored = false): Promise<string> =>
    payer.pull(await offer(), { nonceKey, validSeconds: 600, sponsored })
  const verify = (credential: string): Promise<Answer> =>
    world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'mpp', credential, ...requested })
  const pay = async (payer: TempoPayer, nonceKey: bigint, sponsored = false): Promise<Answer> =>
    verify(await sign(payer, nonceKey, sponsored))
  return { org, offer, sign, verify, pay }
}

/** The node takes transactions, and no block includes them. */
function keepFromBlocks(): void {
  node.lie('eth_sendRawTransaction', ({ params: [raw] }) => ({ result: keccak256(z.custom<Hex>().parse(raw)) }))
}

/** Lets seconds pass for the transactions of the organisation that are on their way. */
async function wait(org: Org, seconds: number): Promise<void> {
  await world.database.db.run(sql`
    update payments set created_at = created_at - ${seconds}::int * interval '1 second' where status = 'settling' and organisation_id = ${org.id}`)
}

const noFee = { error: { code: -32_000, message: 'insufficient fee token balance' } }

async function usedBy(org: Org) {
  const Row = z.object({ places: z.bigint(), nanoUsd: z.string() })
  return world.database.db.one(
    Row,
    sql`
    select (select coalesce(sum(used), 0)::bigint from usage_counters where organisation_id = ${org.id} and kind = 'payments') as places,
      (select coalesce(sum(nano_usd), 0)::text from gas_budgets where organisation_id = ${org.id}) as nano_usd`,
  )
}

/** Reads the chain for the organisation's payments and no others, and returns their statuses. */
async function follow(org: Org): Promise<unknown[]> {
  await world.database.db.run(sql`
    update payments set check_at = now() + case when organisation_id = ${org.id} then interval '-1 second' else interval '1 hour' end where status = 'settling'`)
  await runOnce(world.server.deps, followTransactions)
  return (await world.call(org.testKey, 'GET', '/payments/logs')).list.map(({ status }) => status)
}

test('transactions that the nodes refuse take no place in the month from honest buyers', async () => {
  const { org, pay } = await aShop()
  const [poor, honest] = [await aTempoPayer(chain), await aTempoPayer(chain)]
  node.lie('eth_sendRawTransaction', () => noFee)
  const refused = await Promise.all(Array.from({ length: 100 }, (_, index) => pay(poor, BigInt(index + 1))))
  expect(countByStatus(refused)).toEqual({ 402: 100 })
  expect((await usedBy(org)).places).toBe(0n)
  node.tellTheTruth()
  expect((await pay(honest, 1n)).status).toBe(200)
})

test('a refused transaction that a block includes nevertheless is settled and counted once', async () => {
  const { org, pay } = await aShop()
  node.lie('eth_sendRawTransaction', async ({ truth }) => {
    await truth()
    return noFee
  })
  node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  expect((await pay(await aTempoPayer(chain), 1n)).status).toBe(402)
  expect((await usedBy(org)).places).toBe(0n)
  node.tellTheTruth()
  expect(await follow(org)).toEqual(['settled'])
  expect((await usedBy(org)).places).toBe(1n)
})

test('a transaction that a block includes before the nodes refuse it is not refused', async () => {
  const { org, pay } = await aShop()
  node.lie('eth_sendRawTransaction', async ({ params: [raw], truth }) => {
    await truth()
    const hash = keccak256(z.custom<Hex>().parse(raw))
    await expect.poll(() => nodeCall(chain, 'eth_getTransactionReceipt', [hash])).not.toBeNull()
    return noFee
  })
  expect((await pay(await aTempoPayer(chain), 1n)).status).toBe(200)
  expect((await usedBy(org)).places).toBe(1n)
  expect(await follow(org)).toEqual(['settled'])
  expect((await usedBy(org)).places).toBe(1n)
})

test('transactions in no block after ten seconds give their places to honest buyers, and are counted again once a block includes them', async () => {
  const { org, pay } = await aShop()
  const [poor, honest] = [await aTempoPayer(chain), await aTempoPayer(chain)]
  keepFromBlocks()
  const open = await Promise.all(Array.from({ length: 100 }, (_, index) => pay(poor, BigInt(index + 1))))
  expect(countByStatus(open)).toEqual({ 200: 100 })
  node.tellTheTruth()
  expect(codeOf(await pay(honest, 1n)), 'they may be in the next block').toBe('payment-limit-reached')
  await wait(org, 11)
  expect((await pay(honest, 2n)).status).toBe(200)
  expect((await usedBy(org)).places).toBe(1n)
  await world.call(org.testKey, 'POST', '/billing/rebuild-cache')
  expect((await usedBy(org)).places, 'a rebuilt counter').toBe(1n)
  // A block may come later than the repeated broadcast.
  await expect.poll(async () => new Set(await follow(org))).toEqual(new Set(['settled']))
  expect((await usedBy(org)).places).toBe(101n)
}, 120_000)

test('a payer whose transactions are in no block after ten seconds has a tenth of the month', async () => {
  const { org, pay } = await aShop()
  const poor = await aTempoPayer(chain)
  keepFromBlocks()
  for (let index = 1n; index <= 11n; index += 1n) expect((await pay(poor, index)).status).toBe(200)
  await wait(org, 11)
  expect(codeOf(await pay(poor, 12n))).toBe('too-many-open-payments')
  expect((await pay(await aTempoPayer(chain), 1n)).status, 'another payer').toBe(200)
})

test('sponsored transactions in no block after ten seconds give their gas to the next one', async () => {
  const { org, sign, verify } = await aShop()
  const [first, second] = [
    await sign(await aTempoPayer(chain), 1n, true),
    await sign(await aTempoPayer(chain), 1n, true),
  ]
  keepFromBlocks()
  expect((await verify(first)).status).toBe(200)
  await world.database.db.run(
    sql`update gas_budgets set nano_usd = ${world.server.deps.settleNanoUsdPerDayMax.toString()}::numeric where organisation_id = ${org.id}`,
  )
  node.tellTheTruth()
  const early = await verify(second)
  expect(codeOf(early)).toBe('settlement-budget-exceeded')
  await wait(org, 11)
  expect((await verify(second)).status).toBe(200)
})

test('a refusal after the first broadcast gives the place back', async () => {
  const { org, pay } = await aShop()
  keepFromBlocks()
  expect((await pay(await aTempoPayer(chain), 1n)).status).toBe(200)
  node.lie('eth_sendRawTransaction', () => noFee)
  expect(await follow(org)).toEqual(['settling'])
  expect((await usedBy(org)).places).toBe(0n)
  node.tellTheTruth()
  const sent = node.requested('eth_sendRawTransaction')
  expect(await follow(org)).toEqual(['settling'])
  expect(node.requested('eth_sendRawTransaction'), 'it is not sent again').toBe(sent)
})

test.each(['payer', 'receiver'])('a payment whose %s is listed before it is sent again is not sent', async (party) => {
  const { org, offer, verify } = await aShop()
  const payer = await aTempoPayer(chain)
  node.lie('eth_sendRawTransaction', () => ({ error: { code: -32_000, message: 'overloaded' } }))
  const paid = await verify(await payer.pull(await offer(), { nonceKey: 1n, validSeconds: 600, sponsored: false }))
  expect(paid.status).toBe(200)
  const { payTo } = await world.database.db.one(
    z.object({ payTo: z.string() }),
    sql`select pay_to from payments where organisation_id = ${org.id}`,
  )
  const listed = party === 'payer' ? payer.account.address : payTo
  screening.setResult(listed, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  node.tellTheTruth()
  const sent = node.requested('eth_sendRawTransaction')
  expect(await follow(org)).toEqual(['settling'])
  expect(await follow(org)).toEqual(['settling'])
  expect(node.requested('eth_sendRawTransaction')).toBe(sent)
  expect((await usedBy(org)).places, 'it gives its place back').toBe(0n)
})

test('a transaction that a block includes while the nodes refuse its repeat keeps its place', async () => {
  const { org, pay } = await aShop()
  node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  expect((await pay(await aTempoPayer(chain), 1n)).status).toBe(200)
  node.lie('eth_sendRawTransaction', () => {
    node.lie('eth_getTransactionReceipt', ({ truth }) => truth())
    return noFee
  })
  expect(await follow(org)).toEqual(['settling'])
  expect((await usedBy(org)).places).toBe(1n)
  expect(await follow(org)).toEqual(['settled'])
  expect((await usedBy(org)).places).toBe(1n)
})

/** Marks a payment as a process of an earlier release does, which frees nothing. */
async function markAsBefore({ body }: Answer): Promise<void> {
  await world.database.db.run(
    sql`update payments set failure_reason = 'transaction_refused_insufficient-fee' where id = ${String(body.paymentId)}`,
  )
}

test('what a process of an earlier release recorded as refused gives its place back by itself, and is counted again if it settles', async () => {
  const { org, pay } = await aShop()
  keepFromBlocks()
  const response = await pay(await aTempoPayer(chain), 1n)
  await markAsBefore(response)
  expect((await usedBy(org)).places).toBe(1n)
  expect(await follow(org)).toEqual(['settling'])
  expect((await usedBy(org)).places).toBe(0n)
  const { raw } = await world.database.db.one(
    z.object({ raw: z.string() }),
    sql`select settlement ->> 'raw' as raw from payments where id = ${String(response.body.paymentId)}`,
  )
  await nodeCall(chain, 'eth_sendRawTransaction', [raw])
  await expect.poll(() => follow(org), { timeout: 60_000 }).toEqual(['settled'])
  expect((await usedBy(org)).places).toBe(1n)
})

test('a payer whose sponsored transaction failed in a block pays its own fees for a day, at every seller', async () => {
  const [dear, cheap, other] = [await aShop('600'), await aShop('500'), await aShop()]
  const payer = await aTempoPayer(chain)
  keepFromBlocks()
  expect((await dear.pay(payer, 1n, true)).status).toBe(200)
  await payer.broadcast(await cheap.offer())
  node.tellTheTruth()
  await follow(dear.org)
  expect(await follow(dear.org)).toEqual(['settlement_failed'])
  const refused = await other.pay(payer, 2n, true)
  expect([refused.status, refused.body.message]).toEqual([
    402,
    'a sponsored transaction of this payer failed in the last day; sign one that pays its own fee',
  ])
  expect((await other.pay(payer, 2n)).status, 'it pays its own fee').toBe(200)
  expect((await other.pay(await aTempoPayer(chain), 1n, true)).status, 'another payer').toBe(200)
  await world.database.db.run(sql`update sponsored_failures set failed_at = failed_at - interval '1 day'`)
  expect((await other.pay(payer, 3n, true)).status, 'a day later').toBe(200)
})

test('five sponsored transactions of a payer are on their way at once, at all sellers together', async () => {
  const [one, two] = [await aShop(), await aShop()]
  const payer = await aTempoPayer(chain)
  keepFromBlocks()
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? one : two).pay(payer, BigInt(index + 1), true)),
  )
  expect(countByStatus(answers)).toEqual({ 200: 5, 429: 7 })
  expect(codeOf(await two.pay(payer, 20n, true))).toBe('too-many-open-payments')
  expect((await two.pay(payer, 21n)).status, 'it pays its own fee').toBe(200)
  node.tellTheTruth()
  for (const { org } of [one, two, one, two]) await follow(org)
  expect((await two.pay(payer, 22n, true)).status).toBe(200)
})

test('five sponsored transactions of a payer are on their way at once, also where its tokens differ', async () => {
  const shops = [await aShop('0.01', 'pathUSD'), await aShop('0.01', 'AlphaUSD')]
  const payer = await aTempoPayer(chain)
  await fundToken(chain, 'AlphaUSD', payer.account.address, 1_000_000n)
  keepFromBlocks()
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => shops[index % 2]?.pay(payer, BigInt(index + 1), true)),
  )
  expect(countByStatus(answers.filter((response) => response !== undefined))).toEqual({ 200: 5, 429: 7 })
})

test('a refused sponsored transaction gives its gas back at once, and its end gives nothing back again', async () => {
  const { org, pay } = await aShop()
  node.lie('eth_sendRawTransaction', () => noFee)
  expect((await pay(await aTempoPayer(chain), 1n, true)).status).toBe(402)
  expect(await usedBy(org)).toEqual({ places: 0n, nanoUsd: '0' })
  const before = await aShop()
  keepFromBlocks()
  await markAsBefore(await before.pay(await aTempoPayer(chain), 1n))
  expect((await usedBy(before.org)).places).toBe(1n)
  await nodeCall(chain, 'anvil_mine', ['0x8c', '0x5'])
  await expect.poll(() => follow(org), { timeout: 60_000 }).toEqual(['settlement_failed'])
  expect(await usedBy(org)).toEqual({ places: 0n, nanoUsd: '0' })
  await expect.poll(() => follow(before.org), { timeout: 60_000 }).toEqual(['settlement_failed'])
  expect((await usedBy(before.org)).places, 'recorded by an earlier release').toBe(0n)
})
