import {
  addSanctioned,
  type DevChain,
  type FaultProxy,
  installSanctionsOracle,
  removeSanctioned,
  startChain,
  startFaultProxy,
} from '@purser/devnet'
import { type Address, networks } from '@purser/protocol'
import { toFunctionSelector } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ShiftedClock } from '../../../test/webhooks/clock.ts'
import { createChains } from '../../chain/index.ts'
import type { Clock } from '../../platform/clock.ts'
import { createLog } from '../../platform/log.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { bundledList } from './bundled-list.ts'
import { createOracle } from './screening.ts'

const onEthereum = '0x40C57923924B5c5c5455c48D93317139ADDaC8fb'
const onBase = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B'
const ronin: Address = '0x098B716B8Aaf21512996dC57EB0615e2383E2f96'
const log = createLog({ level: 'silent' })

let ethereum: DevChain
let base: DevChain
let proxy: FaultProxy
let outbound: Outbound

beforeAll(async () => {
  outbound = createOutbound()
  ;[ethereum, base] = await Promise.all([startChain({ network: 'ethereum' }), startChain({ network: 'base' })])
  await Promise.all([installSanctionsOracle(ethereum, onEthereum), installSanctionsOracle(base, onBase)])
  await Promise.all([addSanctioned(ethereum, onEthereum, [ronin]), addSanctioned(base, onBase, [ronin])])
  proxy = await startFaultProxy(ethereum.rpcUrl)
})
beforeEach(() => proxy.set('pass'))
afterAll(async () => {
  await outbound.close()
  await proxy.stop()
  await Promise.all([ethereum.stop(), base.stop()])
})

function anOracle(rpcUrls: Record<string, readonly string[]>, clock: Clock = new ShiftedClock()) {
  const chains = createChains({ outbound, clock, networks, rpcUrls, rpcTimeoutMs: 1_000 })
  return createOracle({ chains, clock, log })
}

const viaEthereum = () => anOracle({ ethereum: [proxy.url] })
const viaBoth = () => anOracle({ ethereum: [proxy.url], base: [base.rpcUrl], 'base-sepolia': ['http://127.0.0.1:1'] })

function anAddress(): Address {
  return privateKeyToAddress(generatePrivateKey())
}

test('the oracle is called with the real contract’s selector and distinguishes sanctioned addresses from others', async () => {
  expect(toFunctionSelector('isSanctioned(address)')).toBe('0xdf592f7d')
  const [listed, other] = [anAddress(), anAddress()]
  await addSanctioned(ethereum, onEthereum, [listed])
  const batch = await viaEthereum()([other, listed, other])
  expect([0, 1, 2].map(batch.of)).toEqual(['clean', 'sanctioned', 'clean'])
  expect(batch.networks).toEqual(['ethereum'])
  await removeSanctioned(ethereum, onEthereum, [listed])
  expect((await viaEthereum()([listed])).of(0)).toBe('clean')
})

test('a hundred addresses are one request', async () => {
  const before = proxy.requests
  const batch = await viaEthereum()(Array.from({ length: 100 }, anAddress))
  expect(batch.of(99)).toBe('clean')
  // One more request checks the node's chain ID.
  expect(proxy.requests - before).toBe(2)
})

test('there is no oracle without a supported network or on test networks', async () => {
  expect((await anOracle({ tempo: ['http://127.0.0.1:1'], 'eth-sepolia': [proxy.url] })([anAddress()])).of(0)).toBe(
    'none',
  )
})

test('one of two networks that reports sanctioned is enough', async () => {
  const [onOne, onOther] = [anAddress(), anAddress()]
  await addSanctioned(ethereum, onEthereum, [onOne])
  await addSanctioned(base, onBase, [onOther])
  const batch = await viaBoth()([onOne, onOther, anAddress()])
  expect([0, 1, 2].map(batch.of)).toEqual(['sanctioned', 'sanctioned', 'clean'])
  expect(batch.networks).toEqual(['base', 'ethereum'])
})

test.each(['drop', 'hang', 'error500', 'garbage', 'wrong', 'rate-limit'] as const)(
  'an oracle whose node does "%s" fails, and the other alone does not clear an address',
  async (mode) => {
    const listed = anAddress()
    await addSanctioned(base, onBase, [listed])
    proxy.set(mode)
    const batch = await viaBoth()([anAddress(), listed])
    expect([batch.of(0), batch.of(1)]).toEqual(['failed', 'sanctioned'])
  },
)

test('an address without a contract, and contracts that sanction everybody or nobody, are not accepted as oracle', async () => {
  const chain = await startChain({ network: 'polygon' })
  const ask = async () => (await anOracle({ polygon: [chain.rpcUrl] })([anAddress()])).of(0)
  try {
    expect(await ask()).toBe('failed')
    await installSanctionsOracle(chain, onEthereum)
    expect(await ask()).toBe('failed')
    await addSanctioned(chain, onEthereum, [ronin])
    expect(await ask()).toBe('clean')
    await addSanctioned(chain, onEthereum, ['0x00000000000000000000000000000000005A11C0'])
    expect(await ask()).toBe('failed')
  } finally {
    await chain.stop()
  }
})

test('a node whose latest block is over an hour old fails', async () => {
  const clock = new ShiftedClock()
  clock.forward(2 * 3_600_000)
  expect((await anOracle({ ethereum: [proxy.url] }, clock)([anAddress()])).of(0)).toBe('failed')
})

test('a node of another chain is not queried about addresses', async () => {
  expect((await anOracle({ ethereum: [base.rpcUrl] })([anAddress()])).of(0)).toBe('failed')
})

test('the probe addresses are on the bundled list', () => {
  const listed = new Set<string>(bundledList.addresses)
  for (const probe of [
    ronin,
    '0x7F367cC41522cE07553e823bf3be79A889DEbe1B',
    '0xd882cFc20F52f2599D84b8e8D58C7FB62cfE344b',
  ])
    expect(listed.has(probe.toLowerCase())).toBe(true)
})
