import { Client } from '@modelcontextprotocol/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport as FirstTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer as FirstServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { InMemoryTransport, McpServer } from '@modelcontextprotocol/server'
import { tokenBalance } from '@purser/devnet'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { evm } from 'mppx/client'
import { McpClient } from 'mppx/mcp/client'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { aPayer, aWorld, type DevChain, type Org, startChain, type World } from '../../server/test/world.ts'
import { createPaidTool, paymentOf, type ToolWalletOptions } from '../src/middleware/mcp.ts'

let chain: DevChain
let world: World
let org: Org
let wallet: { readonly id: string; readonly address: `0x${string}` }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const city = z.object({ city: z.string() })

/** A server with a paid tool of each kind, a client of the official SDK, and the cities that the tool worked for. */
async function stage(options: Partial<ToolWalletOptions> = {}) {
  const paidTool = createPaidTool({
    apiKey: org.testKey,
    baseUrl: world.base,
    walletId: wallet.id,
    publicUrl: 'https://mcp.example.com/mcp',
    onFault: () => {},
    ...options,
  })
  const runs: string[] = []
  const server = new McpServer({ name: 'weather', version: '1.0.0' })
  server.registerTool(
    'forecast',
    { inputSchema: city, outputSchema: z.object({ sky: z.string(), payer: z.string() }) },
    paidTool({ name: 'forecast', price: '0.01', description: 'The weather' }, (given, ctx) => {
      runs.push(given.city)
      if (given.city === 'nowhere') throw new Error('no such city')
      const sky = { sky: `clear in ${given.city}`, payer: paymentOf(ctx)?.payer ?? 'nobody' }
      return { content: [{ type: 'text' as const, text: sky.sky }], structuredContent: sky }
    }),
  )
  server.registerTool(
    'priced',
    { inputSchema: city },
    paidTool(
      { name: 'priced', price: (given: { city: string }) => (given.city === 'Paris' ? '0.02' : '0.01') },
      (_given: { city: string }) => ({
        content: [{ type: 'text' as const, text: 'sold' }],
      }),
    ),
  )
  server.registerTool(
    'bare',
    {},
    paidTool({ name: 'bare', price: '0.01' }, () => ({ content: [{ type: 'text' as const, text: 'no arguments' }] })),
  )
  const client = new Client({ name: 'agent', version: '1.0.0' })
  const [near, far] = InMemoryTransport.createLinkedPair()
  await server.connect(far)
  await client.connect(near)
  return { client, runs }
}

const Required = z.object({
  isError: z.literal(true),
  structuredContent: z.looseObject({ x402Version: z.literal(2), accepts: z.array(z.looseObject({})) }),
})

type Offers = Parameters<x402Client['createPaymentPayload']>[0]

/** Calls a tool, pays its x402 offer with the official client, and calls it once more. */
async function payByX402(client: Client, call: { name: string; arguments?: Record<string, unknown> }) {
  const { account } = await aPayer(chain)
  const unpaid = Required.parse(await client.callTool(call))
  const payer = new x402Client().register('eip155:*', new ExactEvmScheme(account))
  const payment = await payer.createPaymentPayload(unpaid.structuredContent as unknown as Offers)
  const again = () => client.callTool({ ...call, _meta: { 'x402/payment': payment } })
  return { account, paid: await again(), again }
}

test('a tool that is not paid for answers the offers of both protocols and does not run', async () => {
  const { client, runs } = await stage()
  const result = await client.callTool({ name: 'forecast', arguments: { city: 'Lima' } })
  const required = Required.parse(result).structuredContent
  expect(required).toMatchObject({ resource: { url: 'https://mcp.example.com/mcp/tools/forecast' } })
  const [text] = z.array(z.object({ text: z.string() })).parse(result.content)
  expect(JSON.parse(text?.text ?? '')).toEqual(required)
  expect(result._meta?.['org.paymentauth/payment-required']).toMatchObject({
    httpStatus: 402,
    challenges: [{ method: 'evm', intent: 'charge', request: { amount: '10000', recipient: wallet.address } }],
    problem: { status: 402, type: 'https://paymentauth.org/problems/payment-required' },
  })
  expect(runs).toEqual([])
})

test.each([
  [{ 'x402/payment': { x402Version: 2 } }],
  [{ 'x402/payment': 7 }],
  [{ 'org.paymentauth/credential': { challenge: 'none' } }],
  [{ 'org.paymentauth/credential': 'none' }],
  [{ 'x402/payment': 'stub_payment_accepted', 'org.paymentauth/credential': { challenge: {} } }],
])('the payment %j runs nothing and is an error', async (_meta) => {
  const { client, runs } = await stage()
  const result = await client.callTool({ name: 'forecast', arguments: { city: 'Lima' }, _meta })
  expect(result.isError).toBe(true)
  expect(runs).toEqual([])
})

test('the official MPP client for MCP pays a tool and gets its receipt', async () => {
  const { client, runs } = await stage()
  const { account } = await aPayer(chain)
  const authorization = { name: 'USDC', version: '2' }
  const paying = McpClient.wrap(client as unknown as FirstClient, {
    methods: [evm({ account, maxAmount: '1', decimals: 6, authorization })],
  })
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const result = await paying.callTool({ name: 'forecast', arguments: { city: 'Lima' } })
  expect(result.structuredContent).toEqual({ sky: 'clear in Lima', payer: account.address })
  expect(result.receipt).toMatchObject({ status: 'success', method: 'evm', challengeId: expect.any(String) })
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
  expect(runs).toEqual(['Lima'])
})

test('the official x402 client pays a tool once, and the payment is good for no second call', async () => {
  const { client, runs } = await stage()
  const { account, paid, again } = await payByX402(client, { name: 'forecast', arguments: { city: 'Lima' } })
  expect(paid.structuredContent).toEqual({ sky: 'clear in Lima', payer: account.address })
  expect(paid._meta?.['x402/payment-response']).toMatchObject({
    success: true,
    network: 'eip155:84532',
    payer: account.address,
    transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
  })
  expect(await again()).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('duplicate-payment') }],
  })
  expect(runs).toEqual(['Lima'])
})

test('a tool that fails charges nothing', async () => {
  const { client, runs } = await stage()
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  const { paid } = await payByX402(client, { name: 'forecast', arguments: { city: 'nowhere' } })
  expect(paid).toMatchObject({ isError: true, content: [{ text: 'no such city' }] })
  expect(paid._meta?.['x402/payment-response']).toBeUndefined()
  expect(runs).toEqual(['nowhere'])
  expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(before)
  const log = async () => (await world.call(org.testKey, 'GET', '/payments/logs?limit=1')).list[0]
  await expect.poll(async () => (await log())?.status).toBe('voided')
})

test('a price that depends on the arguments is that of the paid call, so a cheap payment buys nothing dear', async () => {
  const { client } = await stage()
  const { account } = await aPayer(chain)
  const payer = new x402Client().register('eip155:*', new ExactEvmScheme(account))
  const cheap = Required.parse(await client.callTool({ name: 'priced', arguments: { city: 'Lima' } }))
  const payment = await payer.createPaymentPayload(cheap.structuredContent as unknown as Offers)
  const _meta = { 'x402/payment': payment }
  const dear = await client.callTool({ name: 'priced', arguments: { city: 'Paris' }, _meta })
  expect(Required.parse(dear).structuredContent.accepts[0]).toMatchObject({ amount: '20000' })
  const other = await client.callTool({ name: 'forecast', arguments: { city: 'Lima' }, _meta: { 'x402/payment': {} } })
  expect(other.isError).toBe(true)
  expect((await client.callTool({ name: 'priced', arguments: { city: 'Lima' }, _meta })).content).toEqual([
    { type: 'text', text: 'sold' },
  ])
})

test('a tool without arguments is sold, and one in the first version of the official SDK', async () => {
  const { client } = await stage()
  expect((await payByX402(client, { name: 'bare' })).paid.content).toEqual([{ type: 'text', text: 'no arguments' }])

  const { apiKey, baseUrl, walletId } = { apiKey: org.testKey, baseUrl: world.base, walletId: wallet.id }
  const paidTool = createPaidTool({ apiKey, baseUrl, walletId, publicUrl: 'https://mcp.example.com' })
  const server = new FirstServer({ name: 'weather', version: '1.0.0' })
  server.registerTool(
    'forecast',
    { inputSchema: { city: z.string() } },
    paidTool({ name: 'forecast', price: '0.01' }, ({ city: name }: { city: string }) => ({
      content: [{ type: 'text' as const, text: `clear in ${name}` }],
    })),
  )
  const first = new FirstClient({ name: 'agent', version: '1.0.0' })
  const [near, far] = FirstTransport.createLinkedPair()
  await Promise.all([server.connect(far), first.connect(near)])
  const call = { name: 'forecast', arguments: { city: 'Lima' } }
  expect(await first.callTool(call)).toMatchObject({ isError: true, structuredContent: { x402Version: 2 } })
  const stub = await first.callTool({ ...call, _meta: { 'x402/payment': 'stub_payment_accepted' } })
  expect(stub.content).toEqual([{ type: 'text', text: 'clear in Lima' }])
})

test('a call that was canceled while its payment was settled gets its result with the same payment', async () => {
  const onUndelivered = vi.fn()
  const { apiKey, baseUrl, walletId } = { apiKey: org.testKey, baseUrl: world.base, walletId: wallet.id }
  const paidTool = createPaidTool({ apiKey, baseUrl, walletId, publicUrl: 'https://mcp.example.com', onUndelivered })
  const stop = new AbortController()
  let runs = 0
  const run = paidTool({ name: 'slow', price: '0.01' }, (_given: object, _ctx: object) => {
    runs++
    stop.abort()
    return { content: [{ type: 'text' as const, text: 'goods' }] }
  })
  const { account } = await aPayer(chain)
  const payer = new x402Client().register('eip155:*', new ExactEvmScheme(account))
  const unpaid = Required.parse(await run({}, {}))
  const payment = await payer.createPaymentPayload(unpaid.structuredContent as unknown as Offers)
  const _meta = { 'x402/payment': payment }
  await run({}, { mcpReq: { _meta, signal: stop.signal } })
  expect(onUndelivered).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ isKept: true }))
  expect(await run({}, { mcpReq: { _meta } })).toMatchObject({ content: [{ text: 'goods' }] })
  expect(runs).toBe(1)
})

test('options that cannot work are refused where they are given', () => {
  const options = {
    apiKey: org.testKey,
    baseUrl: world.base,
    walletId: wallet.id,
    publicUrl: 'https://mcp.example.com',
  }
  const make = (changes: object) => Reflect.apply(createPaidTool, undefined, [{ ...options, ...changes }])
  expect(() => make({ publicUrl: undefined })).toThrow('publicUrl is missing. Give the URL of your MCP server.')
  expect(() => make({ walletId: 'x' })).toThrow('walletId is "x"')
  const paidTool = createPaidTool(options)
  expect(() => paidTool({ name: '', price: '1' }, () => ({}))).toThrow('name is "". Give the name of the tool.')
  expect(() => paidTool({ name: 'a', price: '$1' }, () => ({}))).toThrow('price is "$1"')
})
