import {
  type DevChain,
  type FaultProxy,
  fundNative,
  fundToken,
  startChain,
  startFaultProxy,
  tokenBalance,
} from '@purser/devnet'
import { type Address, formatAmount } from '@purser/protocol'
import { createPublicClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { bundledList } from '../../src/partners/screening/bundled-list.ts'
import { sql } from '../../src/platform/db/db.ts'
import { storeFrozenPlace } from '../frozen-place.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let base: DevChain
let tempo: DevChain
let node: FaultProxy
let world: World
let org: Org
/** A server without a gas budget, so that a child's gas comes from its master. */
let frugal: string

beforeAll(async () => {
  ;[base, tempo] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'tempo-moderato' }),
  ])
  node = await startFaultProxy(base.rpcUrl)
  world = await aWorld({
    chains: [base, tempo],
    rpcUrls: { 'base-sepolia': [node.url] },
    config: { transferWaitMs: 30_000 },
  })
  org = await world.organisation()
  frugal = (await world.another({ role: 'api', settleNanoUsdPerDayMax: 0n })).base
})
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await Promise.all([base?.stop(), tempo?.stop()])
})

const masters = '/wallet-infra/master-wallets'
const path = '/wallet-infra/transfer'

interface Managed {
  readonly id: string
  readonly address: Address
}

async function aMaster(chain = 'base', supportedTokens: readonly string[] = ['USDC']): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', masters, { chain, supportedTokens })
  return { id: String(body.id), address: body.address as Address }
}

async function aChild(master: Managed): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', `${masters}/${master.id}/child-addresses`, {})
  return { id: String(body.id), address: body.address as Address }
}

/** A master with this much USDC and a coin for gas. */
async function aRichMaster(rawUsdc = 100_000_000n): Promise<Managed> {
  const master = await aMaster()
  await fundNative(base, master.address, 10n ** 18n)
  if (rawUsdc > 0n) await fundToken(base, 'USDC', master.address, rawUsdc)
  return master
}

function stranger(): Address {
  return privateKeyToAddress(generatePrivateKey())
}

function bodyFrom(from: Managed, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '2.5', toAddress: stranger() }
  return { fromWalletId: from.id, ...usual, ...changes }
}

function send(body: Record<string, unknown>, headers: Record<string, string> = {}): Promise<Answer> {
  return world.call(org.testKey, 'POST', path, body, headers)
}

function sendFrugally(body: Record<string, unknown>): Promise<Answer> {
  return request(frugal, { key: org.testKey, method: 'POST', path, body })
}

async function eventsOf(transferId: unknown): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload ->> 'transactionId' = ${String(transferId)} order by id`,
  )
  return rows.map(({ type }) => type)
}

test('a token and the coin are sent from a master wallet to anybody, and the answer says so', async () => {
  const master = await aRichMaster()
  const body = bodyFrom(master)
  const sent = await send(body)
  expect(sent.status).toBe(201)
  expect(sent.body).toEqual({
    id: expect.stringMatching(/^wtx_/),
    fromWalletId: master.id,
    toAddress: body.toAddress,
    txHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    fromChain: 'base',
    toChain: 'base',
    fromToken: 'USDC',
    toToken: 'USDC',
    amount: '2.5',
    toAmount: '2.5',
    minToAmount: '2.5',
    reference: null,
    resource: null,
    metadata: {},
    approval: null,
    feeAmount: expect.stringMatching(/^0\.0*[1-9]\d*$/),
    feeToken: 'ETH',
    route: 'direct',
    routeReason: expect.stringMatching(/^USDC stays USDC/),
    status: 'confirmed',
    reason: null,
    receivedToken: null,
    destinationTxHash: null,
    refundTxHash: null,
    refundedAt: null,
    createdAt: expect.any(String),
    confirmedAt: expect.any(String),
  })
  expect(await tokenBalance(base, 'USDC', body.toAddress)).toBe(2_500_000n)
  expect((await world.call(org.testKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)).body).toEqual(sent.body)
  expect(await eventsOf(sent.body.id), 'an end that was in the answer is not published again').toEqual([])

  const coin = await send(bodyFrom(master, { fromToken: 'ETH', toToken: 'ETH', amount: '0.25' }))
  expect([coin.status, coin.body.status, coin.body.fromToken]).toEqual([201, 'confirmed', 'ETH'])
  const list = await world.call(org.testKey, 'GET', `/wallet-infra/transfers?fromWalletId=${master.id}`)
  expect(list.list).toEqual([coin.body, sent.body])
})

test('a child without gas is topped up by its master, and pays out to the last unit', async () => {
  const master = await aRichMaster(0n)
  const child = await aChild(master)
  await fundToken(base, 'USDC', child.address, 7_000_000n)
  const body = bodyFrom(child, { fromWalletType: 'child', amount: '7' })
  const sent = await sendFrugally(body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(await tokenBalance(base, 'USDC', body.toAddress)).toBe(7_000_000n)
  expect(await tokenBalance(base, 'USDC', child.address)).toBe(0n)
})

test('on Tempo the fee is paid in the token that moves, and no native coin is mentioned', async () => {
  const master = await aMaster('tempo', ['pathUSD'])
  await fundToken(tempo, 'pathUSD', master.address, 10_000_000n)
  const body = bodyFrom(master, { toChain: 'tempo', fromToken: 'pathUSD', toToken: 'pathUSD', amount: '4' })
  const sent = await send(body)
  expect([sent.status, sent.body.status, sent.body.feeToken]).toEqual([201, 'confirmed', 'pathUSD'])
  expect(await tokenBalance(tempo, 'pathUSD', body.toAddress)).toBe(4_000_000n)
  const left = await tokenBalance(tempo, 'pathUSD', master.address)
  expect(formatAmount(6_000_000n - left, 6)).toBe(sent.body.feeAmount)
  const tooMuch = await send({ ...body, amount: formatAmount(left, 6) })
  expect([tooMuch.status, codeOf(tooMuch)]).toEqual([422, 'insufficient-balance'])
})

test('a quote describes the transfer, and moves nothing', async () => {
  const master = await aRichMaster()
  const body = bodyFrom(master)
  const quoted = await world.call(org.testKey, 'POST', `${path}/quote`, body)
  expect(quoted.status).toBe(200)
  expect(quoted.body).toMatchObject({ route: 'direct', amount: '2.5', toAmount: '2.5', feeToken: 'ETH' })
  expect(await tokenBalance(base, 'USDC', body.toAddress)).toBe(0n)
  expect((await world.call(org.testKey, 'GET', `/wallet-infra/transfers?fromWalletId=${master.id}`)).list).toEqual([])
})

test('a wallet that is one unit short gets its balance and what it needs, of the token and of gas', async () => {
  const master = await aRichMaster(2_499_999n)
  const short = await send(bodyFrom(master))
  expect([short.status, codeOf(short)]).toEqual([422, 'insufficient-balance'])
  expect(short.body.balances).toEqual([{ token: 'USDC', required: '2.5', available: '2.499999' }])

  const poor = await aMaster()
  await fundToken(base, 'USDC', poor.address, 5_000_000n)
  const gasless = await send(bodyFrom(poor))
  expect([gasless.status, codeOf(gasless)]).toEqual([422, 'insufficient-balance'])
  expect(gasless.body.balances).toEqual([{ token: 'ETH', required: expect.stringMatching(/^0\.0/), available: '0' }])

  const child = await aChild(poor)
  await fundToken(base, 'USDC', child.address, 5_000_000n)
  expect(codeOf(await sendFrugally(bodyFrom(child))), 'its master cannot pay for it either').toBe(
    'insufficient-balance',
  )
})

test.each([
  [{ amount: '0' }, 'validation-error', '/amount'],
  [{ amount: '1.0000001' }, 'validation-error', '/amount'],
  [{ amount: '-1' }, 'validation-error', '/amount'],
  [{ fromWalletType: 'child' }, 'validation-error', '/fromWalletType'],
  [{ toAddress: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }, 'validation-error', '/toAddress'],
  [{ fromToken: 'DOGE' }, 'token-not-supported', '/fromToken'],
  [{ toToken: 'DOGE' }, 'token-not-supported', '/toToken'],
])('a transfer with %j is refused as %s at %s', async (changes, code, fault) => {
  const refused = await send(bodyFrom(await aMaster(), changes))
  expect([refused.status, codeOf(refused)]).toEqual([422, code])
  expect(refused.body.errors).toEqual([expect.objectContaining({ path: fault })])
})

test('a wallet of another organisation, of another environment or of nobody is the same: not found', async () => {
  const master = await aMaster()
  const other = await world.organisation()
  for (const [key, id] of [
    [other.testKey, master.id],
    [org.liveKey, master.id],
    [org.testKey, 'mwt_01h455vb4pex5vsknk084sn02q'],
    [org.testKey, 'cad_01h455vb4pex5vsknk084sn02q'],
  ] as const) {
    const refused = await world.call(key, 'POST', path, bodyFrom({ ...master, id }))
    expect([refused.status, codeOf(refused)]).toEqual([422, 'wallet-not-found'])
  }
})

test('one hundred repeats of one Idempotency-Key at once are one transfer', async () => {
  const master = await aRichMaster()
  const body = bodyFrom(master)
  const second = await world.another()
  const headers = { 'idempotency-key': 'pay-rent' }
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      request(n % 2 === 0 ? world.base : second.base, { key: org.testKey, method: 'POST', path, body, headers }),
    ),
  )
  const made = answers.filter(({ status }) => status === 201)
  expect(made.length).toBeGreaterThan(0)
  expect(Object.keys(countByStatus(answers)).every((status) => ['201', '409'].includes(status))).toBe(true)
  expect(new Set(made.map(({ body: transfer }) => transfer.id)).size).toBe(1)
  expect(await tokenBalance(base, 'USDC', body.toAddress)).toBe(2_500_000n)
  const again = await send(body, headers)
  expect([again.status, again.body.id]).toEqual([201, made[0]?.body.id])
  expect(await tokenBalance(base, 'USDC', body.toAddress)).toBe(2_500_000n)
})

test('of thirty transfers at once out of a wallet that can pay ten, ten are accepted, and each of them arrives', async () => {
  const master = await aRichMaster(25_000_000n)
  const bodies = Array.from({ length: 30 }, () => bodyFrom(master))
  const answers = await Promise.all(bodies.map((body) => send(body)))
  expect(countByStatus(answers)).toEqual({ 201: 10, 422: 20 })
  const arrived = await Promise.all(bodies.map((body) => tokenBalance(base, 'USDC', body.toAddress)))
  expect(arrived).toEqual(answers.map(({ status }) => (status === 201 ? 2_500_000n : 0n)))
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(0n)
})

test('concurrent coin transfers and their gas never exceed the balance, and nothing is left stuck', async () => {
  const master = await aMaster()
  await fundNative(base, master.address, 10n ** 18n)
  const bodies = Array.from({ length: 24 }, () => bodyFrom(master, { fromToken: 'ETH', toToken: 'ETH', amount: '0.1' }))
  const second = await world.another()
  const answers = await Promise.all(
    bodies.map((body, n) =>
      request(n % 2 === 0 ? world.base : second.base, { key: org.testKey, method: 'POST', path, body }),
    ),
  )
  expect(countByStatus(answers), 'a tenth is for gas').toEqual({ 201: 9, 422: 15 })
  expect(answers.filter(({ status }) => status === 201).map(({ body }) => body.status)).toEqual(
    Array(9).fill('confirmed'),
  )
})

test('concurrent children of one master are topped up as far as the master can pay, and none is stuck', async () => {
  const master = await aMaster()
  await fundNative(base, master.address, 10n ** 15n)
  const children = await Promise.all(Array.from({ length: 4 }, () => aChild(master)))
  for (const child of children) await fundToken(base, 'USDC', child.address, 25_000_000n)
  const bodies = Array.from({ length: 40 }, (_, n) => bodyFrom(children[n % 4] ?? master))
  const answers = await Promise.all(bodies.map((body) => sendFrugally(body)))
  const taken = answers.filter(({ status }) => status === 201)
  expect(taken.length).toBeGreaterThan(0)
  expect(
    answers.filter(({ status }) => status !== 201).every((answer) => codeOf(answer) === 'insufficient-balance'),
  ).toBe(true)
  expect(taken.map(({ body }) => body.status)).toEqual(taken.map(() => 'confirmed'))
  const open = await world.database.db.one(
    z.object({ open: z.bigint() }),
    sql`select count(*) as open from transfers where from_address = any(${children.map(({ address }) => address)}::text[]) and ended_at is null`,
  )
  expect(open.open).toBe(0n)
})

test('a transfer that a node loses, and whose answer was pending, ends once and its end is published once', async () => {
  const hasty = await world.another({ transferWaitMs: 0 })
  const master = await aRichMaster()
  const body = bodyFrom(master)
  node.set('drop', ['eth_sendRawTransaction'])
  const sent = await request(hasty.base, { key: org.testKey, method: 'POST', path, body })
  node.set('pass')
  expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
  const get = () => world.call(org.testKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)
  await expect.poll(async () => (await get()).body.status).toBe('confirmed')
  await expect.poll(() => eventsOf(sent.body.id)).toEqual(['transfer.completed'])
  expect(await tokenBalance(base, 'USDC', body.toAddress)).toBe(2_500_000n)
})

test('frozen money is not available to send', async () => {
  const master = await aRichMaster(5_000_000n)
  const { hash } = await createPublicClient({ transport: http(base.rpcUrl) }).getBlock({ blockNumber: 1n })
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status, token,
      token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, aml_status, aml_due_at, frozen_raw_amount, created_at)
    values ('wtx_01h455vb4pex5vsknk084sn02q', ${org.id}, 'test', ${master.id}, 'base-sepolia', 'base', '0x1', 0, 'in', 'transfer', 'confirmed',
      '0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC', 6, 3000000, '0x2', ${master.address}, 1, ${hash}, now(), 'flagged', 'infinity', 3000000, now())`)
  await storeFrozenPlace(world.database.db, master.id)
  const refused = await send(bodyFrom(master))
  expect(refused.body).toMatchObject({
    balances: [{ token: 'USDC', required: '2.5', available: '2' }],
    detail: expect.stringContaining('2.5 USDC required, 2 available'),
  })
  expect((await send(bodyFrom(master, { amount: '2' }))).status).toBe(201)
})

test('money to a sanctioned address is refused before anything is signed', async () => {
  const toAddress = bundledList.addresses[0]
  const refused = await send(bodyFrom(await aRichMaster(), { toAddress }))
  expect([refused.status, codeOf(refused)]).toEqual([422, 'recipient-flagged'])
})

test('swaps and bridges are refused without a partner', async () => {
  const master = await aMaster()
  const refused = await send(bodyFrom(master, { toChain: 'ethereum' }))
  expect([refused.status, codeOf(refused)]).toEqual([503, 'partner-unavailable'])
})
