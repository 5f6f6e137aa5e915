import { tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aMaster, aTransferStage, begin, bodyFrom, send, type TransferStage, untilSent } from '../transfer-stage.ts'

let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage()
})
afterAll(() => stage?.stop())

test('a transfer in a block that its lane has not recorded yet counts once', async () => {
  const master = await aMaster(stage)
  await stage.chain.setAutomine(false)
  const body = bodyFrom(master, { amount: '60' })
  await untilSent(stage, await begin(stage, body))
  const readings = stage.node.requested('eth_call')
  // Hides the block until the wallet was evaluated three times.
  stage.node.lie('eth_getTransactionReceipt', ({ truth }) =>
    stage.node.requested('eth_call') - readings < 3 ? { result: null } : truth(),
  )
  await stage.chain.mine({ blocks: 1 })
  await stage.chain.setAutomine(true)
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(60_000_000n)
  const sent = await send(stage, bodyFrom(master, { amount: '30' }))
  expect([sent.status, sent.body]).toMatchObject([201, { status: 'confirmed' }])
})
