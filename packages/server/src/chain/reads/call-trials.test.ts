import { fundNative, fundToken } from '@purser/devnet'
import { type Address, encodeBalanceOf, encodeTransfer, networkByName, tokenBySymbol } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aLiarStage, type LiarStage } from '../../../test/liar-stage.ts'
import type { Lie } from '../../../test/lying-node.ts'
import type { Chain } from '../port.ts'
import type { Voter } from '../rpc/rpc.ts'
import { requestTrial } from './call-trials.ts'

const base = networkByName('base-sepolia')
const usdc = base && tokenBySymbol(base, 'USDC')
if (base === undefined || usdc === undefined) throw new Error('no such token')
const sender: Address = '0x00000000000000000000000000000000005a11c0'
const payee: Address = '0x00000000000000000000000000000000005a11c1'
const raw = 2_500_000n
const unavailable = { code: 'chain-unavailable' }
const reverted = { error: { code: 3, message: 'execution reverted', data: '0x' } } as const
let stage: LiarStage

beforeAll(async () => {
  stage = await aLiarStage()
  await fundToken(stage.dev, 'USDC', sender, raw)
  await fundNative(stage.dev, sender, 10n ** 18n)
})
afterEach(() => stage.liar.tellTheTruth())
afterAll(() => stage?.stop())

const { address: token } = usdc

function transferOf(rawAmount: bigint) {
  return { to: token, data: encodeTransfer(payee, rawAmount), value: 0n }
}

const tryIn = (chain: Chain, rawAmount: bigint) => chain.tryCall({ from: sender, ...transferOf(rawAmount) })
const tryAllIn = (chain: Chain, rawAmount: bigint) => chain.tryCalls(sender, [transferOf(rawAmount)])
const hex = (value: bigint) => ({ result: `0x${value.toString(16)}` })
const changesTo =
  (change: object): Lie =>
  async ({ truth }) => {
    const [block] = Object(await truth()).result
    return { result: [{ ...block, calls: block.calls.map((call: object) => ({ ...call, ...change })) }] }
  }

interface Trial {
  readonly tried: typeof tryIn
  readonly method: string
  /** Responses with too little gas, with far too much, and of a refusal. */
  readonly lies: readonly [Lie, Lie, Lie]
}

const trials: readonly (readonly [string, Trial])[] = [
  [
    'a call',
    { tried: tryIn, method: 'eth_estimateGas', lies: [() => hex(22_300n), () => hex(13_900_000n), () => reverted] },
  ],
  [
    'calls',
    {
      tried: tryAllIn,
      method: 'eth_simulateV1',
      lies: [
        changesTo({ gasUsed: '0x5208' }),
        changesTo({ gasUsed: '0x989680' }),
        changesTo({ status: '0x0', returnData: '0x' }),
      ],
    },
  ],
]

test.each(trials)(
  'one node of three can neither refuse %s nor change its gas, and of two it gives no less',
  async (_of, { tried, method, lies: [tooLittle, tooMuch, refused] }) => {
    const truth = await tried(stage.among(2), raw)
    expect(truth.ok).toBe(true)
    for (const lie of [tooLittle, tooMuch, refused]) {
      stage.liar.lie(method, lie)
      expect(await tried(stage.among(2), raw)).toEqual(truth)
    }
    await expect(tried(stage.among(1), raw)).rejects.toMatchObject(unavailable)
    stage.liar.lie(method, tooMuch)
    await expect(tried(stage.among(1), raw)).rejects.toMatchObject(unavailable)
    stage.liar.lie(method, tooLittle)
    expect(await tried(stage.among(1), raw).catch(() => truth)).toEqual(truth)
  },
)

const passing: readonly (readonly [string, typeof tryIn, string, Lie])[] = [
  ['a call', tryIn, 'eth_estimateGas', () => hex(70_000n)],
  ['calls', tryAllIn, 'eth_simulateV1', changesTo({ status: '0x1', gasUsed: '0xc350' })],
]

test.each(passing)(
  'one node of three cannot let %s through that the chain refuses',
  async (_of, tried, method, lie) => {
    stage.liar.lie(method, lie)
    expect(await tried(stage.among(2), raw + 1n)).toMatchObject({ ok: false })
    await expect(tried(stage.among(1), raw + 1n)).rejects.toMatchObject(unavailable)
  },
)

test('one node of three neither proves nor refuses the balance changes of calls', async () => {
  const simulated = (among: Chain, least: bigint) =>
    among.simulate({
      from: sender,
      calls: [transferOf(raw)],
      readings: [{ token, account: payee }],
      isExpected: ([change]) => change !== undefined && change >= least,
    })
  for (const lie of [
    changesTo({ returnData: `0x${'0'.repeat(64)}` }),
    changesTo({ status: '0x0', returnData: '0x' }),
  ]) {
    stage.liar.lie('eth_simulateV1', lie)
    expect(await simulated(stage.among(2), raw)).toEqual({ outcome: 'ran', changes: [raw] })
    await expect(simulated(stage.among(1), raw)).rejects.toMatchObject(unavailable)
  }
})

test('one node of three neither invents nor hides a balance', async () => {
  const of = { token, account: sender }
  const holdingsOf = (chain: Chain) => chain.agreedHoldings([{ account: sender, tokens: [token] }])
  const truth = await holdingsOf(stage.among(2))
  const truthWord = raw.toString(16).padStart(64, '0')
  for (const word of ['0'.repeat(64), 'f'.repeat(64)]) {
    stage.liar.lie('eth_call', async ({ truth: query }) => {
      const reply = await query()
      return 'result' in reply ? { result: String(reply.result).replaceAll(truthWord, word) } : reply
    })
    expect(await stage.among(2).balances([of])).toEqual([raw])
    expect(await holdingsOf(stage.among(2))).toEqual(truth)
    expect(await stage.among(2).agreedCall(token, encodeBalanceOf(sender))).toBe(`0x${truthWord}`)
    await expect(holdingsOf(stage.among(1))).rejects.toMatchObject(unavailable)
    await expect(stage.among(1).agreedCall(token, encodeBalanceOf(sender))).rejects.toMatchObject(unavailable)
  }
})

test.each([
  ['base', 21_000n, 21_000n],
  ['base', 37_000n, 62_000n],
  ['base', 200_000n, 240_000n],
  ['tempo', 50_000n, 310_000n],
  ['tempo', 2_000_000n, 2_400_000n],
] as const)('on %s, a call that used %s gas gets a limit of %s', async (name, gas, gasLimit) => {
  const network = networkByName(name)
  if (network === undefined) throw new Error('no such network')
  const electorate = { voters: [{} as Voter], needed: 1 }
  expect(await requestTrial(network, electorate, async () => ({ ok: true, gas }))).toEqual({ ok: true, gasLimit })
})

test('a transfer to a recipient that empties its balance before the block has enough gas', async () => {
  const used: bigint[] = []
  stage.liar.lie('eth_estimateGas', async ({ truth }) => {
    const reply = await truth()
    used.push(BigInt('result' in reply ? String(reply.result) : 0))
    return reply
  })
  await tryIn(stage.among(0), raw)
  await fundToken(stage.dev, 'USDC', payee, 1n)
  const trial = await tryIn(stage.among(0), raw)
  const [ofEmpty = 0n, ofFunded = 0n] = used
  expect(ofEmpty).toBeGreaterThan((ofFunded * 6n) / 5n)
  expect(trial).toMatchObject({ ok: true })
  expect(trial.ok && trial.gasLimit >= ofEmpty).toBe(true)
})

test('one node of three does not raise the number of an account’s transactions', async () => {
  stage.liar.lie('eth_getTransactionCount', () => hex(9n))
  expect(await stage.among(2).transactionCount(sender)).toBe(0n)
})

test('each node gets one request for a trial, and a single node is believed', async () => {
  const before = stage.liar.requested('eth_estimateGas')
  expect(await tryIn(stage.among(1), raw)).toMatchObject({ ok: true })
  expect(stage.liar.requested('eth_estimateGas') - before).toBe(1)
  stage.liar.lie('eth_estimateGas', () => reverted)
  expect(await tryIn(stage.among(0), raw)).toEqual({ ok: false, reason: null })
})
