import { type DevChain, fundToken } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aLiarStage, type LiarStage } from '../../test/liar-stage.ts'
import type { LyingNode } from '../../test/lying-node.ts'

// The token has code; the other two accounts have none, and one unit of the token each.
let dev: DevChain
let liar: LyingNode
let stage: LiarStage
let token: Address
const plain: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
const poor: Address = '0x3333333333333333333333333333333333333333'

beforeAll(async () => {
  stage = await aLiarStage()
  ;({ dev, liar } = stage)
  token = dev.tokens.USDC ?? '0x'
  await fundToken(dev, 'USDC', plain, 1n)
  await fundToken(dev, 'USDC', poor, 1n)
})
afterEach(() => liar.tellTheTruth())
afterAll(() => stage?.stop())

/** Those that are sent alone where one of this many nodes, the first, lies. */
async function found(nodes: number): Promise<readonly string[]> {
  const needs = [
    { signer: token, token, raw: 0n },
    { signer: plain, token, raw: 1n },
    { signer: poor, token, raw: 2n },
  ]
  return [...(await stage.among(nodes - 1).signersToSendSingly(needs))].toSorted()
}

const lowered = (...accounts: readonly Address[]) => accounts.map((account) => account.toLowerCase()).toSorted()
const unfit = () => lowered(token, poor)
const all = () => lowered(token, plain, poor)

test('accounts with code, and accounts with less than their payloads move, are sent alone', async () => {
  expect(await found(1)).toEqual(unfit())
})

test('a node that hides code or invents it is outvoted by two others', async () => {
  for (const code of ['0x', '0x6001']) {
    liar.lie('eth_getCode', () => ({ result: code }))
    expect(await found(3)).toEqual(unfit())
  }
})

test('an account about which two nodes disagree is sent alone', async () => {
  liar.lie('eth_getCode', () => ({ result: '0x' }))
  expect(await found(2)).toEqual(unfit())
  liar.lie('eth_getCode', () => ({ result: '0x6001' }))
  expect(await found(2)).toEqual(all())
})

test('a node that fails is not needed among three, and without it one of two does not decide', async () => {
  for (const method of ['eth_getCode', 'eth_call']) {
    liar.lie(method, () => ({ error: { code: -32_005, message: 'busy' } }))
    expect(await found(3)).toEqual(unfit())
    await expect(found(2)).rejects.toMatchObject({ code: 'chain-unavailable' })
    liar.tellTheTruth()
  }
})
