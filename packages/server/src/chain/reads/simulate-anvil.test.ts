import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import { type Address, encodeTransfer, zeroAddress } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fail } from '../errors.ts'
import type { BalanceReading } from '../port.ts'
import type { Rpc, RpcResponse } from '../rpc/rpc.ts'
import { simulate } from './simulate.ts'

const sender = privateKeyToAddress(generatePrivateKey())
const payee = privateKeyToAddress(generatePrivateKey())

/** An `Rpc` to a node that lacks the given methods. */
function nodeAt(url: string, missing: readonly string[] = []): Rpc {
  const call = async (method: string, params: readonly unknown[]): Promise<RpcResponse> => {
    if (missing.includes(method)) throw fail('chain-unavailable', {}, new Error(`no ${method}`))
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    const { result, error } = (await response.json()) as {
      result?: unknown
      error?: { code: number; message: string; data?: `0x${string}` }
    }
    return error === undefined ? { ok: true, result } : { ok: false, ...error, data: error.data }
  }
  const rpc: Rpc = {
    call,
    batch: (calls) => Promise.all(calls.map(({ method, params }) => call(method, params))),
    async result(method, params) {
      const response = await call(method, params)
      if (!response.ok) throw fail('chain-unavailable', {}, new Error(response.message))
      return response.result
    },
    onOneNode: (work) => work(rpc),
  }
  return rpc
}

const ways = [
  ['eth_simulateV1', []],
  ['eth_call with overrides', ['eth_simulateV1']],
] as const

describe('on Base', () => {
  let base: DevChain
  let usdc: Address
  beforeAll(async () => {
    base = await startChain({ network: 'base' })
    usdc = base.tokens.USDC as Address
    await fundToken(base, 'USDC', sender, 100_000_000n)
    await fundNative(base, sender, 10n ** 18n)
  })
  afterAll(() => base?.stop())

  const readings = (): BalanceReading[] => [
    { token: usdc, account: sender },
    { token: usdc, account: payee },
    { token: zeroAddress, account: sender },
    { token: zeroAddress, account: payee },
    { token: usdc, account: 'supply' },
  ]

  test.each(ways)('by %s each balance change is returned, without gas, and nothing moves', async (_, missing) => {
    const rpc = nodeAt(base.rpcUrl, missing)
    const calls = [
      { to: usdc, data: encodeTransfer(payee, 30_000_000n), value: 0n },
      { to: payee, data: '0x', value: 5n },
    ] as const
    for (const _again of [1, 2])
      expect(await simulate(rpc, sender, calls, readings())).toEqual({
        outcome: 'ran',
        changes: [-30_000_000n, 30_000_000n, -5n, 5n, 0n],
      })
  })

  test.each(ways)('by %s a call that reverts is refused with its revert reason', async (_, missing) => {
    const rpc = nodeAt(base.rpcUrl, missing)
    const calls = [
      { to: payee, data: '0x', value: 5n },
      { to: usdc, data: encodeTransfer(payee, 100_000_001n), value: 0n },
    ] as const
    const refused = await simulate(rpc, sender, calls, readings())
    expect(refused).toMatchObject({ outcome: 'refused', reason: expect.stringMatching(/exceeds balance/) })
  })

  test('without a node that supports either method, the outcome is `unable`', async () => {
    const rpc = nodeAt(base.rpcUrl, ['eth_simulateV1', 'eth_call'])
    expect(await simulate(rpc, sender, [], readings())).toEqual({ outcome: 'unable' })
  })

  test('the answer of a node that ignores the code override is rejected', async () => {
    const rpc = nodeAt(base.rpcUrl, ['eth_simulateV1'])
    const ignoring = { ...rpc, call: async (): Promise<RpcResponse> => ({ ok: true, result: '0x' }) }
    expect(await simulate(ignoring, sender, [], readings())).toEqual({ outcome: 'unable' })
  })
})

describe('on Tempo', () => {
  let tempo: DevChain
  beforeAll(async () => {
    tempo = await startChain({ network: 'tempo' })
    await fundToken(tempo, 'pathUSD', sender, 50_000_000n)
  })
  afterAll(() => tempo?.stop())

  test.each(ways)('by %s a token that pays for gas elsewhere changes only by the calls', async (_, missing) => {
    const token = tempo.tokens.pathUSD as Address
    const calls = [{ to: token, data: encodeTransfer(payee, 30_000_000n), value: 0n }]
    const readings = [sender, payee].map((account) => ({ token, account }))
    expect(await simulate(nodeAt(tempo.rpcUrl, missing), sender, calls, readings)).toEqual({
      outcome: 'ran',
      changes: [-30_000_000n, 30_000_000n],
    })
  })
})
