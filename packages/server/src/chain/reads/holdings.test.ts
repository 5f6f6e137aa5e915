import { createServer, type Server } from 'node:http'
import { type Address, networkByName } from '@purser/protocol'
import { decodeFunctionData, encodeAbiParameters, encodeFunctionResult, type Hex, multicall3Abi, toHex } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { createChains } from '../chains.ts'
import type { Chain } from '../port.ts'

let outbound: Outbound
const servers: Server[] = []

beforeAll(() => {
  outbound = createOutbound()
})
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})
afterAll(() => outbound.close())

const Call = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()) })
const Calls = z.union([Call.transform((call) => [call]), z.array(Call)])
const EthCall = z.tuple([z.object({ to: z.string(), data: z.templateLiteral(['0x', z.string()]) }), z.string()])
type Returns = { readonly success: boolean; readonly returnData: Hex }[]

const token: Address = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const accounts = [1, 2, 3].map((number): Address => toHex(number, { size: 20 }))
const questions = accounts.map((account) => ({ account, tokens: [token] }))
const word = (value: bigint): Hex => encodeAbiParameters([{ type: 'uint256' }], [value])

/** A node whose multicall returns n for the n-th call, modified by `change`. It counts its requests and calls. */
async function aNode(network: string, change: (results: Returns) => Returns | Hex = (results) => results) {
  const requested = { requests: 0, calls: 0, targets: new Set<string>() }
  const resultOf = (call: z.output<typeof Call>): unknown => {
    if (call.method === 'eth_chainId') return toHex(networkByName(network)?.chainId ?? 0)
    const [{ data }] = EthCall.parse(call.params)
    const { args } = decodeFunctionData({ abi: multicall3Abi, data })
    const calls = z.array(z.object({ target: z.string() })).parse(args?.[0])
    requested.calls += calls.length
    for (const { target } of calls) requested.targets.add(target)
    const results = change(calls.map((_, index) => ({ success: true, returnData: word(BigInt(index)) })))
    return typeof results === 'string'
      ? results
      : encodeFunctionResult({ abi: multicall3Abi, functionName: 'aggregate3', result: results })
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
      const calls = Calls.parse(body)
      if (calls[0]?.method !== 'eth_chainId') requested.requests += 1
      const answers = calls.map((call) => ({ jsonrpc: '2.0', id: call.id, result: resultOf(call) }))
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]))
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { url: `http://127.0.0.1:${address.port}`, requested }
}

function chainAt(network: string, urls: readonly string[]): Chain {
  const known = networkByName(network)
  if (known === undefined) throw new Error('no such network')
  const options = { outbound, clock: systemClock, networks: [known], rpcUrls: { [network]: urls }, rpcTimeoutMs: 2_000 }
  return createChains(options).on(known)
}

test('one call reads the coin and the tokens of several accounts, each for its own account', async () => {
  const { url, requested } = await aNode('base-sepolia')
  expect(await chainAt('base-sepolia', [url]).holdings(questions)).toEqual([
    { native: 0n, tokens: [1n] },
    { native: 2n, tokens: [3n] },
    { native: 4n, tokens: [5n] },
  ])
  expect([requested.requests, requested.calls]).toEqual([1, 6])
})

test('a thousand accounts are one request of four calls', async () => {
  const { url, requested } = await aNode('base-sepolia')
  const many = Array.from({ length: 1_000 }, (_, n) => ({ account: toHex(n + 1, { size: 20 }), tokens: [token] }))
  const holdings = await chainAt('base-sepolia', [url]).holdings(many)
  expect(holdings).toHaveLength(1_000)
  expect(holdings[250]).toEqual({ native: 0n, tokens: [1n] })
  expect([requested.requests, requested.calls]).toEqual([1, 2_000])
})

test('on Tempo no native coin is requested', async () => {
  const { url, requested } = await aNode('tempo-moderato')
  expect(await chainAt('tempo-moderato', [url]).holdings(questions)).toEqual(
    [0n, 1n, 2n].map((balance) => ({ native: undefined, tokens: [balance] })),
  )
  expect([...requested.targets].map((target) => target.toLowerCase())).toEqual([token.toLowerCase()])
})

test.each<readonly [string, (results: Returns) => Returns | Hex]>([
  ['leaves one out', (results) => results.slice(1)],
  ['adds one', (results) => [...results, ...results.slice(0, 1)]],
  ['says that one failed', (results) => results.map((result, index) => ({ ...result, success: index !== 3 }))],
  [
    'gives nothing for one',
    (results) => results.map((result, index) => (index === 3 ? { ...result, returnData: '0x' } : result)),
  ],
  [
    'gives half a number',
    (results) => results.map((result) => ({ ...result, returnData: `0x${result.returnData.slice(34)}` as const })),
  ],
  [
    'gives two numbers for one',
    (results) =>
      results.map((result) => ({ ...result, returnData: `${result.returnData}${word(1n).slice(2)}` as const })),
  ],
  ['has no such contract', () => '0x'],
  ['answers garbage', () => '0xdeadbeef'],
  ['answers a number', () => word(7n)],
])('a node that %s is reported as chain-unavailable and never as a balance', async (_, lie) => {
  const { url } = await aNode('base-sepolia', lie)
  const response = await chainAt('base-sepolia', [url])
    .holdings(questions)
    .catch((error: unknown) => error)
  expect(isProblem(response, 'chain-unavailable')).toBe(true)
})

test('of concurrent reads only those fail whose token returns no balance', async () => {
  const { url, requested } = await aNode('base-sepolia', (results) =>
    results.map((result, index) => (index === 3 ? { ...result, returnData: '0x' } : result)),
  )
  const chain = chainAt('base-sepolia', [url])
  const answers = await Promise.allSettled(questions.map((question) => chain.holdings([question])))
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  const [first, second, third] = answers.map((response) =>
    response.status === 'fulfilled' ? response.value : response.reason,
  )
  expect([first, third]).toEqual([[{ native: 0n, tokens: [1n] }], [{ native: 4n, tokens: [5n] }]])
  expect(isProblem(second, 'chain-unavailable')).toBe(true)
  expect(requested.requests).toBe(1)
})
