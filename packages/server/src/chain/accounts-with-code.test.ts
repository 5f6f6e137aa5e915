import type { DevChain } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aLiarStage, type LiarStage } from '../../test/liar-stage.ts'
import type { LyingNode } from '../../test/lying-node.ts'

// The token has code, the other account has none.
let dev: DevChain
let liar: LyingNode
let stage: LiarStage
let coded: Address
const plain: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'

beforeAll(async () => {
  stage = await aLiarStage()
  ;({ dev, liar } = stage)
  coded = dev.tokens.USDC ?? '0x'
})
afterEach(() => liar.tellTheTruth())
afterAll(() => stage?.stop())

/** Those that have code where one of this many nodes, the first, lies. */
async function found(nodes: number): Promise<readonly string[]> {
  return [...(await stage.among(nodes - 1).accountsWithCode([coded, plain]))].toSorted()
}

const both = () => [coded, plain].map((account) => account.toLowerCase()).toSorted()

test('a node that hides code or invents it is outvoted by two others', async () => {
  for (const code of ['0x', '0x6001']) {
    liar.lie('eth_getCode', () => ({ result: code }))
    expect(await found(3)).toEqual([coded.toLowerCase()])
  }
})

test('an account of which two nodes disagree counts as one with code, so that it is sent alone', async () => {
  liar.lie('eth_getCode', () => ({ result: '0x' }))
  expect(await found(2)).toEqual([coded.toLowerCase()])
  liar.lie('eth_getCode', () => ({ result: '0x6001' }))
  expect(await found(2)).toEqual(both())
})

test('a node that fails is not needed among three, and without it one of two does not decide', async () => {
  liar.lie('eth_getCode', () => ({ error: { code: -32_005, message: 'busy' } }))
  expect(await found(3)).toEqual([coded.toLowerCase()])
  await expect(found(2)).rejects.toMatchObject({ code: 'chain-unavailable' })
})

test('a single node decides alone', async () => {
  expect(await found(1)).toEqual([coded.toLowerCase()])
})
