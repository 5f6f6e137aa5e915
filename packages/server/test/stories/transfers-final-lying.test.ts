import { toHex } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aSettledPayment, mineUntilFinal, refund } from '../refund-stage.ts'
import {
  aMaster,
  aTransferStage,
  begin,
  bodyFrom,
  driving,
  eventsOf,
  hasEnded,
  type TransferStage,
  transferOf,
} from '../transfer-stage.ts'

// The first of three nodes lies about receipts. Blocks are safe 32 deep, and a payment counts five deep.
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ epochBlocks: 32, nodes: ({ lying, honest }) => [lying, honest, honest] })
})
afterEach(() => stage.node.tellTheTruth())
afterAll(() => stage?.stop())

async function isAwaited(id: string): Promise<boolean> {
  await stage.chain.mine({ blocks: 1 })
  const statement = sql`select finality_at is not null as is_awaited from transfers where id = ${id}`
  return (await stage.world.database.db.one(z.object({ isAwaited: z.boolean() }), statement)).isAwaited
}

function lieWith(changes: object): void {
  stage.node.lie('eth_getTransactionReceipt', async ({ truth }) => {
    const reply = await truth()
    return 'result' in reply && reply.result !== null ? { result: { ...Object(reply.result), ...changes } } : reply
  })
}

const lies = {
  'in another block': { blockNumber: '0x1', blockHash: `0x${'7'.repeat(64)}` },
  'without its logs': { logs: [] },
}

test.each(Object.entries(lies))(
  'a transfer ends once its block is safe, and is confirmed all the time, although a node shows its receipt %s',
  async (_, lie) => {
    const id = await begin(stage, bodyFrom(await aMaster(stage)))
    await expect.poll(() => isAwaited(id), driving).toBe(true)
    lieWith(lie)
    await stage.chain.mine({ blocks: 40 })
    const seen = new Set<unknown>()
    const ended = async (): Promise<boolean> => {
      stage.clock.forward(5_000)
      seen.add((await transferOf(stage, id)).status)
      return hasEnded(stage, id)
    }
    await expect.poll(ended, { ...driving, timeout: 20_000 }).toBe(true)
    expect(seen).toEqual(new Set(['confirmed']))
    expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
  },
)

test('a payment in a final block is refunded, although a node shows its receipt in the newest one', async () => {
  const { paymentId } = await aSettledPayment(stage)
  await mineUntilFinal(stage)
  const { number, hash: blockHash } = await stage.chain.getBlock()
  lieWith({ blockNumber: toHex(number), blockHash })
  expect((await refund(stage, paymentId)).status).toBe(201)
})
