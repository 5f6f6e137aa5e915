import { type DevChain, fundToken as mint, fundNative as setNative, startChain, tokenBalance } from '@purser/devnet'
import { type Address, formatAmount, parseAmount } from '@purser/protocol'
import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createFakeScreening } from '../screening-double.ts'
import { type Managed, path, stranger, untilBooked } from '../transfer-stage.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

// USDT is paid for with gas by children too. No block comes between a quote and its transfer, so their fees are equal.
let ethereum: DevChain
let tempo: DevChain
let world: World
let org: Org

beforeAll(async () => {
  ;[ethereum, tempo] = await Promise.all([
    startChain({ network: 'ethereum' }),
    startChain({ network: 'tempo-moderato' }),
  ])
  world = await aWorld({
    chains: [ethereum, tempo],
    config: { rpcTimeoutMs: 3_000, transferWaitMs: 20_000 },
    boot: { screening: createFakeScreening(() => new Date()) },
  })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([ethereum?.stop(), tempo?.stop()])
})

const masters = '/wallet-infra/master-wallets'

async function made(where: string, body: unknown): Promise<Managed> {
  const response = await world.call(org.liveKey, 'POST', where, body)
  return { id: String(response.body.id), address: response.body.address as Address }
}

function aMaster(): Promise<Managed> {
  return made(masters, { chain: 'ethereum', supportedTokens: ['USDT'] })
}

function usdtFrom({ id: fromWalletId }: Managed) {
  const token = { fromToken: 'USDT', toToken: 'USDT', toChain: 'ethereum' }
  return { fromWalletId, toAddress: stranger(), amount: '2.5', ...token }
}

/** The maximum cost of a transfer now, in wei. */
async function feeOf(body: unknown): Promise<bigint> {
  const quoted = await world.call(org.liveKey, 'POST', `${path}/quote`, body)
  const raw = parseAmount(String(quoted.body.feeAmount), 18)
  if (typeof raw !== 'bigint') throw new Error(`no fee: ${JSON.stringify(quoted.body)}`)
  return raw
}

async function expectRefused(body: unknown, balances: unknown): Promise<void> {
  const refused = await world.call(org.liveKey, 'POST', path, body)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'insufficient-balance'])
  expect(refused.body.balances).toEqual(balances)
}

async function expectSent(body: unknown): Promise<Answer['body']> {
  const sent = await world.call(org.liveKey, 'POST', path, body)
  expect([sent.status, sent.body.status, sent.body.balances]).toEqual([201, 'confirmed', undefined])
  return sent.body
}

function short(token: string, required: bigint, available: bigint) {
  return expect.objectContaining({
    token,
    required: formatAmount(required, 18),
    available: formatAmount(available, 18),
  })
}

async function fundNative(chain: DevChain, address: Address, wei: bigint): Promise<void> {
  await setNative(chain, address, wei)
  await untilBooked(world, chain)
}

async function fundToken(chain: DevChain, symbol: string, address: Address, raw: bigint): Promise<void> {
  await mint(chain, symbol, address, raw)
  await untilBooked(world, chain)
}

const gasOfPlainPayment = 21_000n

/** The wei per gas with which costs are computed now. */
async function maxFeeOf(master: Managed): Promise<bigint> {
  const coin = { fromToken: 'ETH', toToken: 'ETH', toChain: 'ethereum', amount: '0.000000000000000001' }
  return (await feeOf({ fromWalletId: master.id, toAddress: stranger(), ...coin })) / gasOfPlainPayment
}

test('exactly the amount and its gas are enough coin, and one wei less is refused', async () => {
  const master = await aMaster()
  await fundNative(ethereum, master.address, 10n ** 18n)
  const amount = 10n ** 17n + 1n
  const coin = { fromToken: 'ETH', toToken: 'ETH', toChain: 'ethereum', amount: formatAmount(amount, 18) }
  const body = { fromWalletId: master.id, toAddress: stranger(), ...coin }
  const fee = await feeOf(body)
  await fundNative(ethereum, master.address, amount + fee - 1n)
  await expectRefused(body, [short('ETH', amount + fee, amount + fee - 1n)])
  await fundNative(ethereum, master.address, amount - 1n)
  await expectRefused(body, [short('ETH', amount, amount - 1n)])
  await fundNative(ethereum, master.address, amount + fee)
  await expectSent(body)
})

test('exactly the gas is enough for a token transfer, and one wei less is refused', async () => {
  const master = await aMaster()
  await fundNative(ethereum, master.address, 10n ** 18n)
  await fundToken(ethereum, 'USDT', master.address, 2_500_000n)
  const body = usdtFrom(master)
  const fee = await feeOf(body)
  await fundNative(ethereum, master.address, fee - 1n)
  await expectRefused(body, [short('ETH', fee, fee - 1n)])
  await fundNative(ethereum, master.address, fee)
  await expectSent(body)
  expect(await tokenBalance(ethereum, 'USDT', body.toAddress)).toBe(2_500_000n)
})

test('a child one wei short of its gas is topped up by a master with exactly that and its own gas; one wei less is refused', async () => {
  const master = await aMaster()
  const child = await made(`${masters}/${master.id}/child-addresses`, {})
  await fundToken(ethereum, 'USDT', child.address, 5_000_000n)
  await fundNative(ethereum, master.address, 10n ** 18n)
  await fundNative(ethereum, child.address, 10n ** 18n)
  const body = usdtFrom(child)
  const [own, maxFee] = [await feeOf(body), await maxFeeOf(master)]
  const topUp = own * 2n - (own - 1n)
  const needed = topUp + gasOfPlainPayment * maxFee
  await fundNative(ethereum, child.address, own - 1n)
  expect(await feeOf(body), 'a second transaction').toBe(own + gasOfPlainPayment * maxFee)
  await fundNative(ethereum, master.address, needed - 1n)
  await expectRefused(body, [short('ETH', needed, needed - 1n)])
  await fundNative(ethereum, master.address, needed)
  await expectSent(body)
  expect(await tokenBalance(ethereum, 'USDT', body.toAddress)).toBe(2_500_000n)
})

test('a child with exactly its gas needs no master', async () => {
  const master = await aMaster()
  const child = await made(`${masters}/${master.id}/child-addresses`, {})
  await fundToken(ethereum, 'USDT', child.address, 2_500_000n)
  await fundNative(ethereum, child.address, 10n ** 18n)
  const body = usdtFrom(child)
  await fundNative(ethereum, child.address, await feeOf(body))
  await expectSent(body)
  expect(await tokenBalance(ethereum, 'USDT', child.address)).toBe(0n)
})

const baseFee = 20_000_000_000n
const alphaDecimals = 6
/** Gas depends on the zero bytes of an address; this one has none. */
const payee: Address = '0x1111111111111111111111111111111111111111'

/** A wallet on Tempo, whose newest block has this base fee. Until something is sent, all reads are of that block. */
async function aTempoMaster(raw: bigint): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', masters, { chain: 'tempo', supportedTokens: ['AlphaUSD'] })
  const master = { id: String(body.id), address: body.address as Address }
  await fundToken(tempo, 'AlphaUSD', master.address, raw)
  const node = createTestClient({ mode: 'anvil', transport: http(tempo.rpcUrl) })
  // Otherwise there is a block a second, each with a base fee an eighth lower.
  await node.setIntervalMining({ interval: 0 })
  await node.setAutomine(true)
  await node.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFee })
  await node.mine({ blocks: 1 })
  return master
}

/** The maximum cost of a transfer on Tempo in the token, at that block. */
async function feeInAlpha(body: unknown): Promise<bigint> {
  const quoted = await world.call(org.testKey, 'POST', `${path}/quote`, body)
  const raw = parseAmount(String(quoted.body.feeAmount), alphaDecimals)
  if (typeof raw !== 'bigint') throw new Error(`no fee: ${JSON.stringify(quoted.body)}`)
  return raw
}

test('on Tempo exactly the amount and its fee in the token are enough, and one unit less is refused', async () => {
  const balance = 87_654_321n
  const master = await aTempoMaster(balance)
  const alpha = { fromToken: 'AlphaUSD', toToken: 'AlphaUSD', toChain: 'tempo', toAddress: payee }
  const reported = (raw: bigint) => formatAmount(raw, alphaDecimals)
  const bodyOf = (raw: bigint) => ({ fromWalletId: master.id, ...alpha, amount: reported(raw) })
  const fee = await feeInAlpha(bodyOf(balance / 2n))
  expect(fee).toBeGreaterThan(0n)
  const refused = await world.call(org.testKey, 'POST', path, bodyOf(balance - fee + 1n))
  expect([refused.status, codeOf(refused)]).toEqual([422, 'insufficient-balance'])
  expect(refused.body.balances).toEqual([
    { token: 'AlphaUSD', required: reported(balance + 1n), available: reported(balance) },
  ])
  const sent = await world.call(org.testKey, 'POST', path, bodyOf(balance - fee))
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(await tokenBalance(tempo, 'AlphaUSD', payee)).toBe(balance - fee)
})
