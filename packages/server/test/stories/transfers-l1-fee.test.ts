import { type DevChain, fundToken as mint, setL1Fee, fundNative as setNative, tokenBalance } from '@purser/devnet'
import { formatAmount, parseAmount } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  aChild,
  aMaster,
  aTransferStage,
  attemptsOf,
  begin,
  bodyFrom,
  driving,
  hasEnded,
  type Managed,
  path,
  patient,
  send,
  type TransferStage,
  transferOf,
  untilBooked,
  untilSent,
} from '../transfer-stage.ts'
import { codeOf } from '../world.ts'

// The chain charges a data fee, and excludes transactions of senders who cannot pay it. Only its receipts omit the fee; the
// proxy in front of the node adds it, as op-geth does.
const gwei = 10n ** 9n
const l1 = 3n * 10n ** 12n
const operator = 10n ** 12n
const oracle = '0x420000000000000000000000000000000000000F'
const plainGas = 21_000n
const pittance = 10n ** 13n
let stage: TransferStage

async function fundNative(chain: DevChain, address: Managed['address'], wei: bigint): Promise<void> {
  await setNative(chain, address, wei)
  await untilBooked(stage.world, chain)
}

async function fundToken(chain: DevChain, symbol: string, address: Managed['address'], raw: bigint): Promise<void> {
  await mint(chain, symbol, address, raw)
  await untilBooked(stage.world, chain)
}

beforeAll(async () => {
  // An operator without a gas budget: a child's gas comes from its master.
  stage = await aTransferStage({ takesL1Fee: true, config: { settleNanoUsdPerDayMax: 0n } })
  await setL1Fee(stage.dev, { l1, operator })
  addDataFees()
})
afterEach(async () => {
  await stage.chain.setAutomine(true)
  await setL1Fee(stage.dev, { l1, operator })
})
afterAll(() => stage?.stop())

/** Applies from the next block on; it falls again with every block that is not full. */
async function mineAtBaseFee(baseFee: bigint): Promise<void> {
  await stage.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFee })
  await stage.chain.mine({ blocks: 1 })
}

function addDataFees(): void {
  const reported = { l1Fee: hex(l1), operatorFeeScalar: '0x0', operatorFeeConstant: hex(operator) }
  stage.node.lie('eth_getTransactionReceipt', async ({ truth }) => {
    const reply = await truth()
    return 'result' in reply && reply.result !== null ? { result: { ...Object(reply.result), ...reported } } : reply
  })
}

function hex(value: bigint): string {
  return `0x${value.toString(16)}`
}

function coinFrom(from: Managed, amount: bigint) {
  return bodyFrom(from, { fromToken: 'ETH', toToken: 'ETH', amount: formatAmount(amount, 18) })
}

/** The maximum cost of a transfer now, in wei. */
async function feeOf(body: unknown): Promise<bigint> {
  const quoted = await stage.world.call(stage.key, 'POST', `${path}/quote`, body)
  const raw = parseAmount(String(quoted.body.feeAmount), 18)
  if (typeof raw !== 'bigint') throw new Error(`no fee: ${JSON.stringify(quoted.body)}`)
  return raw
}

/** The maximum cost without what the network charges beside the gas. */
async function gasOf(body: unknown): Promise<bigint> {
  await setL1Fee(stage.dev, { l1: 0n })
  const fee = await feeOf(body)
  await setL1Fee(stage.dev, { l1, operator })
  return fee
}

async function paidBy({ address }: Managed, had: bigint, sent = 0n): Promise<string> {
  return formatAmount(had - sent - (await stage.chain.getBalance({ address })), 18)
}

async function expectRefused(body: unknown, required: bigint, available: bigint): Promise<void> {
  const refused = await send(stage, body)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'insufficient-balance'])
  expect(refused.body.balances).toEqual([
    { token: 'ETH', required: formatAmount(required, 18), available: formatAmount(available, 18) },
  ])
}

test('the chain of these tests excludes senders who can pay for the gas and not for the data fee', async () => {
  const master = await aMaster(stage)
  const body = coinFrom(master, 10n ** 17n)
  const gas = await gasOf(body)
  await setL1Fee(stage.dev, { l1: 0n })
  await stage.chain.setAutomine(false)
  const id = await begin(stage, body)
  await fundNative(stage.dev, master.address, 10n ** 17n + gas)
  await setL1Fee(stage.dev, { l1: 10n ** 15n })
  await stage.chain.setAutomine(true)
  await stage.chain.mine({ blocks: 2 })
  expect(await hasEnded(stage, id)).toBe(false)
  await fundNative(stage.dev, master.address, 10n ** 18n)
})

test('a quote counts the data fee twice, which is more than the transfer then pays, and the fee paid is reported to the wei', async () => {
  const master = await aMaster(stage)
  const body = bodyFrom(master)
  const [fee, gas] = [await feeOf(body), await gasOf(body)]
  expect(fee - gas).toBeGreaterThan(2n * l1 + operator)
  expect(fee - gas).toBeLessThan(10n * l1 + operator)
  const sent = await send(stage, body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(sent.body.feeAmount).toBe(await paidBy(master, 10n ** 18n))
  expect(parseAmount(String(sent.body.feeAmount), 18)).toBeLessThan(fee)
})

test('the whole coin balance except the quoted fee can be sent, and one wei more is refused before anything is signed', async () => {
  const master = await aMaster(stage)
  const amount = 10n ** 17n + 1n
  const body = coinFrom(master, amount)
  const fee = await feeOf(body)
  await fundNative(stage.dev, master.address, amount + fee - 1n)
  await expectRefused(body, amount + fee, amount + fee - 1n)
  await fundNative(stage.dev, master.address, amount + fee)
  const sent = await send(stage, body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(sent.body.feeAmount).toBe(await paidBy(master, amount + fee, amount))
})

test('the data fees of pending transfers are not available for the next one', async () => {
  const master = await aMaster(stage)
  const amount = 10n ** 16n
  const fee = await feeOf(coinFrom(master, amount))
  await fundNative(stage.dev, master.address, 2n * (amount + fee))
  await stage.chain.setAutomine(false)
  const first = await begin(stage, coinFrom(master, amount))
  await expectRefused(coinFrom(master, amount + 1n), amount + fee + 1n, amount + fee)
  const second = await begin(stage, coinFrom(master, amount))
  await stage.chain.setAutomine(true)
  await stage.chain.mine({ blocks: 1 })
  for (const id of [first, second])
    await expect.poll(async () => (await transferOf(stage, id)).status, patient).toBe('confirmed')
})

/**
 * A child without enough for its gas. This chain simulates no call of an account that could not pay for its bytes, which
 * op-geth and op-reth do: so it has enough for that.
 */
async function aPoorChild(master: Managed): Promise<Managed> {
  const child = await aChild(stage, master)
  await fundToken(stage.dev, 'USDC', child.address, 2_500_000n)
  await fundNative(stage.dev, child.address, pittance)
  return child
}

test('a child’s top-up includes what its call pays beside the gas, and the transfer reports what both of them paid', async () => {
  const master = await aMaster(stage, { usdc: 0n })
  const child = await aPoorChild(master)
  const body = bodyFrom(child)
  const quoted = await feeOf(body)
  const plain = await feeOf(coinFrom(master, 1n))
  const topUp = 2n * (quoted - plain) - pittance
  await fundNative(stage.dev, master.address, topUp + plain - 1n)
  await expectRefused(body, topUp + plain, topUp + plain - 1n)
  await fundNative(stage.dev, master.address, topUp + plain)
  const sent = await send(stage, body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
  const left = await stage.chain.getBalance({ address: child.address })
  expect(sent.body.feeAmount).toBe(await paidBy(master, topUp + plain + pittance, left))
})

test('a child whose data fee has risen above its balance gets more from its master, and the transfer is sent', async () => {
  const master = await aMaster(stage, { usdc: 0n })
  const child = await aPoorChild(master)
  await stage.chain.setAutomine(false)
  const body = bodyFrom(child)
  const id = await begin(stage, body)
  await untilSent(stage, id)
  await setL1Fee(stage.dev, { l1: 10n ** 15n })
  await stage.chain.mine({ blocks: 1 })
  await untilSent(stage, id, 2)
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(4_000)
    await stage.chain.mine({ blocks: 1 })
    return hasEnded(stage, id)
  }
  await expect.poll(ended, driving).toBe(true)
  expect((await transferOf(stage, id)).status).toBe('confirmed')
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
  expect((await attemptsOf(stage, id)).length, 'the top-up, the call, and the refill').toBeGreaterThan(2)
})

test('a child whose gas price more than doubled after its top-up offers its balance without its data fee, and the transfer is sent', async () => {
  const master = await aMaster(stage, { usdc: 0n })
  const child = await aPoorChild(master)
  await stage.chain.setAutomine(false)
  await mineAtBaseFee(gwei)
  const body = bodyFrom(child)
  const id = await begin(stage, body)
  await untilSent(stage, id)
  // Hides the top-up's receipt until fees have risen.
  stage.node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  await mineAtBaseFee(gwei)
  await mineAtBaseFee(3n * gwei)
  addDataFees()
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(4_000)
    await mineAtBaseFee(3n * gwei)
    return hasEnded(stage, id)
  }
  await expect.poll(async () => (await attemptsOf(stage, id)).length, patient).toBeGreaterThan(1)
  await expect.poll(ended, driving).toBe(true)
  expect((await transferOf(stage, id)).status).toBe('confirmed')
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
  expect(new Set((await attemptsOf(stage, id)).map(({ nonce }) => nonce)), 'no refill was needed').toEqual(
    new Set([0n]),
  )
})

test('a node that reports an absurd data fee has it counted up to the limit, and no more is required of a wallet', async () => {
  const master = await aMaster(stage)
  const body = coinFrom(master, 1n)
  const gas = await gasOf(body)
  await stage.chain.setStorageAt({ address: oracle, index: 0, value: `0x${'f'.repeat(32).padStart(64, '0')}` })
  const limited = (await feeOf(body)) - 10n ** 16n
  expect(limited % plainGas).toBe(0n)
  expect(limited).toBeGreaterThan(0n)
  expect(limited).toBeLessThanOrEqual(gas * 2n)
})

test('a network whose oracle does not return its data fee is not treated as free of one: nothing is sent', async () => {
  const master = await aMaster(stage)
  const body = coinFrom(master, 1n)
  await stage.chain.setCode({ address: oracle, bytecode: '0x5f5ffd' })
  const refused = await send(stage, body)
  expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-unavailable'])
  expect(await stage.chain.getBalance({ address: body.toAddress })).toBe(0n)
})
