import { sendFromDevAccount, tokenBalance } from '@purser/devnet'
import { bytesToHex, encodeFunctionData, parseAbi } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { dropSignedBytes } from '../../src/archive/signed-bytes.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aSettledPayment, dayLater, mineUntilFinal, refund, type Sold } from '../refund-stage.ts'
import { aTransferStage, attemptsOf, driving, type TransferStage, transferOf } from '../transfer-stage.ts'
import { codeOf } from '../world.ts'

// Base counts a payment five blocks deep; its blocks are final when they are safe, here 32 deep.
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ epochBlocks: 32, config: { settleWaitMs: 100 } })
})
afterEach(() => {
  stage.node.tellTheTruth()
  return stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

/** Mines until the transfer has this status. */
async function mineUntil(transferId: string, status: string): Promise<void> {
  const statusNow = async (): Promise<unknown> => {
    stage.clock.forward(5_000)
    await stage.chain.mine({ blocks: 1 })
    return (await transferOf(stage, transferId)).status
  }
  await expect.poll(statusNow, driving).toBe(status)
}

async function statusOf(refundId: unknown): Promise<string> {
  const Row = z.object({ status: z.string() })
  return (
    await stage.world.database.db.one(Row, sql`select status from payment_refunds where id = ${String(refundId)}`)
  ).status
}

const balanceOf = ({ payer }: Sold) => tokenBalance(stage.dev, 'USDC', payer.account.address)

test('a refund whose block is undone is paid once, under the same nonce, and takes no second refund meanwhile', async () => {
  const sold = await aSettledPayment(stage)
  await stage.chain.mine({ blocks: 40 })
  const paidBack = await balanceOf(sold)
  const before = await stage.chain.snapshot()
  const made = await refund(stage, sold.paymentId)
  expect([made.status, codeOf(made)]).toEqual([201, ''])
  const transferId = String(made.body.transferId)
  await mineUntil(transferId, 'confirmed')
  await stage.chain.mine({ blocks: 8 })
  const signed = await attemptsOf(stage, transferId)
  await stage.chain.setAutomine(false)
  await stage.chain.revert({ id: before })
  await stage.chain.mine({ blocks: 20 })
  const pending = async () => {
    stage.clock.forward(5_000)
    return (await transferOf(stage, transferId)).status
  }
  await expect.poll(pending, driving).toBe('pending')
  expect(codeOf(await refund(stage, sold.paymentId))).toBe('refund-exceeds-payment')
  const ended = async () => {
    stage.clock.forward(5_000)
    await stage.chain.mine({ blocks: 2 })
    return statusOf(made.body.id)
  }
  await expect.poll(ended, driving).toBe('completed')
  // The polls move the clock, so on a slow machine the bytes may have become old enough for a higher fee.
  const attempts = await attemptsOf(stage, transferId)
  expect(attempts.slice(0, signed.length)).toEqual(signed)
  expect(new Set(attempts.map(({ nonce }) => nonce)).size).toBe(1)
  expect((await balanceOf(sold)) - paidBack).toBe(2_500_000n)
})

/** Sends again what the settler signed for a payment, as nodes do with the transactions of a block that is gone. */
async function sendAgain(paymentId: string): Promise<`0x${string}`> {
  const Signed = z.object({ raw: z.instanceof(Uint8Array) })
  const { raw } = await stage.world.database.db.one(
    Signed,
    sql`
    select a.raw from payments p join transaction_attempts a on a.network = p.network and a.hash = p.tx_hash where p.id = ${paymentId}`,
  )
  return stage.chain.sendRawTransaction({ serializedTransaction: bytesToHex(raw) })
}

test('no refund leaves for a payment whose transaction came back in another block and no longer moved its money', async () => {
  const sold = await aSettledPayment(stage)
  const { chain } = stage
  await chain.revert({ id: sold.before })
  await cancel(sold)
  const hash = await sendAgain(sold.paymentId)
  await mineUntilFinal(stage)
  expect((await chain.getTransactionReceipt({ hash })).status).toBe('reverted')
  const refused = await refund(stage, sold.paymentId)
  expect([codeOf(refused), refused.headers.get('retry-after')]).toEqual(['payment-not-refundable', null])
  expect(await balanceOf(sold)).toBe(1_000_000_000n)
})

test('a payment whose transaction came back in another block with its money is refunded', async () => {
  const sold = await aSettledPayment(stage)
  const { chain } = stage
  await chain.revert({ id: sold.before })
  await chain.setAutomine(true)
  await chain.mine({ blocks: 2 })
  const hash = await sendAgain(sold.paymentId)
  await mineUntilFinal(stage)
  expect((await chain.getTransactionReceipt({ hash })).status).toBe('success')
  expect((await refund(stage, sold.paymentId)).status).toBe(201)
})

test('no refund leaves for a payment that a reorganization can still undo: the payer would be paid what they never paid', async () => {
  const sold = await aSettledPayment(stage)
  const early = await refund(stage, sold.paymentId)
  expect([early.status, codeOf(early), early.headers.get('retry-after')]).toEqual([409, 'payment-not-refundable', '15'])
  const { chain } = stage
  await chain.revert({ id: sold.before })
  await cancel(sold)
  await mineUntilFinal(stage)
  expect(codeOf(await refund(stage, sold.paymentId))).toBe('payment-not-refundable')
  expect(await balanceOf(sold)).toBe(1_000_000_000n)
})

test('a refund of a payment whose block is not final yet is done by its own repeat, with the same Idempotency-Key', async () => {
  const { paymentId } = await aSettledPayment(stage)
  const headers = { 'idempotency-key': 'once it is final' }
  expect((await refund(stage, paymentId, headers)).status).toBe(409)
  await stage.chain.mine({ blocks: 40 })
  expect((await refund(stage, paymentId, headers)).status).toBe(201)
})

/** The payer signs, and anybody may send it. */
async function cancel({ payer: { account }, nonce }: Sold): Promise<void> {
  const usdc = stage.dev.tokens.USDC ?? '0x'
  const signature = await account.signTypedData({
    domain: { name: 'USD Coin', version: '2', chainId: stage.dev.chainId, verifyingContract: usdc },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  })
  const abi = parseAbi(['function cancelAuthorization(address,bytes32,bytes)'])
  const args = [account.address, nonce, signature] as const
  await stage.chain.setAutomine(true)
  await sendFromDevAccount(stage.dev, usdc, encodeFunctionData({ abi, functionName: 'cancelAuthorization', args }))
}

test('a day later a payment is refunded although the nodes have forgotten its receipt', async () => {
  const { paymentId } = await aSettledPayment(stage)
  await mineUntilFinal(stage)
  stage.node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  expect((await refund(stage, paymentId)).status).toBe(409)
  await dayLater(stage, paymentId)
  expect((await refund(stage, paymentId)).status).toBe(201)
})

test('a day later a payment is refunded although every node refuses to search logs', async () => {
  const { paymentId } = await aSettledPayment(stage)
  await mineUntilFinal(stage)
  await dayLater(stage, paymentId)
  stage.node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  stage.node.lie('eth_getLogs', () => ({ error: { code: -32_000, message: 'history has been pruned' } }))
  expect((await refund(stage, paymentId)).status).toBe(201)
})

test('a payer who cancels gets no refund a day later either, while a node has the log', async () => {
  const sold = await aSettledPayment(stage)
  const { chain, node } = stage
  await chain.revert({ id: sold.before })
  await cancel(sold)
  const hash = await sendAgain(sold.paymentId)
  await mineUntilFinal(stage)
  await dayLater(stage, sold.paymentId)
  node.lie('eth_getTransactionReceipt', ({ params, truth }) => (params[0] === hash ? { result: null } : truth()))
  const refused = await refund(stage, sold.paymentId)
  expect([codeOf(refused), refused.headers.get('retry-after')]).toEqual(['payment-not-refundable', null])
})

/** As if the payment had been settled and final two weeks ago, and the sweep had passed it since. */
async function weeksLater(paymentId: string): Promise<void> {
  const { db } = stage.world.database
  await dropSignedBytes({ db }, new Date(Date.now() + 14 * 86_400_000))
  const Row = z.object({ settlement: z.unknown(), bytes: z.number() })
  const read = sql`
    select settlement, octet_length(a.raw) as bytes from payments p join transaction_attempts a on a.network = p.network and a.hash = p.tx_hash
    where p.id = ${paymentId}`
  expect(await db.one(Row, read)).toEqual({ settlement: null, bytes: 0 })
  await dayLater(stage, paymentId)
}

test('a payment is refunded long after its signature and the bytes of its transaction were dropped', async () => {
  const sold = await aSettledPayment(stage)
  await mineUntilFinal(stage)
  await weeksLater(sold.paymentId)
  const before = await balanceOf(sold)
  const made = await refund(stage, sold.paymentId)
  expect([made.status, codeOf(made)]).toEqual([201, ''])
  await mineUntil(String(made.body.transferId), 'confirmed')
  expect((await balanceOf(sold)) - before).toBe(2_500_000n)
})

test('a payer who canceled a payment gets no refund after its signature was dropped either', async () => {
  const sold = await aSettledPayment(stage)
  const { chain, node } = stage
  await chain.revert({ id: sold.before })
  await cancel(sold)
  const hash = await sendAgain(sold.paymentId)
  await mineUntilFinal(stage)
  await weeksLater(sold.paymentId)
  node.lie('eth_getTransactionReceipt', ({ params, truth }) => (params[0] === hash ? { result: null } : truth()))
  const refused = await refund(stage, sold.paymentId)
  expect([codeOf(refused), refused.headers.get('retry-after')]).toEqual(['payment-not-refundable', null])
})

test('no refund leaves for a transaction of a payer that is final and failed', async () => {
  const sold = await aSettledPayment(stage)
  await stage.chain.revert({ id: sold.before })
  await cancel(sold)
  const hash = await sendAgain(sold.paymentId)
  await mineUntilFinal(stage)
  expect((await stage.chain.getTransactionReceipt({ hash })).status).toBe('reverted')
  await asSentOnTempo(sold)
  const refused = await refund(stage, sold.paymentId)
  expect([codeOf(refused), refused.headers.get('retry-after')]).toEqual(['payment-not-refundable', null])
})

/** As if the payer had signed the transaction, as on Tempo. */
async function asSentOnTempo({ paymentId, payer: { account }, nonce: memo }: Sold): Promise<void> {
  const own = { kind: 'tempo', raw: '0x', from: account.address, memo, validBefore: '1', sponsoredGas: '0' }
  await stage.world.database.db.run(
    sql`update payments set settlement = ${JSON.stringify(own)}::jsonb where id = ${paymentId}`,
  )
}

test('no refund ever leaves for a payment that a reorganization removed', async () => {
  const { paymentId, before } = await aSettledPayment(stage)
  await stage.chain.revert({ id: before })
  await mineUntilFinal(stage)
  await dayLater(stage, paymentId)
  expect(codeOf(await refund(stage, paymentId))).toBe('payment-not-refundable')
  // The payer signed by the stage's clock, which polls move ahead of the chain's.
  const signedBySeconds = BigInt(Math.ceil(stage.clock.now().getTime() / 1_000))
  const { timestamp } = await stage.chain.getBlock()
  await stage.chain.setNextBlockTimestamp({
    timestamp: (timestamp > signedBySeconds ? timestamp : signedBySeconds) + 600n,
  })
  stage.clock.forward(600_000)
  await mineUntilFinal(stage)
  const refused = await refund(stage, paymentId)
  expect([codeOf(refused), refused.headers.get('retry-after')]).toEqual(['payment-not-refundable', null])
})
