import { createServer, type Server } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import { createOutbound, type Outbound, OutboundError } from '../../platform/outbound.ts'
import { callFaultOf } from './call-fault.ts'
import { createNodes } from './nodes.ts'
import { readReceipt, resultOf } from './read.ts'
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

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }
type NodeReply = { readonly status?: number; readonly body: unknown; readonly slow?: 'stops' | 'pauses' }
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

test('a request to a node that never responds is given up', async () => {
  const rpc = createRpc(outbound, {
    nodes: nodesAt([await aNode(() => 'never')]),
    chainId,
    timeoutMs: 200,
    clock: systemClock,
    lagBlocks: 3n,
  })
  const error: unknown = await rpc.call('eth_blockNumber', []).catch((thrown: unknown) => thrown)
  expect(isProblem(error, 'chain-unavailable')).toBe(true)
})

/** A receipt as go-ethereum returns it, of a transaction that wrote this many empty logs. */
function receiptOf(hash: unknown, count: number) {
  const placed = {
    blockHash: `0x${'b'.repeat(64)}`,
    blockNumber: '0x1f',
    transactionHash: hash,
    transactionIndex: '0x1',
  }
  const address = `0x${'a'.repeat(40)}`
  const logs = Array.from({ length: count }, (_, index) => {
    const logIndex = `0x${index.toString(16)}`
    return { address, topics: [], data: '0x', ...placed, blockTimestamp: '0x6563a1b2', logIndex, removed: false }
  })
  return {
    ...placed,
    status: '0x1',
    gasUsed: '0x5208',
    effectiveGasPrice: '0x1',
    logs,
    logsBloom: '0x',
    note: 'a "logs":[ of text',
  }
}

test('a receipt of more than 8 MiB is read with others, and its node is not at fault', async () => {
  let requests = 0
  const url = await aNode((calls) => {
    requests += 1
    return {
      body: calls.map(({ id, params: [hash] }) => ({
        jsonrpc: '2.0',
        id,
        result: receiptOf(hash, hash === '0x01' ? 30_000 : 2),
      })),
    }
  })
  const nodes = nodesAt([url])
  const rpc = createRpc(outbound, { nodes, chainId, timeoutMs: 4_000, clock: systemClock, lagBlocks: 3n })
  const answers = await rpc.batch(
    ['0x02', '0x01', '0x03'].map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
  )
  const receipts = answers.map((response, index) => readReceipt(resultOf(response), `0x0${[2, 1, 3][index]}`))
  expect(receipts.map((receipt) => receipt?.logs.length)).toEqual([2, 30_000, 2])
  expect(receipts[1]?.logs.at(-1)).toEqual({ address: `0x${'a'.repeat(40)}`, topics: [], data: '0x' })
  expect(nodes.all.map(({ state }) => state)).toEqual(['up'])
  expect(requests).toBe(1)
})

test('calls whose answers are too large together are sent again in parts, to the same node', async () => {
  const sizes: number[] = []
  const url = await aNode((calls) => {
    sizes.push(calls.length)
    return { body: calls.map(({ id, method }) => ({ jsonrpc: '2.0', id, result: method.padEnd(3_000_000, ' ') })) }
  })
  const nodes = nodesAt([url, 'http://127.0.0.1:1'])
  const rpc = createRpc(outbound, { nodes, chainId, timeoutMs: 4_000, clock: systemClock, lagBlocks: 3n })
  const methods = ['a', 'b', 'c', 'd', 'e']
  const answers = await rpc.batch(methods.map((method) => ({ method, params: [] })))
  expect(answers.map((response) => response.ok && String(response.result).trim())).toEqual(methods)
  expect(sizes).toEqual([5, 1, 1, 1, 1, 1])
  expect(nodes.all.map(({ state }) => state)).toEqual(['up', 'unchecked'])
})

test('a node that refuses a batch because its response is too large gets its calls in parts', async () => {
  const error = { code: -32_003, message: 'response too large' }
  const url = await aNode((calls) => ({
    body: calls.map(({ id }, index) => ({ jsonrpc: '2.0', id, ...(index < 2 ? { result: id } : { error }) })),
  }))
  const answers = await anRpc([url]).batch(['a', 'b', 'c', 'd', 'e'].map((method) => ({ method, params: [] })))
  expect(answers.every(({ ok }) => ok)).toBe(true)
})

test('calls that are alike are sent once', async () => {
  const sizes: number[] = []
  const url = await aNode((calls) => {
    sizes.push(calls.length)
    return { body: calls.map(({ id, params: [hash] }) => ({ jsonrpc: '2.0', id, result: hash })) }
  })
  const hashes = ['0x01', '0x02', '0x01', '0x01', '0x02']
  const answers = await anRpc([url]).batch(
    hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
  )
  expect(answers).toEqual(hashes.map((result) => ({ ok: true, result })))
  expect(sizes).toEqual([2])
})

test('logs that are too large for a response are an error of their call, and no other call fails', async () => {
  const url = await aNode((calls) => ({
    body: calls.map(({ id, method }) => ({
      jsonrpc: '2.0',
      id,
      result: method === 'eth_getLogs' ? 'x'.repeat(9_000_000) : '0x1',
    })),
  }))
  const nodes = nodesAt([url])
  const rpc = createRpc(outbound, { nodes, chainId, timeoutMs: 4_000, clock: systemClock, lagBlocks: 3n })
  const answers = await rpc.batch(['eth_getLogs', 'b', 'c'].map((method) => ({ method, params: [] })))
  expect(answers.map(({ ok }) => ok)).toEqual([false, true, true])
  expect(nodes.all.map(({ state }) => state)).toEqual(['up'])
})

test('a call that reverts with megabytes is read up to 1 MiB, and is a revert', async () => {
  let requests = 0
  const error = { code: 3, message: 'execution reverted', data: `0x${'00'.repeat(2_000_000)}` }
  const node = () =>
    aNode((calls) => {
      requests += 1
      return { body: calls.map(({ id }) => ({ jsonrpc: '2.0', id, error })) }
    })
  const response = await anRpc([await node(), await node()]).call('eth_estimateGas', [{}])
  expect(callFaultOf(response)).toBe('code')
  expect(response).toMatchObject({ ok: false, data: undefined })
  expect(requests).toBe(1)
})

test('logs of more than 8 MiB are read entry by entry', async () => {
  const log = {
    address: `0x${'a'.repeat(40)}`,
    topics: [`0x${'1'.repeat(64)}`],
    data: `0x${'2'.repeat(600)}`,
    removed: false,
  }
  const url = await aNode((calls) => ({
    body: calls.map(({ id, method }) => ({
      jsonrpc: '2.0',
      id,
      result:
        method === 'eth_getLogs'
          ? Array.from({ length: 15_000 }, (_, index) => ({ ...log, logIndex: index }))
          : { number: '0x1' },
    })),
  }))
  const [header, logs] = await anRpc([url]).batch(
    ['eth_getBlockByNumber', 'eth_getLogs'].map((method) => ({ method, params: [] })),
  )
  expect(header).toEqual({ ok: true, result: { number: '0x1' } })
  const read: unknown = logs?.ok === true ? logs.result : undefined
  expect(read).toHaveLength(15_000)
  expect(Array.isArray(read) && read.at(-1)).toEqual({ ...log, logIndex: 14_999 })
})

/** Answers with receipts; writes the first MiB of each response with the receipt `0x01` and then nothing, or all of it in parts with pauses. */
function aSlowNode(kind: 'stops' | 'pauses'): Promise<string> {
  return aNode((calls) => {
    const body = calls.map(({ id, params: [hash] }) => ({
      jsonrpc: '2.0',
      id,
      result: hash === undefined ? '0x1' : receiptOf(hash, hash === '0x01' ? 6_000 : 2),
    }))
    return calls.some(({ params: [hash] }) => hash === '0x01') ? { body, slow: kind } : { body }
  })
}

test('a voter that cannot deliver one receipt in time delivers the others of its request, and is not at fault', async () => {
  const nodes = nodesAt([await aSlowNode('stops')])
  const { voters } = createRpc(outbound, { nodes, chainId, timeoutMs: 1_500, clock: systemClock, lagBlocks: 3n })
  const hashes = ['0x02', '0x01', '0x03']
  const calls = hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }))
  const answers = await voters[0]?.rpc.batch(calls)
  expect(answers?.map(({ ok }) => ok)).toEqual(hashes.map((hash) => hash !== '0x01'))
  expect(nodes.all.map(({ state }) => state)).toEqual(['up'])
  const alone = await createRpc(outbound, { nodes, chainId, timeoutMs: 1_500, clock: systemClock, lagBlocks: 3n })
    .batch(calls)
    .catch((error: unknown) => error)
  expect(isProblem(alone, 'chain-unavailable'), 'no other node has it').toBe(true)
}, 20_000)

test('a voter that begins a response to another call and does not end it is at fault', async () => {
  const url = await aNode((calls) => ({
    body: calls.map(({ id }) => ({ jsonrpc: '2.0', id, result: 'x'.repeat(1_500_000) })),
    slow: 'stops',
  }))
  const nodes = nodesAt([url])
  const { voters } = createRpc(outbound, { nodes, chainId, timeoutMs: 1_000, clock: systemClock, lagBlocks: 3n })
  await expect(voters[0]?.rpc.batch([{ method: 'eth_getBlockByNumber', params: ['latest', false] }])).rejects.toThrow()
  expect(nodes.all.map(({ state }) => state)).toEqual(['suspended'])
})

test('a receipt of more than 1 MiB may take longer than a response, as long as parts of it arrive', async () => {
  const nodes = nodesAt([await aSlowNode('pauses')])
  const rpc = createRpc(outbound, { nodes, chainId, timeoutMs: 2_000, clock: systemClock, lagBlocks: 3n })
  const answers = await rpc.batch(
    ['0x02', '0x01'].map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
  )
  expect(answers.map(({ ok }) => ok)).toEqual([true, true])
})

test('a node whose response to one call is too large, unlike that of another node, is suspended', async () => {
  const liar = await aNode((calls) => ({
    body: calls.map(({ id }) => ({ jsonrpc: '2.0', id, result: 'x'.repeat(9_000_000) })),
  }))
  const nodes = nodesAt([liar, await aNode((calls) => ({ body: entries(calls) }))])
  const rpc = createRpc(outbound, { nodes, chainId, timeoutMs: 4_000, clock: systemClock, lagBlocks: 3n })
  expect(await rpc.result('eth_blockNumber', [])).toBe('0x1')
  expect(nodes.all.map(({ state }) => state)).toEqual(['suspended', 'up'])
})

function nodesAt(urls: readonly string[]) {
  return createNodes({ network: 'base-sepolia', urls, clock: systemClock })
}

function anRpc(urls: readonly string[]): Rpc {
  return createRpc(outbound, { nodes: nodesAt(urls), chainId, timeoutMs: 4_000, clock: systemClock, lagBlocks: 3n })
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
    const { status = 200, body, slow } = { status: 200, ...nextReply }
    const whole = Array.isArray(parsed) || !Array.isArray(body) ? body : body[0]
    response.writeHead(status, { 'content-type': 'application/json' })
    const text = JSON.stringify(whole)
    if (slow === undefined) return void response.end(text)
    const early = 1_200_000
    response.write(text.slice(0, early))
    if (slow === 'stops') return
    const step = Math.ceil((text.length - early) / 10)
    for (let at = early; at < text.length; at += step) {
      await new Promise((resolve) => setTimeout(resolve, 300))
      response.write(text.slice(at, at + step))
    }
    response.end()
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}
