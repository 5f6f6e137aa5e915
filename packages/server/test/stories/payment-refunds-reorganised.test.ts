import { sendFromDevAccount, tokenBalance } from '@purser/devnet'
import { bytesToHex, encodeFunctionData, parseAbi, toHex } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import {
  aMaster,
  aTransferStage,
  attemptsOf,
  type Managed,
  patient,
  type TransferStage,
  transferOf,
  untilBooked,
} from '../transfer-stage.ts'
import { type Answer, aPayer, codeOf, type Payer, request } from '../world.ts'

// Base counts a payment five blocks deep; its blocks are final when they are safe, here 32 deep.
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ epochBlocks: 32, config: { settleWaitMs: 500 } })
})
afterEach(() => {
  stage.node.tellTheTruth()
  return stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

interface Sold {
  readonly paymentId: string
  readonly master: Managed
  readonly payer: Payer
  readonly nonce: `0x${string}`
  readonly before: `0x${string}`
}

/** A payment of 2.5 USDC, settled at the payment depth; `before` is the chain before it. */
async function aSettledPayment(): Promise<Sold> {
  const { world, key, chain } = stage
  const master = await aMaster(stage)
  const payer = await aPayer(stage.dev)
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const terms = { walletId: master.id, price: '2.5', resource: 'https://api.example.com/weather' }
  const before = await chain.snapshot()
  const credential = await payer.credential(await world.call(key, 'POST', '/payments/challenge', terms), {
    sign: { nonce },
  })
  const { body } = await world.call(key, 'POST', '/payments/verify', { ...terms, protocol: 'x402', credential })
  const { paymentId, settlementToken } = body
  const settled = async () => {
    const answer = await world.call(key, 'POST', '/payments/settle', { paymentId, settlementToken })
    await chain.mine({ blocks: 1 })
    return answer.status
  }
  await expect.poll(settled, patient).toBe(200)
  return { paymentId: String(paymentId), master, payer, nonce, before }
}

function refund(paymentId: string, headers = {}): Promise<Answer> {
  const { hasty, key } = stage
  return request(hasty.base, { key, method: 'POST', path: `/payments/${paymentId}/refund`, body: {}, headers })
}

/** Mines until the transfer has this status. */
async function mineUntil(transferId: string, status: string): Promise<void> {
  const statusNow = async (): Promise<unknown> => {
    stage.clock.forward(5_000)
    await stage.chain.mine({ blocks: 1 })
    return (await transferOf(stage, transferId)).status
  }
  await expect.poll(statusNow, patient).toBe(status)
}

async function statusOf(refundId: unknown): Promise<string> {
  const Row = z.object({ status: z.string() })
  return (
    await stage.world.database.db.one(Row, sql`select status from payment_refunds where id = ${String(refundId)}`)
  ).status
}

const balanceOf = ({ payer }: Sold) => tokenBalance(stage.dev, 'USDC', payer.account.address)

test('a refund whose block is undone is paid once, by the same bytes, and takes no second refund meanwhile', async () => {
  const sold = await aSettledPayment()
  await stage.chain.mine({ blocks: 40 })
  const paidBack = await balanceOf(sold)
  const before = await stage.chain.snapshot()
  const made = await refund(sold.paymentId)
  expect([made.status, codeOf(made)]).toEqual([201, ''])
  const transferId = String(made.body.transferId)
  await mineUntil(transferId, 'confirmed')
  await stage.chain.mine({ blocks: 8 })
  const signed = (await attemptsOf(stage, transferId)).map(({ hash }) => hash)
  await stage.chain.setAutomine(false)
  await stage.chain.revert({ id: before })
  await stage.chain.mine({ blocks: 20 })
  const pending = async () => {
    stage.clock.forward(5_000)
    return (await transferOf(stage, transferId)).status
  }
  await expect.poll(pending, patient).toBe('pending')
  expect(codeOf(await refund(sold.paymentId))).toBe('refund-exceeds-payment')
  const ended = async () => {
    stage.clock.forward(5_000)
    await stage.chain.mine({ blocks: 2 })
    return statusOf(made.body.id)
  }
  await expect.poll(ended, patient).toBe('completed')
  expect((await attemptsOf(stage, transferId)).map(({ hash }) => hash)).toEqual(signed)
  expect((await balanceOf(sold)) - paidBack).toBe(2_500_000n)
})

/** Mines blocks until all so far are final, and waits until the watcher has read them. */
async function mineUntilFinal(): Promise<void> {
  await stage.chain.mine({ blocks: 40 })
  await untilBooked(stage.world, stage.dev)
}

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
  const sold = await aSettledPayment()
  const { chain } = stage
  await chain.revert({ id: sold.before })
  await cancel(sold)
  const hash = await sendAgain(sold.paymentId)
  await mineUntilFinal()
  expect((await chain.getTransactionReceipt({ hash })).status).toBe('reverted')
  const refused = await refund(sold.paymentId)
  expect([codeOf(refused), refused.headers.get('retry-after')]).toEqual(['payment-not-refundable', null])
  expect(await balanceOf(sold)).toBe(1_000_000_000n)
})

test('a payment whose transaction came back in another block with its money is refunded', async () => {
  const sold = await aSettledPayment()
  const { chain } = stage
  await chain.revert({ id: sold.before })
  await chain.setAutomine(true)
  await chain.mine({ blocks: 2 })
  const hash = await sendAgain(sold.paymentId)
  await mineUntilFinal()
  expect((await chain.getTransactionReceipt({ hash })).status).toBe('success')
  expect((await refund(sold.paymentId)).status).toBe(201)
})

test('no refund leaves for a payment that a reorganization can still undo: the payer would be paid what they never paid', async () => {
  const sold = await aSettledPayment()
  const early = await refund(sold.paymentId)
  expect([early.status, codeOf(early), early.headers.get('retry-after')]).toEqual([409, 'payment-not-refundable', '15'])
  const { chain } = stage
  await chain.revert({ id: sold.before })
  await cancel(sold)
  await mineUntilFinal()
  expect(codeOf(await refund(sold.paymentId))).toBe('payment-not-refundable')
  expect(await balanceOf(sold)).toBe(1_000_000_000n)
})

test('a refund of a payment whose block is not final yet is done by its own repeat, with the same Idempotency-Key', async () => {
  const { paymentId } = await aSettledPayment()
  const headers = { 'idempotency-key': 'once it is final' }
  expect((await refund(paymentId, headers)).status).toBe(409)
  await stage.chain.mine({ blocks: 40 })
  expect((await refund(paymentId, headers)).status).toBe(201)
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

/** As if the payment had been settled 25 hours ago. */
function dayLater(paymentId: string): Promise<number> {
  return stage.world.database.db.run(
    sql`update payments set settled_at = settled_at - interval '25 hours' where id = ${paymentId}`,
  )
}

test('a day later a payment is refunded although the nodes have forgotten its receipt', async () => {
  const { paymentId } = await aSettledPayment()
  await mineUntilFinal()
  stage.node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  expect((await refund(paymentId)).status).toBe(409)
  await dayLater(paymentId)
  expect((await refund(paymentId)).status).toBe(201)
})

test('no refund ever leaves for a payment that a reorganization removed', async () => {
  const { paymentId, before } = await aSettledPayment()
  await stage.chain.revert({ id: before })
  await mineUntilFinal()
  await dayLater(paymentId)
  expect(codeOf(await refund(paymentId))).toBe('payment-not-refundable')
  const { timestamp } = await stage.chain.getBlock()
  await stage.chain.setNextBlockTimestamp({ timestamp: timestamp + 600n })
  stage.clock.forward(600_000)
  await mineUntilFinal()
  const refused = await refund(paymentId)
  expect([codeOf(refused), refused.headers.get('retry-after')]).toEqual(['payment-not-refundable', null])
})
