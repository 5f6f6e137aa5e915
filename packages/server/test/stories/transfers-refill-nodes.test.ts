import { fundToken } from '@purser/devnet'
import { requireNetwork } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { refillChildren } from '../../src/features/transfers/refill.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import type { NodeResponse } from '../lying-node.ts'
import {
  aChild,
  aMaster,
  aTransferStage,
  attemptsOf,
  begin,
  bodyFrom,
  isKnown,
  mineUntilEnded,
  patient,
  type TransferStage,
  untilBooked,
} from '../transfer-stage.ts'

// The first configured node lies; the second is the chain itself. An operator without a gas budget: a child's gas comes from its master.
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ second: true, config: { settleNanoUsdPerDayMax: 0n } })
})
afterEach(async () => {
  stage.node.tellTheTruth()
  await stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

/** The first node reports that accounts have no coin in the newest block. */
function hideCoin(): void {
  stage.node.lie('eth_call', async ({ params: [call, block], truth }): Promise<NodeResponse> => {
    const reply = await truth()
    const isOfCoin = block === 'latest' && String(Object(call).data).includes('4d2301cc')
    return isOfCoin && 'result' in reply ? { result: `${String(reply.result).slice(0, -64)}${'0'.repeat(64)}` } : reply
  })
}

function stepsOf(id: string) {
  const statement = sql`select kind from transfer_steps where transfer_id = ${id} order by position`
  return stage.world.database.db.many(z.object({ kind: z.string() }), statement)
}

async function untilPending(id: string, transactions: number): Promise<void> {
  const isPending = async (): Promise<boolean> => {
    const hash = (await attemptsOf(stage, id))[transactions - 1]?.hash
    return hash !== undefined && (await isKnown(stage, hash))
  }
  await expect.poll(isPending, patient).toBe(true)
}

test('a node that hides the coin of a child makes its master send no more gas', async () => {
  const master = await aMaster(stage, { usdc: 0n })
  const child = await aChild(stage, master)
  await fundToken(stage.dev, 'USDC', child.address, 2_500_000n)
  await untilBooked(stage.world, stage.dev)
  await stage.chain.setAutomine(false)
  const id = await begin(stage, bodyFrom(child))
  await untilPending(id, 1)
  await stage.chain.mine({ blocks: 1 })
  await untilPending(id, 2)
  hideCoin()
  stage.clock.forward(6_000)
  await refillChildren.runOn(systemCtx(stage.world.server.deps), requireNetwork('base'))
  stage.node.tellTheTruth()
  expect(await mineUntilEnded(stage, id)).toMatchObject({ status: 'confirmed' })
  expect((await stepsOf(id)).map(({ kind }) => kind)).toEqual(['top-up', 'send'])
})
