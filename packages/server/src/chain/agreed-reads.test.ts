import { addSanctioned, installSanctionsOracle } from '@purser/devnet'
import { type Address, networkByName, tokenBySymbol, tokenReads } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aLiarStage, type LiarStage } from '../../test/liar-stage.ts'
import { systemClock } from '../platform/clock.ts'
import { createOutbound } from '../platform/outbound.ts'
import { createChains } from './chains.ts'

const oracle: Address = '0x40C57923924B5c5c5455c48D93317139ADDaC8fb'
const listed: Address = '0x098B716B8Aaf21512996dC57EB0615e2383E2f96'
const clean: Address = '0x00000000000000000000000000000000005A11C0'
/** Has coin on every local chain. */
const rich: Address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const base = networkByName('base-sepolia')
const usdc = base && tokenBySymbol(base, 'USDC')
if (base === undefined || usdc === undefined) throw new Error('no such network or token')
let stage: LiarStage

beforeAll(async () => {
  stage = await aLiarStage()
  await installSanctionsOracle(stage.dev, oracle)
  await addSanctioned(stage.dev, oracle, [listed])
})
afterEach(() => stage.liar.tellTheTruth())
afterAll(() => stage?.stop())

/** The first node answers calls with this data by one word. */
function lieAbout(prefix: string, word: string): void {
  const isMeant = ([call]: readonly unknown[]) => String(Object(call).data).startsWith(prefix)
  stage.liar.lie('eth_call', ({ params, truth }) => (isMeant(params) ? { result: `0x${word}` } : truth()))
}

test('one node of three clears no sanctioned account, and one of two leaves it undecided', async () => {
  lieAbout('0xdf592f7d', '0'.repeat(64))
  const sanctionedBy = async (nodes: number) => (await stage.among(nodes).sanctions(oracle, [listed, clean])).sanctioned
  expect(await sanctionedBy(2)).toEqual([true, false])
  expect(await sanctionedBy(1)).toEqual([undefined, false])
})

test('one node of three neither hides the code of a contract nor invents some, and one of two leaves it open', async () => {
  const plain: Address = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
  for (const code of ['0x', '0x6001'] as const) {
    stage.liar.lie('eth_getCode', () => ({ result: code }))
    const among = stage.among(2)
    expect([(await among.code(usdc.address)).length > 6, await among.code(plain)]).toEqual([true, '0x'])
    await expect(stage.among(1).code(code === '0x' ? usdc.address : plain)).rejects.toMatchObject({
      code: 'chain-unavailable',
    })
  }
})

test('one node of three does not stop payments in a token by another signing domain', async () => {
  const truth = (await stage.among(2).tokenDomain(usdc.address))?.separator
  lieAbout(tokenReads.domainSeparator, '6'.repeat(64))
  expect((await stage.among(2).tokenDomain(usdc.address))?.separator).toBe(truth)
  await expect(stage.among(1).tokenDomain(usdc.address)).rejects.toMatchObject({ code: 'chain-unavailable' })
  const outbound = createOutbound()
  try {
    const rpcUrls = { [base.name]: [stage.liar.url, stage.dev.rpcUrl, stage.dev.rpcUrl] }
    const chains = createChains({ outbound, clock: systemClock, networks: [base], rpcUrls, rpcTimeoutMs: 4_000 })
    await chains.check()
    expect(chains.tokenDomainState(base, usdc)).toBe('right')
  } finally {
    await outbound.close()
  }
})

test.each(['0x0', `0x${'f'.repeat(32)}`])(
  'one node of three that shows %s wei neither hides the coin of an account nor invents some',
  async (shown) => {
    const { coin } = stage.among(0)
    const truth = await coin(rich)
    expect(truth).toBeGreaterThan(0n)
    stage.liar.lie('eth_getBalance', () => ({ result: shown }))
    expect(await coin(rich)).toBe(BigInt(shown))
    expect(await stage.among(2).coin(rich)).toBe(truth)
  },
)
