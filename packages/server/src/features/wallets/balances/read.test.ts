import { type Address, type Network, networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { Chain, Chains, Holding, HoldingQuestion } from '../../../chain/port.ts'
import { createHoldingReader } from './read.ts'

const network = networkByName('base-sepolia') as Network
const account: Address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const other: Address = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359'

/** A chain on which every read finds one coin more. */
function aStage() {
  const stage = { reads: 0, failing: false }
  const holdings = async (questions: readonly HoldingQuestion[]): Promise<Holding[]> => {
    stage.reads += 1
    if (stage.failing) throw new Error('the node is down')
    return questions.map(() => ({ native: BigInt(stage.reads), tokens: [] }))
  }
  const chains: Pick<Chains, 'on'> = { on: () => ({ holdings }) as unknown as Chain }
  const read = createHoldingReader({ chains })
  const nativeOf = async (whose: Address) => (await read(network, whose)).native
  return { stage, nativeOf }
}

test('nothing that was read before is answered again', async () => {
  const { stage, nativeOf } = aStage()
  expect([await nativeOf(account), await nativeOf(account), stage.reads]).toEqual([1n, 2n, 2])
})

test('callers at once share one call', async () => {
  const { stage, nativeOf } = aStage()
  await Promise.all([account, account, other, account, other].map(nativeOf))
  expect(stage.reads).toBe(1)
})

test('a failed read fails those who waited for it and nobody afterwards', async () => {
  const { stage, nativeOf } = aStage()
  stage.failing = true
  const failed = await Promise.allSettled([nativeOf(account), nativeOf(account)])
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  stage.failing = false
  expect(await nativeOf(account)).toBe(2n)
})
