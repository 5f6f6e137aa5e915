import { fundNative, tokenBalance } from '@purser/devnet'
import { formatAmount } from '@purser/protocol'
import { parseTransaction, toHex } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  type Attempt,
  aMaster,
  aTransferStage,
  attemptsOf,
  begin,
  bodyFrom,
  eventsOf,
  type Managed,
  mineUntilEnded,
  type TransferStage,
  transferOf,
  untilSent,
} from '../transfer-stage.ts'

const gwei = 10n ** 9n
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage()
})
afterEach(async () => {
  stage.node.tellTheTruth()
  await stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

/** From here on a test makes each block. */
async function aMasterWithoutBlocks(): Promise<Managed> {
  const master = await aMaster(stage)
  await stage.chain.setAutomine(false)
  return master
}

/** Applies from the next block on; it falls again with every block that is not full. */
async function mineAtBaseFee(baseFee: bigint): Promise<void> {
  await stage.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFee })
  await stage.chain.mine({ blocks: 1 })
  expect((await stage.chain.getBlock()).baseFeePerGas).toBe(baseFee)
}

/** Passes more time than a transaction waits for a block before its fee is raised. */
function waitTooLong(): void {
  stage.clock.forward(20_000)
}

async function movedFrom({ address }: Managed, to: `0x${string}`): Promise<bigint[]> {
  return [await tokenBalance(stage.dev, 'USDC', to), 100_000_000n - (await tokenBalance(stage.dev, 'USDC', address))]
}

/** What the wallet has paid in wei beside the amounts it sent. */
async function gasPaidBy({ address }: Managed): Promise<string> {
  return formatAmount(10n ** 18n - (await stage.chain.getBalance({ address })), 18)
}

function expectRaised([before, after]: readonly (Attempt | undefined)[]): void {
  for (const fee of ['maxFee', 'priorityFee'] as const)
    expect((after?.[fee] ?? 0n) * 8n, fee).toBeGreaterThanOrEqual((before?.[fee] ?? 0n) * 9n)
}

test('when the base fee jumps tenfold the offer rises by at least an eighth, and the transfer is the form that a block included, at its fee', async () => {
  const master = await aMasterWithoutBlocks()
  await mineAtBaseFee(gwei)
  const body = bodyFrom(master)
  const id = await begin(stage, body)
  const first = (await untilSent(stage, id))[0]
  expect((await transferOf(stage, id)).txHash).toBe(first?.hash)
  await mineAtBaseFee(10n * gwei)
  expect(await movedFrom(master, body.toAddress), 'it offered too little').toEqual([0n, 0n])
  waitTooLong()
  const attempts = await untilSent(stage, id, 2)
  expectRaised(attempts)
  expect(attempts.map(({ nonce }) => nonce)).toEqual([0n, 0n])
  expect((await transferOf(stage, id)).txHash).toBe(attempts[1]?.hash)

  const ended = await mineUntilEnded(stage, id)
  expect(ended).toMatchObject({ status: 'confirmed', txHash: attempts[1]?.hash, reason: null })
  expect(await movedFrom(master, body.toAddress)).toEqual([2_500_000n, 2_500_000n])
  expect(ended.feeAmount).toBe(await gasPaidBy(master))
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
})

test('a replaced transfer whose first form a block includes after all has that hash, once, at its own fee', async () => {
  const master = await aMasterWithoutBlocks()
  const body = bodyFrom(master)
  const id = await begin(stage, body)
  await untilSent(stage, id)
  waitTooLong()
  await untilSent(stage, id, 2)
  waitTooLong()
  const attempts = await untilSent(stage, id, 3)
  expectRaised(attempts.slice(1))
  // The block builder never received the later ones.
  await stage.chain.dropTransaction({ hash: attempts[2]?.hash ?? '0x' })
  stage.node.lie('eth_sendRawTransaction', () => ({ result: attempts[2]?.hash }))
  await stage.chain.sendRawTransaction({ serializedTransaction: toHex(attempts[0]?.raw ?? new Uint8Array()) })

  const ended = await mineUntilEnded(stage, id)
  expect(ended).toMatchObject({ status: 'confirmed', txHash: attempts[0]?.hash })
  expect(ended.feeAmount).toBe(await gasPaidBy(master))
  expect(await movedFrom(master, body.toAddress)).toEqual([2_500_000n, 2_500_000n])
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
})

test('above the fee limit a transfer waits, offers no more and does not fail; it is sent when gas gets cheaper', async () => {
  const master = await aMasterWithoutBlocks()
  await mineAtBaseFee(gwei)
  const body = bodyFrom(master)
  const id = await begin(stage, body)
  await untilSent(stage, id)
  await mineAtBaseFee(3_000n * gwei)
  for (let wait = 0; wait < 3; wait++) {
    const before = stage.node.requested('eth_sendRawTransaction')
    waitTooLong()
    await expect.poll(() => stage.node.requested('eth_sendRawTransaction')).toBeGreaterThan(before)
  }
  const attempts = await attemptsOf(stage, id)
  expect(attempts.every(({ maxFee, priorityFee }) => maxFee <= 1_000n * gwei && priorityFee <= 20n * gwei)).toBe(true)
  expect((await transferOf(stage, id)).status).toBe('pending')
  expect(await eventsOf(stage, id)).toEqual([])
  await mineAtBaseFee(gwei)
  const ended = await mineUntilEnded(stage, id)
  expect(ended.status).toBe('confirmed')
  expect(await movedFrom(master, body.toAddress)).toEqual([2_500_000n, 2_500_000n])
  expect(ended.feeAmount).toBe(await gasPaidBy(master))
})

test('a higher offer that the wallet cannot pay for does not replace one that it can', async () => {
  const master = await aMasterWithoutBlocks()
  await mineAtBaseFee(gwei)
  const body = bodyFrom(master)
  const id = await begin(stage, body)
  const [first] = await untilSent(stage, id)
  const { gas } = parseTransaction(toHex(first?.raw ?? new Uint8Array()))
  await fundNative(stage.dev, master.address, (gas ?? 0n) * (first?.maxFee ?? 0n))
  await mineAtBaseFee(500n * gwei)
  waitTooLong()
  await expect.poll(async () => (await attemptsOf(stage, id)).length).toBeGreaterThan(1)
  // The node drops pending transactions, as nodes do after hours or a restart.
  await stage.chain.dropTransaction({ hash: first?.hash ?? '0x' })
  await mineAtBaseFee(gwei)
  waitTooLong()
  const ended = await mineUntilEnded(stage, id)
  expect(ended).toMatchObject({ status: 'confirmed', txHash: first?.hash })
  expect(await movedFrom(master, body.toAddress)).toEqual([2_500_000n, 2_500_000n])
})
