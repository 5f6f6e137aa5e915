import { type DevChain, startChain } from '@purser/devnet'
import { type Address, networkByName } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type LyingNode, startLyingNode } from '../../test/lying-node.ts'
import { systemClock } from '../platform/clock.ts'
import { createOutbound, type Outbound } from '../platform/outbound.ts'
import { createChains } from './chains.ts'

// The token has code, the other account has none.
let dev: DevChain
let liar: LyingNode
let outbound: Outbound
let coded: Address
const plain: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'

beforeAll(async () => {
  dev = await startChain({ network: 'base-sepolia' })
  coded = dev.tokens.USDC ?? '0x'
  liar = await startLyingNode(dev.rpcUrl)
  outbound = createOutbound()
})
afterEach(() => liar.tellTheTruth())
afterAll(async () => {
  await outbound?.close()
  await liar?.stop()
  await dev?.stop()
})

/** Those that have code where one of this many nodes, the first, lies. */
async function found(nodes: number): Promise<readonly string[]> {
  const network = networkByName('base-sepolia')
  if (network === undefined) throw new Error('no such network')
  const rpcUrls = { 'base-sepolia': [liar.url, ...Array.from({ length: nodes - 1 }, () => dev.rpcUrl)] }
  const chains = createChains({ outbound, clock: systemClock, networks: [network], rpcUrls, rpcTimeoutMs: 4_000 })
  return [...(await chains.on(network).accountsWithCode([coded, plain]))].toSorted()
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
