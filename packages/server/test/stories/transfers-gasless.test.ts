import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createPublicClient, createTestClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { gasOfGasless } from '../../src/features/wallets/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aPayer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let base: DevChain
let world: World
let org: Org

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [base], config: { transferWaitMs: 20_000 } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
})

const masters = '/wallet-infra/master-wallets'
const path = '/wallet-infra/transfer'

interface Child {
  readonly id: string
  readonly address: Address
  readonly master: Address
}

/** A child with this much USDC and no coin, of a master that has none either. */
async function aPoorChild(rawUsdc: bigint, of: Org = org): Promise<Child> {
  const master = await world.call(of.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const { body } = await world.call(of.testKey, 'POST', `${masters}/${master.body.id}/child-addresses`, {})
  if (rawUsdc > 0n) await fundToken(base, 'USDC', body.address as Address, rawUsdc)
  return { id: String(body.id), address: body.address as Address, master: master.body.address as Address }
}

const stranger = (): Address => privateKeyToAddress(generatePrivateKey())

function bodyFrom(child: Child, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '2.5', toAddress: stranger() }
  return { fromWalletId: child.id, ...usual, ...changes }
}

function send(body: Record<string, unknown>, at = world.base): Promise<Answer> {
  return request(at, { key: org.testKey, method: 'POST', path, body })
}

const usdc = (address: Address) => tokenBalance(base, 'USDC', address)
const wei = (address: Address) => createPublicClient({ transport: http(base.rpcUrl) }).getBalance({ address })

/** The steps that it sent itself; empty for a gasless transfer. */
async function stepsOf(transferId: unknown): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ kind: z.string() }),
    sql`select kind from transfer_steps where transfer_id = ${String(transferId)} order by position`,
  )
  return rows.map(({ kind }) => kind)
}

test('a child pays out its last unit without gas of its own or of its master, and the answer says that it costs nothing', async () => {
  const child = await aPoorChild(2_500_000n)
  const body = bodyFrom(child)
  const quoted = await world.call(org.testKey, 'POST', `${path}/quote`, body)
  const sent = await send(body)
  const reported = { feeAmount: '0', feeToken: 'ETH', route: 'direct', amount: '2.5', toAmount: '2.5' }
  expect([quoted.status, quoted.body]).toMatchObject([200, reported])
  expect([sent.status, sent.body]).toMatchObject([201, { ...reported, status: 'confirmed' }])
  expect(sent.body.routeReason).toBe(quoted.body.routeReason)
  expect(sent.body.routeReason).toContain('The service pays the gas.')
  expect(await Promise.all([usdc(body.toAddress), usdc(child.address)])).toEqual([2_500_000n, 0n])
  expect(await Promise.all([wei(child.address), wei(child.master)])).toEqual([0n, 0n])
  const hash = String(sent.body.txHash) as `0x${string}`
  const { from } = await createPublicClient({ transport: http(base.rpcUrl) }).getTransaction({ hash })
  expect(from).toBe(world.server.settlerAddress.toLowerCase())
  const ended = async () => {
    const row = sql`select count(*) as count from transfers t join transfer_authorisations a on a.transfer_id = t.id
      where t.id = ${String(sent.body.id)} and t.ended_at is not null and a.status = 'ended'`
    return (await world.database.db.one(z.object({ count: z.bigint() }), row)).count
  }
  await expect.poll(ended).toBe(1n)
  const events = sql`select count(*) as count from events where payload ->> 'transactionId' = ${String(sent.body.id)}`
  expect((await world.database.db.one(z.object({ count: z.bigint() }), events)).count, 'it ended as reported').toBe(0n)
})

test('of two transfers of a child’s whole balance, at once and at two processes, one is sent and the other is refused', async () => {
  const second = await world.another({ role: 'api' })
  for (let round = 0; round < 5; round++) {
    const child = await aPoorChild(2_500_000n)
    const bodies = [bodyFrom(child), bodyFrom(child)] as const
    const answers = await Promise.all([send(bodies[0]), send(bodies[1], second.base)])
    expect(countByStatus(answers)).toEqual({ 201: 1, 422: 1 })
    expect(answers.map(codeOf).toSorted()).toEqual(['', 'insufficient-balance'])
    const refused = answers.find(({ status }) => status === 422)
    expect(refused?.body.balances).toEqual([{ token: 'USDC', required: '2.5', available: '0' }])
    const arrived = await Promise.all(bodies.map(({ toAddress }) => usdc(toAddress)))
    expect(arrived.toSorted()).toEqual([0n, 2_500_000n])
  }
})

test('of twenty transfers at once out of a child that can pay eight, eight are accepted, and all of them arrive', async () => {
  const child = await aPoorChild(20_000_000n)
  const bodies = Array.from({ length: 20 }, () => bodyFrom(child))
  const answers = await Promise.all(bodies.map((body) => send(body)))
  expect(countByStatus(answers)).toEqual({ 201: 8, 422: 12 })
  const arrived = await Promise.all(bodies.map(({ toAddress }) => usdc(toAddress)))
  expect(arrived).toEqual(answers.map(({ status }) => (status === 201 ? 2_500_000n : 0n)))
})

test('a child that has gas sends by itself, and one that sends the coin is topped up by its master', async () => {
  const child = await aPoorChild(5_000_000n)
  await fundNative(base, child.address, 10n ** 17n)
  const own = await send(bodyFrom(child))
  expect([own.status, await stepsOf(own.body.id)]).toEqual([201, ['send']])
  expect(own.body.feeAmount).not.toBe('0')

  const other = await aPoorChild(0n)
  await fundNative(base, other.master, 10n ** 17n)
  await fundNative(base, other.address, 10n ** 15n)
  const body = bodyFrom(other, { fromToken: 'ETH', toToken: 'ETH', amount: '0.001' })
  const coin = await send(body)
  expect([coin.status, await stepsOf(coin.body.id)]).toEqual([201, ['top-up', 'send']])
  expect(await wei(body.toAddress)).toBe(10n ** 15n)
})

test('a transfer that is worth less than its gas is topped up by its master, and the operator pays nothing', async () => {
  const child = await aPoorChild(1_000_000n)
  const small = await send(bodyFrom(child, { amount: '0.000099' }))
  expect([small.status, codeOf(small)], 'its master has nothing to send').toEqual([422, 'insufficient-balance'])
  const enough = await send(bodyFrom(child, { amount: '0.0001' }))
  expect([enough.status, enough.body.feeAmount, await stepsOf(enough.body.id)]).toEqual([201, '0', []])
  await fundNative(base, child.master, 10n ** 17n)
  const own = await send(bodyFrom(child, { amount: '0.000099' }))
  expect([own.status, await stepsOf(own.body.id)]).toEqual([201, ['top-up', 'send']])
})

test('with the daily gas budget used up, a child is topped up by its master, and the quote says so', async () => {
  const one = await world.another({ role: 'api', settleNanoUsdPerDayMax: gasOfGasless })
  org = await world.organisation()
  const child = await aPoorChild(10_000_000n)
  const first = await send(bodyFrom(child), one.base)
  expect([first.status, await stepsOf(first.body.id)]).toEqual([201, []])
  const poor = await send(bodyFrom(child), one.base)
  expect([poor.status, codeOf(poor)], 'its master has nothing to send').toEqual([422, 'insufficient-balance'])
  await fundNative(base, child.master, 10n ** 17n)
  const quoted = await request(one.base, {
    key: org.testKey,
    method: 'POST',
    path: `${path}/quote`,
    body: bodyFrom(child),
  })
  expect(quoted.body.feeAmount).not.toBe('0')
  const second = await send(bodyFrom(child), one.base)
  expect([second.status, await stepsOf(second.body.id)]).toEqual([201, ['top-up', 'send']])
})

test('the free organisations of one account share the day’s gas, for transfers and for payments', async () => {
  const one = await world.another({ role: 'api', settleNanoUsdPerDayMax: gasOfGasless })
  const [first, second] = [await world.organisation(), await world.organisation()]
  // Made on a paid plan, since free organisations of one account have one managed wallet together.
  const [child, other] = [await aPoorChild(10_000_000n, first), await aPoorChild(10_000_000n, second)]
  const wallet = await world.wallet(second)
  const sale = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const verified = async (): Promise<Answer> => {
    const challenge = await world.call(second.testKey, 'POST', '/payments/challenge', sale)
    const credential = await (await aPayer(base)).credential(challenge)
    const body = { protocol: 'x402', credential, ...sale }
    return request(one.base, { key: second.testKey, method: 'POST', path: '/payments/verify', body })
  }
  await world.database.db.run(sql`
    update organisations set plan = 'hobby', quota_account_id = (select quota_account_id from organisations where id = ${first.id})
    where id = any(${[first.id, second.id]}::text[])`)
  org = first
  const own = await send(bodyFrom(child), one.base)
  expect([own.status, await stepsOf(own.body.id)]).toEqual([201, []])
  org = second
  const poor = await send(bodyFrom(other), one.base)
  expect([poor.status, codeOf(poor)], 'its master has nothing to send').toEqual([422, 'insufficient-balance'])
  const payment = await verified()
  expect([payment.status, codeOf(payment)]).toEqual([429, 'settlement-budget-exceeded'])
  await world.database.db.run(sql`update organisations set plan = 'pro' where id = ${second.id}`)
  expect((await verified()).status).toBe(200)
})

test('of many that need the day’s last gas at once one gets it, and the others are topped up', async () => {
  const one = await world.another({ role: 'api', settleNanoUsdPerDayMax: gasOfGasless })
  org = await world.organisation()
  const children = await Promise.all(Array.from({ length: 5 }, () => aPoorChild(2_500_000n)))
  for (const { master } of children) await fundNative(base, master, 10n ** 17n)
  const answers = await Promise.all(children.map((child) => send(bodyFrom(child), one.base)))
  expect(answers.map(({ status, body }) => [status, body.status])).toEqual(children.map(() => [201, 'confirmed']))
  const ways = await Promise.all(answers.map(({ body }) => stepsOf(body.id)))
  expect(ways.filter((steps) => steps.length === 0)).toHaveLength(1)
  expect(ways.filter((steps) => steps.length === 2)).toHaveLength(4)
})

test('a settler without gas is not used, and the child is topped up by its master', async () => {
  const child = await aPoorChild(2_500_000n)
  await fundNative(base, child.master, 10n ** 17n)
  const node = createTestClient({ mode: 'anvil', transport: http(base.rpcUrl) })
  const address = world.server.settlerAddress as Address
  const before = await wei(address)
  await node.setBalance({ address, value: 0n })
  const sent = await send(bodyFrom(child))
  await node.setBalance({ address, value: before })
  expect([sent.status, await stepsOf(sent.body.id)]).toEqual([201, ['top-up', 'send']])
})
