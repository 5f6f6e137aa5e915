import { afterAll, beforeAll, expect, test } from 'vitest'
import { aSettledPayment, dayLater, mineUntilFinal, refund } from '../refund-stage.ts'
import { aTransferStage, type TransferStage } from '../transfer-stage.ts'
import { codeOf } from '../world.ts'

// Three nodes, of which two forget what a test says.
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({
    epochBlocks: 32,
    config: { settleWaitMs: 100 },
    nodes: ({ lying, honest }) => [lying, `${lying}/second`, honest],
  })
})
afterAll(() => stage?.stop())

test('a day later a payment is refunded although only one of three nodes still has its receipt', async () => {
  const { paymentId } = await aSettledPayment(stage)
  await mineUntilFinal(stage)
  stage.node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  const early = await refund(stage, paymentId)
  expect([codeOf(early), early.headers.get('retry-after')]).toEqual(['payment-not-refundable', '15'])
  await dayLater(stage, paymentId)
  expect((await refund(stage, paymentId)).status).toBe(201)
})
