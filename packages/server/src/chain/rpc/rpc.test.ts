import { createServer, type Server } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import { createOutbound, type Outbound, OutboundError } from '../../platform/outbound.ts'
import { createNodes } from './nodes.ts'
import { createRpc, type Rpc } from './rpc.ts'

const chainId = 84_532
let outbound: Outbound
let servers: Server[] = []

beforeAll(() => {
  outbound = createOutbound()
})
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers = []
})
afterAll(() => outbound.close())

type Call = { readonly id: number; readonly method: string }
type NodeReply = { readonly status?: number; readonly body: unknown }
type Answer = (calls: readonly Call[]) => NodeReply

const entries = (calls: readonly Call[]) => calls.map(({ id }) => ({ jsonrpc: '2.0', id, result: '0x1' }))

test.each<readonly [string, Answer]>([
  ['leaves a call unanswered', (calls) => ({ body: entries(calls).slice(1) })],
  ['answers one call twice', (calls) => ({ body: [entries(calls)[0], entries(calls)[0]] })],
  [
    'answers a call that was not made',
    (calls) => ({ body: [entries(calls)[0], { jsonrpc: '2.0', id: 9_999, result: '0x1' }] }),
  ],
  [
    'answers with ids that are text',
    (calls) => ({ body: entries(calls).map((entry) => ({ ...entry, id: String(entry.id) })) }),
  ],
  ['answers neither result nor error', (calls) => ({ body: calls.map(({ id }) => ({ jsonrpc: '2.0', id })) })],
  ['answers one object for two calls', (calls) => ({ body: entries(calls)[0] })],
  ['answers null', () => ({ body: null })],
  ['answers text', () => ({ body: 'ok' })],
  ['answers 429', () => ({ status: 429, body: { error: 'slow down' } })],
  [
    'answers that it is busy',
    (calls) => ({ body: calls.map(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32_005, message: 'limit' } })) }),
  ],
  ['answers without end', () => ({ body: 'x'.repeat(9_000_000) })],
])('the answer of a node that %s is rejected, and the next node is queried', async (_, lie) => {
  const liar = await aNode(lie)
  const honest = await aNode((calls) => ({ body: entries(calls) }))
  const calls = [
    { method: 'a', params: [] },
    { method: 'b', params: [] },
  ]
  const alone = await anRpc([liar])
    .batch(calls)
    .catch((error: unknown) => error)
  expect(isProblem(alone, 'chain-unavailable')).toBe(true)
  expect(await anRpc([liar, honest]).batch(calls)).toEqual([
    { ok: true, result: '0x1' },
    { ok: true, result: '0x1' },
  ])
})

test('answers may come in any order', async () => {
  const node = await aNode((calls) => ({
    body: calls.map(({ id, method }) => ({ jsonrpc: '2.0', id, result: method })).reverse(),
  }))
  const answers = await anRpc([node]).batch([
    { method: 'first', params: [] },
    { method: 'second', params: [] },
  ])
  expect(answers).toEqual([
    { ok: true, result: 'first' },
    { ok: true, result: 'second' },
  ])
})

test('a revert is an answer, with its data, and does not send the call to another node', async () => {
  const error = { code: 3, message: 'execution reverted', data: '0x08c379a0' }
  const node = await aNode((calls) => ({ body: calls.map(({ id }) => ({ jsonrpc: '2.0', id, error })) }))
  const other = await aNode((calls) => ({ body: entries(calls) }))
  expect(await anRpc([node, other]).call('eth_call', [])).toEqual({
    ok: false,
    code: 3,
    message: 'execution reverted',
    data: '0x08c379a0',
  })
})

test('a node with another chain ID is never used, whatever else it answers', async () => {
  const stranger = await aNode((calls) => ({ body: entries(calls) }), 1)
  const rpc = anRpc([stranger])
  expect(isProblem(await rpc.call('eth_blockNumber', []).catch((error: unknown) => error), 'chain-unavailable')).toBe(
    true,
  )
  expect(isProblem(await rpc.call('eth_blockNumber', []).catch((error: unknown) => error), 'chain-unavailable')).toBe(
    true,
  )
})

test('after a node failed, the one that answered is queried first', async () => {
  let requested = 0
  const dead = await aNode(() => {
    requested += 1
    return { status: 500, body: '' }
  })
  const rpc = anRpc([dead, await aNode((calls) => ({ body: entries(calls) }))])
  for (let call = 0; call < 5; call++) await rpc.call('eth_blockNumber', [])
  expect(requested).toBe(1)
})

test('neither a node’s error text nor its URL reaches the caller', async () => {
  const node = await aNode(() => ({ status: 500, body: 'the password is hunter2' }))
  const problem: unknown = await anRpc([`${node}/v2/secret-key`])
    .call('eth_blockNumber', [])
    .catch((error: unknown) => error)
  if (!isProblem(problem)) throw new Error('not a problem')
  expect(JSON.stringify([problem.message, problem.code, problem.entry, problem.members])).not.toMatch(
    /secret-key|hunter2|127\.0\.0\.1/,
  )
  const cause: unknown = problem.cause
  expect(cause).toBeInstanceOf(OutboundError)
  expect(String(cause)).not.toMatch(/secret-key|hunter2|127\.0\.0\.1/)
})

test('a node that never answers is given up after the configured timeout', async () => {
  const rpc = createRpc(outbound, {
    nodes: nodesAt([await aNode(() => 'never')]),
    chainId,
    timeoutMs: 200,
    lagBlocks: 3n,
  })
  const before = performance.now()
  const error: unknown = await rpc.call('eth_blockNumber', []).catch((thrown: unknown) => thrown)
  expect(isProblem(error, 'chain-unavailable')).toBe(true)
  expect(performance.now() - before).toBeLessThan(2_000)
})

function nodesAt(urls: readonly string[]) {
  return createNodes({ network: 'base-sepolia', urls, clock: systemClock })
}

function anRpc(urls: readonly string[]): Rpc {
  return createRpc(outbound, { nodes: nodesAt(urls), chainId, timeoutMs: 4_000, lagBlocks: 3n })
}

/** A node that reports its chain ID and otherwise answers as configured. */
async function aNode(answer: (calls: readonly Call[]) => NodeReply | 'never', ofChain = chainId): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const parsed: Call | Call[] = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    const calls = Array.isArray(parsed) ? parsed : [parsed]
    const isGreeting = calls[0]?.method === 'eth_chainId'
    const nextReply: NodeReply | 'never' = isGreeting
      ? { body: { jsonrpc: '2.0', id: calls[0]?.id, result: `0x${ofChain.toString(16)}` } }
      : answer(calls)
    if (nextReply === 'never') return
    const { status = 200, body } = { status: 200, ...nextReply }
    const whole = Array.isArray(parsed) || !Array.isArray(body) ? body : body[0]
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}
