import { type Address, type Hex, type Network, networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import { fail } from '../../../chain/errors.ts'
import type { Chain, Chains, Holding, HoldingQuestion } from '../../../chain/port.ts'
import { createHoldingReader } from './read.ts'

const network = networkByName('base-sepolia') as Network
const account: Address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const other: Address = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359'

/** A chain on which each read returns one coin more, with a newest block, and blocks that the node lacks. */
function aStage() {
  const stage = { reads: 0, heads: 0, failing: false, hash: '0xa1' as Hex, lacking: new Set<Hex>() }
  const holdings = async (questions: readonly HoldingQuestion[], blockHash?: Hex): Promise<Holding[]> => {
    stage.reads += 1
    if (stage.failing) throw new Error('the node is down')
    if (blockHash !== undefined && stage.lacking.has(blockHash)) throw fail('chain-unavailable')
    return questions.map(() => ({ native: BigInt(stage.reads), tokens: [] }))
  }
  const head = async () => {
    stage.heads += 1
    return { number: 7n, hash: stage.hash, parentHash: '0x00', timestampSeconds: 1n }
  }
  const chain = { network, holdings, blocks: { head } } as unknown as Chain
  const chains: Pick<Chains, 'on'> = { on: () => chain }
  const read = createHoldingReader({ chains })
  const nativeOf = async (whose: Address) => (await read(network, whose)).native
  return { stage, nativeOf }
}

test('an account is read once per block, and again in the next block, even at the same height', async () => {
  const { stage, nativeOf } = aStage()
  expect([await nativeOf(account), await nativeOf(account)]).toEqual([1n, 1n])
  expect(stage.heads, 'each caller gets the balance as of the newest block').toBe(2)
  stage.hash = '0xa2'
  expect([await nativeOf(account), await nativeOf(account), stage.reads]).toEqual([2n, 2n, 2])
  stage.hash = '0xa1'
  expect(await nativeOf(account)).toBe(3n)
})

test('concurrent callers share one call', async () => {
  const { stage, nativeOf } = aStage()
  await Promise.all([account, account, other, account, other].map(nativeOf))
  expect([stage.reads, stage.heads]).toEqual([1, 1])
})

test('a failed read fails its own waiters and no later caller', async () => {
  const { stage, nativeOf } = aStage()
  stage.failing = true
  const failed = await Promise.allSettled([nativeOf(account), nativeOf(account)])
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  stage.failing = false
  expect(await nativeOf(account)).toBe(2n)
})

test('where the node that answers does not have the block, its own latest block is read and not remembered', async () => {
  const { stage, nativeOf } = aStage()
  stage.lacking.add(stage.hash)
  expect([await nativeOf(account), await nativeOf(account)]).toEqual([2n, 4n])
  stage.lacking.clear()
  expect([await nativeOf(account), await nativeOf(account)]).toEqual([5n, 5n])
})

test('ten thousand accounts later the cache has no more than that', async () => {
  const { stage, nativeOf } = aStage()
  const accounts = Array.from({ length: 10_050 }, (_, n): Address => `0x${n.toString(16).padStart(40, '0')}`)
  await Promise.all(accounts.map(nativeOf))
  const before = stage.reads
  await nativeOf(accounts[0] ?? account)
  expect(stage.reads).toBe(before + 1)
  await nativeOf(accounts[10_049] ?? account)
  expect(stage.reads).toBe(before + 1)
})
