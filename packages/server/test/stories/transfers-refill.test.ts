import { fundNative, fundToken, tokenBalance } from '@purser/devnet'
import { formatAmount } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import {
  aChild,
  aMaster,
  aTransferStage,
  begin,
  bodyFrom,
  driving,
  eventsOf,
  hasEnded,
  isKnown,
  type Managed,
  patient,
  type TransferStage,
  transferOf,
  untilBooked,
} from '../transfer-stage.ts'

const gwei = 10n ** 9n
const ether = 10n ** 18n
let stage: TransferStage

beforeAll(async () => {
  // An operator without a gas budget: a child's gas comes from its master.
  stage = await aTransferStage({ config: { settleNanoUsdPerDayMax: 0n } })
})
afterEach(async () => {
  stage.node.tellTheTruth()
  await stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

async function mineAtBaseFee(baseFee: bigint): Promise<void> {
  await stage.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFee })
  await stage.chain.mine({ blocks: 1 })
  expect((await stage.chain.getBlock()).baseFeePerGas).toBe(baseFee)
}

const Step = z.object({
  kind: z.string(),
  value: z.string().transform(BigInt),
  hash: z.templateLiteral(['0x', z.string()]).nullable(),
})

/** The steps of a transfer in order, each with the hash of its latest signature. */
function stepsOf(id: string) {
  return stage.world.database.db.many(
    Step,
    sql`
    select kind, value::text as value, (select hash from transaction_attempts a where a.transaction_id = s.transaction_id order by sequence desc limit 1) as hash
    from transfer_steps s where transfer_id = ${id} order by position`,
  )
}

async function untilSigned(id: string, kind: string): Promise<`0x${string}`> {
  const signed = async () => (await stepsOf(id)).find((step) => step.kind === kind)?.hash
  await expect.poll(signed, patient).toMatch(/^0x/)
  return (await signed()) ?? '0x'
}

interface Begun {
  readonly id: string
  readonly to: `0x${string}`
  readonly child: Managed
  readonly master: Managed
}

/** A transfer whose child was topped up at one gwei, and signed when the base fee was this one. */
async function aDearerTransfer(baseFee: bigint, masterWei = 10n ** 18n): Promise<Begun> {
  const master = await aMaster(stage, { wei: masterWei, usdc: 0n })
  const child = await aChild(stage, master)
  await fundToken(stage.dev, 'USDC', child.address, 2_500_000n)
  return begunAt(baseFee, { master, child, body: bodyFrom(child) })
}

/** A transfer of all coin of a child, topped up and signed like that of its tokens. */
async function aDearerCoinTransfer(baseFee: bigint): Promise<Begun> {
  const master = await aMaster(stage, { wei: 3n * ether, usdc: 0n })
  const child = await aChild(stage, master)
  await fundNative(stage.dev, child.address, ether)
  const coin = { fromToken: 'ETH', toToken: 'ETH', amount: '1' }
  return begunAt(baseFee, { master, child, body: bodyFrom(child, coin) })
}

type Requested = Pick<Begun, 'child' | 'master'> & { readonly body: ReturnType<typeof bodyFrom> }

async function begunAt(baseFee: bigint, { master, child, body }: Requested): Promise<Begun> {
  await untilBooked(stage.world, stage.dev)
  await stage.chain.setAutomine(false)
  await mineAtBaseFee(gwei)
  const id = await begin(stage, body)
  const topUp = await untilSigned(id, 'top-up')
  await expect.poll(() => isKnown(stage, topUp), patient).toBe(true)
  // Hides the top-up's receipt until fees have risen.
  stage.node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  await mineAtBaseFee(gwei)
  await mineAtBaseFee(baseFee)
  stage.node.tellTheTruth()
  await untilSigned(id, 'send')
  return { id, to: body.toAddress, child, master }
}

async function expectMoved({ id, to, child }: Begun): Promise<void> {
  expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed', reason: null })
  const usdc = (address: `0x${string}`) => tokenBalance(stage.dev, 'USDC', address)
  expect(await Promise.all([usdc(to), usdc(child.address)])).toEqual([2_500_000n, 0n])
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
}

/** Mines blocks at this base fee, while the clock advances, until the transfer has ended. */
async function mineOnAt(baseFee: bigint, id: string): Promise<void> {
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(4_000)
    await mineAtBaseFee(baseFee)
    return hasEnded(stage, id)
  }
  await expect.poll(ended, driving).toBe(true)
}

test('with a base fee that more than doubles after the top-up the child’s balance is offered, and the transfer is sent', async () => {
  const begun = await aDearerTransfer(3n * gwei)
  await mineOnAt(3n * gwei, begun.id)
  await expectMoved(begun)
  expect((await stepsOf(begun.id)).map(({ kind }) => kind)).toEqual(['top-up', 'send'])
})

test('with a base fee beyond the child’s balance its master sends more, once, and the transfer is sent at that fee', async () => {
  const begun = await aDearerTransfer(50n * gwei)
  stage.clock.forward(10_000)
  await untilSigned(begun.id, 'refill')
  await mineOnAt(50n * gwei, begun.id)
  await expectMoved(begun)
  expect((await stepsOf(begun.id)).map(({ kind }) => kind)).toEqual(['top-up', 'send', 'refill'])
  const { feeAmount } = await transferOf(stage, begun.id)
  const balances = await Promise.all(
    [begun.child, begun.master].map(({ address }) => stage.chain.getBalance({ address })),
  )
  const paid = 10n ** 18n - balances.reduce((sum, wei) => sum + wei, 0n)
  expect(feeAmount, 'all that was paid for it').toBe(formatAmount(paid, 18))
})

test('a child that sends coin gets the gas that it lacks from its master, and nothing for the amount that it sends', async () => {
  const begun = await aDearerCoinTransfer(50n * gwei)
  stage.clock.forward(10_000)
  await untilSigned(begun.id, 'refill')
  await mineOnAt(50n * gwei, begun.id)
  expect(await transferOf(stage, begun.id)).toMatchObject({ status: 'confirmed', reason: null })
  expect(await stage.chain.getBalance({ address: begun.to })).toBe(ether)
  const steps = await stepsOf(begun.id)
  expect(steps.map(({ kind }) => kind)).toEqual(['top-up', 'send', 'refill'])
  // Twice a plain payment at a maximum fee of 102 gwei.
  expect(Number(steps[2]?.value)).toBeLessThan(Number(2n * 21_000n * 110n * gwei))
})

test('where the master cannot pay either, the transfer waits without failing, and is sent when fees fall', async () => {
  const begun = await aDearerTransfer(50n * gwei, 10n ** 15n)
  for (let wait = 0; wait < 3; wait++) {
    const before = stage.node.requested('eth_sendRawTransaction')
    stage.clock.forward(10_000)
    await expect.poll(() => stage.node.requested('eth_sendRawTransaction'), patient).toBeGreaterThan(before)
  }
  expect(await transferOf(stage, begun.id)).toMatchObject({ status: 'pending', reason: null })
  await mineOnAt(gwei, begun.id)
  await expectMoved(begun)
  expect((await stepsOf(begun.id)).map(({ kind }) => kind)).toEqual(['top-up', 'send'])
})
