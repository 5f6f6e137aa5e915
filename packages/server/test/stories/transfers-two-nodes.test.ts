import { tokenBalance } from '@purser/devnet'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { NodeResponse } from '../lying-node.ts'
import {
  aMaster,
  aTransferStage,
  begin,
  bodyFrom,
  eventsOf,
  hasEnded,
  patient,
  reservedBy,
  send,
  stranger,
  type TransferStage,
  transferOf,
} from '../transfer-stage.ts'
import { codeOf } from '../world.ts'

// The first configured node lies; the second is the chain itself.
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia', second: true })
})
afterEach(() => stage.node.tellTheTruth())
afterAll(() => stage?.stop())

/** A true receipt with changed members. */
function lieAboutReceipts(changes: (receipt: Record<string, unknown>) => Record<string, unknown>): void {
  stage.node.lie('eth_getTransactionReceipt', async ({ truth }): Promise<NodeResponse> => {
    const reply = await truth()
    if (!('result' in reply) || reply.result === null) return reply
    const receipt = { ...Object(reply.result) }
    return { result: { ...receipt, ...changes(receipt) } }
  })
}

const lies: readonly (readonly [string, (receipt: Record<string, unknown>) => Record<string, unknown>])[] = [
  ['reverted', () => ({ status: '0x0', logs: [] })],
  ['succeeded without a log', () => ({ logs: [] })],
  ['moved another token', ({ logs }) => ({ logs: (logs as object[]).map((log) => ({ ...log, address: stranger() })) })],
  ['is in a block that does not exist', () => ({ blockHash: `0x${'6'.repeat(64)}` })],
]

test.each(lies)(
  'a transfer of which one node reports that it %s, and another does not, is not ended by it; it ends when they agree, once',
  async (_what, changes) => {
    const master = await aMaster(stage)
    lieAboutReceipts(changes)
    const body = bodyFrom(master)
    const id = await begin(stage, body)
    const moved = () => tokenBalance(stage.dev, 'USDC', body.toAddress)
    await expect.poll(moved, patient).toBe(2_500_000n)
    const before = stage.node.requested('eth_getTransactionReceipt')
    await expect.poll(() => stage.node.requested('eth_getTransactionReceipt'), patient).toBeGreaterThan(before + 4)
    expect(await transferOf(stage, id)).toMatchObject({ status: 'pending', reason: null })
    expect([await eventsOf(stage, id), await reservedBy(stage, master)]).toEqual([[], (5n * 10n ** 18n) / 2n])
    stage.node.tellTheTruth()
    await expect.poll(() => hasEnded(stage, id), patient).toBe(true)
    expect((await transferOf(stage, id)).status).toBe('confirmed')
    expect([await moved(), await eventsOf(stage, id)]).toEqual([2_500_000n, ['transfer.completed']])
  },
)

test('a new wallet sends nothing while one of two nodes answers nonsense, and sends once that node recovers', async () => {
  const master = await aMaster(stage)
  const body = bodyFrom(master)
  stage.node.flood(20_000_000)
  expect((await send(stage, body)).status).toBe(503)
  expect(await tokenBalance(stage.dev, 'USDC', master.address)).toBe(100_000_000n)
  stage.node.tellTheTruth()
  await expect.poll(async () => (await send(stage, body)).body.status, patient).toBe('confirmed')
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
})

test.each([
  ['absurd', { result: '0xffffffffffff' }],
  ['far higher', { result: '0x4c4b40' }],
  ['a refusal', { error: { code: 3, message: 'execution reverted', data: '0x' } }],
])('a transfer whose gas estimate is %s at one node is 503, and is sent once they agree', async (_what, response) => {
  const master = await aMaster(stage)
  stage.node.lie('eth_estimateGas', () => response)
  const body = bodyFrom(master)
  const refused = await send(stage, body)
  expect([refused.status, codeOf(refused), await reservedBy(stage, master)]).toEqual([503, 'chain-unavailable', 0n])
  stage.node.tellTheTruth()
  expect((await send(stage, body)).body.status).toBe('confirmed')
})
