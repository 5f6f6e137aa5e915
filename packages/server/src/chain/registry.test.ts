import { createServer, type Server } from 'node:http'
import { type Network, networkByName, networks, tokenBySymbol } from '@purser/protocol'
import { encodeAbiParameters, hashDomain } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { ShiftedClock } from '../../test/webhooks/clock.ts'
import { isProblem } from '../platform/errors.ts'
import type { Log } from '../platform/log.ts'
import { createOutbound, type Outbound } from '../platform/outbound.ts'
import { createChains } from './chains.ts'
import type { Chains } from './port.ts'
import { createNodes, type Nodes } from './rpc/nodes.ts'
import { createRpc } from './rpc/rpc.ts'

const found = networkByName('base-sepolia')
if (found === undefined) throw new Error('no such network')
const network: Network = found
const usdc = tokenBySymbol(network, 'USDC')
if (usdc === undefined) throw new Error('no USDC')

let outbound: Outbound
let clock: ShiftedClock
let servers: Server[] = []
let running: Chains[] = []
let errors: unknown[] = []

beforeAll(() => {
  outbound = createOutbound()
})
beforeEach(() => {
  clock = new ShiftedClock()
  errors = []
})
afterEach(async () => {
  for (const chains of running) await chains.stop()
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers = []
  running = []
})
afterAll(() => outbound.close())

interface FakeNode {
  readonly url: string
  chainId: number
  isDown: boolean
  height: number
  /** The head that the node reports, in place of its height. */
  head?: string
  /** The token's metadata; undefined when there is no token. */
  token: { name: string; version: string; decimals: number } | undefined
  /** JSON-RPC error code to return instead of a result, by method. */
  readonly faults: Map<string, number>
  readonly requested: string[]
}

async function aNode(): Promise<FakeNode> {
  const requested: string[] = []
  const node: FakeNode = {
    url: '',
    chainId: network.chainId,
    isDown: false,
    height: 100,
    token: { name: 'USDC', version: '2', decimals: 6 },
    faults: new Map(),
    requested,
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const parsed: Call | Call[] = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    const calls = Array.isArray(parsed) ? parsed : [parsed]
    requested.push(...calls.map(({ method }) => method))
    if (node.isDown) return response.writeHead(503).end()
    const answers = calls.map((call) => answerOf(node, call))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(Array.isArray(parsed) ? answers : answers[0]))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return Object.assign(node, { url: `http://127.0.0.1:${address.port}` })
}

interface Call {
  readonly id: number
  readonly method: string
  readonly params: readonly { readonly data?: string }[]
}

function answerOf(node: FakeNode, { id, method, params }: Call) {
  const fault = node.faults.get(method)
  if (fault !== undefined) return { jsonrpc: '2.0', id, error: { code: fault, message: 'no' } }
  return { jsonrpc: '2.0', id, result: resultOf(node, method, params[0]?.data ?? '') }
}

function resultOf({ chainId, height, head, token }: FakeNode, method: string, data: string): unknown {
  if (method === 'eth_chainId') return `0x${chainId.toString(16)}`
  if (method === 'eth_blockNumber') return head ?? `0x${height.toString(16)}`
  if (method === 'eth_getBlockByNumber')
    return { number: head ?? `0x${height.toString(16)}`, timestamp: '0x1', baseFeePerGas: '0x1' }
  if (method === 'eth_getLogs') return []
  if (method !== 'eth_call' || token === undefined) return '0x'
  if (data.startsWith('0x06fdde03')) return encodeAbiParameters([{ type: 'string' }], [token.name])
  if (data.startsWith('0x54fd4d50')) return encodeAbiParameters([{ type: 'string' }], [token.version])
  if (data.startsWith('0x313ce567')) return encodeAbiParameters([{ type: 'uint256' }], [BigInt(token.decimals)])
  if (data.startsWith('0x3644e515')) return separatorOf(token)
  return `0x${'0'.repeat(64)}`
}

/** Computed by viem, so that our hash is compared with an independent one. */
function separatorOf({ name, version }: { name: string; version: string }): string {
  return hashDomain({
    domain: { name, version, chainId: BigInt(network.chainId), verifyingContract: usdc?.address ?? '0x' },
    types: {
      EIP712Domain: [
        { name: 'name', type: 'string' },
        { name: 'version', type: 'string' },
        { name: 'chainId', type: 'uint256' },
        { name: 'verifyingContract', type: 'address' },
      ],
    },
  })
}

const log = {
  error: (...parts: unknown[]) => void errors.push(parts),
  warn: () => {},
  info: () => {},
} as unknown as Log

function chainsOf(...nodes: readonly FakeNode[]): Chains {
  const rpcUrls = { 'base-sepolia': nodes.map(({ url }) => url) }
  const chains = createChains({ outbound, clock, networks, rpcUrls, rpcTimeoutMs: 4_000, log })
  running.push(chains)
  return chains
}

function rpcOf(...nodes: readonly FakeNode[]) {
  const health = createNodes({ network: network.name, urls: nodes.map(({ url }) => url), clock })
  return {
    health,
    rpc: createRpc(outbound, { nodes: health, chainId: network.chainId, timeoutMs: 4_000, clock, lagBlocks: 3n }),
  }
}

function statesOf({ all }: Nodes) {
  return all.map(({ state }) => state)
}

async function problemOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.catch((thrown: unknown) => thrown)
  if (!isProblem(error)) throw new Error(`no problem: ${String(error)}`)
  return error.code
}

test('at startup the chain ID of every node is checked; a node of another chain is refused with an error log and never used', async () => {
  const [right, stranger] = [await aNode(), await aNode()]
  stranger.chainId = 1
  const chains = chainsOf(stranger, right)
  chains.watch()
  const waiting = { status: 'up', up: 1, needed: 2, refused: 1, suspended: 0, money: 'waits' }
  await expect.poll(() => chains.health(network)).toMatchObject(waiting)
  await chains.on(network).head()
  expect(new Set(stranger.requested)).toEqual(new Set(['eth_chainId']))
  expect(JSON.stringify(errors)).toContain('reports another chain ID')
  expect(JSON.stringify(errors)).not.toContain('127.0.0.1')
})

test('when all nodes are of another chain there is no answer, and none of them receives a request', async () => {
  const stranger = await aNode()
  stranger.chainId = 1
  const { rpc } = rpcOf(stranger)
  expect(await problemOf(rpc.result('eth_blockNumber', []))).toBe('chain-unavailable')
  expect(stranger.requested).toEqual(['eth_chainId'])
})

test('a node’s chain ID is checked again after it was unreachable', async () => {
  const [changed, other] = [await aNode(), await aNode()]
  const { rpc, health } = rpcOf(changed, other)
  await rpc.result('eth_blockNumber', [])
  changed.isDown = true
  await rpc.result('eth_blockNumber', [])
  expect(statesOf(health)).toEqual(['suspended', 'up'])
  changed.isDown = false
  changed.chainId = 1
  clock.forward(6_000)
  await rpc.probe()
  expect(statesOf(health)).toEqual(['refused', 'up'])
  changed.chainId = network.chainId
  clock.forward(61_000)
  await rpc.probe()
  expect(statesOf(health)).toEqual(['up', 'up'])
})

test('the chain ID of a healthy node is checked periodically', async () => {
  const node = await aNode()
  const { rpc, health } = rpcOf(node)
  await rpc.probe()
  node.chainId = 1
  clock.forward(301_000)
  await rpc.probe()
  expect(statesOf(health)).toEqual(['refused'])
  expect(await problemOf(rpc.result('eth_blockNumber', []))).toBe('chain-unavailable')
})

test('a failing node is suspended, probed in the background, and preferred again when it recovers', async () => {
  const [first, second] = [await aNode(), await aNode()]
  const { rpc, health } = rpcOf(first, second)
  await rpc.result('eth_blockNumber', [])
  first.isDown = true
  for (let n = 0; n < 5; n++) await rpc.result('eth_blockNumber', [])
  const requestedWhileDown = first.requested.length
  expect(second.requested.filter((method) => method === 'eth_blockNumber')).toHaveLength(5)
  for (let n = 0; n < 5; n++) await rpc.result('eth_blockNumber', [])
  expect(first.requested).toHaveLength(requestedWhileDown)
  await rpc.probe()
  expect(first.requested).toHaveLength(requestedWhileDown)
  clock.forward(5_001)
  await rpc.probe()
  expect([first.requested.length, statesOf(health)]).toEqual([requestedWhileDown + 1, ['suspended', 'up']])
  clock.forward(5_001)
  await rpc.probe()
  expect(first.requested).toHaveLength(requestedWhileDown + 1)
  first.isDown = false
  clock.forward(5_001)
  await rpc.probe()
  expect(statesOf(health)).toEqual(['up', 'up'])
  const before = second.requested.length
  await rpc.result('eth_blockNumber', [])
  expect(second.requested).toHaveLength(before)
})

test('both nodes down is 503 chain-unavailable, and the first that recovers answers at once, suspended or not', async () => {
  const [first, second] = [await aNode(), await aNode()]
  first.isDown = true
  second.isDown = true
  const chains = chainsOf(first, second)
  const read = () => chains.on(network).head()
  for (let n = 0; n < 4; n++) expect(await problemOf(read())).toBe('chain-unavailable')
  expect(chains.health(network)).toMatchObject({ status: 'down', suspended: 2, money: 'waits' })
  second.isDown = false
  expect(await read()).toMatchObject({ number: expect.any(BigInt) })
  expect(chains.health(network)).toMatchObject({ status: 'up', up: 1 })
})

test('a node that lacks a method stays up, and an overloaded one is suspended', async () => {
  const [first, second] = [await aNode(), await aNode()]
  const { rpc, health } = rpcOf(first, second)
  first.faults.set('eth_maxPriorityFeePerGas', -32_601)
  second.faults.set('eth_maxPriorityFeePerGas', -32_601)
  expect(await problemOf(rpc.result('eth_maxPriorityFeePerGas', []))).toBe('chain-unavailable')
  await rpc.result('eth_blockNumber', [])
  expect(statesOf(health)).not.toContain('suspended')
  first.faults.set('eth_blockNumber', -32_005)
  await rpc.result('eth_blockNumber', [])
  expect(statesOf(health)).toEqual(['suspended', 'up'])
})

test('reads that need one node use a single node though another is at a different height; when it fails midway, all of them are repeated', async () => {
  const [ahead, behind] = [await aNode(), await aNode()]
  behind.height = 50
  const { rpc } = rpcOf(ahead, behind)
  const read = () =>
    rpc.onOneNode(async (one) => {
      const before = await one.result('eth_blockNumber', [])
      await one.result('eth_getLogs', [])
      return [before, await one.result('eth_blockNumber', [])]
    })
  expect(await read()).toEqual(['0x64', '0x64'])
  ahead.faults.set('eth_getLogs', -32_005)
  expect(await read()).toEqual(['0x32', '0x32'])
  expect(behind.requested).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_getLogs', 'eth_blockNumber'])
})

test('a node whose head is behind the others by more than the limit is used last, and first again when it has caught up', async () => {
  const [first, second, third] = [await aNode(), await aNode(), await aNode()]
  const { rpc, health } = rpcOf(first, second, third)
  for (const { rpc: own } of rpc.voters) await own.result('eth_blockNumber', [])
  second.height = 103
  third.height = 103
  await rpc.compareHeads()
  expect(statesOf(health)).toEqual(['up', 'up', 'up'])
  second.height = 104
  third.height = 104
  await rpc.compareHeads()
  expect(statesOf(health)).toEqual(['behind', 'up', 'up'])
  expect(await rpc.result('eth_blockNumber', [])).toBe('0x68')
  second.isDown = true
  third.isDown = true
  expect(await rpc.result('eth_blockNumber', []), 'used when no other answers').toBe('0x64')
  expect(statesOf(health), 'an answer alone does not clear `behind`').toEqual(['behind', 'suspended', 'suspended'])
  second.isDown = false
  third.isDown = false
  for (const { rpc: own } of rpc.voters) await own.result('eth_blockNumber', [])
  first.height = 101
  await rpc.compareHeads()
  expect(statesOf(health)).toEqual(['up', 'up', 'up'])
  expect(await rpc.result('eth_blockNumber', [])).toBe('0x65')
})

test('one of three nodes that invents blocks does not make the others count as behind; of two nodes, the one with fewer blocks is used last', async () => {
  const [liar, second, third] = [await aNode(), await aNode(), await aNode()]
  liar.height = 1_000_000
  const three = rpcOf(liar, second, third)
  for (const { rpc: own } of three.rpc.voters) await own.result('eth_blockNumber', [])
  await three.rpc.compareHeads()
  expect(statesOf(three.health)).toEqual(['up', 'up', 'up'])
  const two = rpcOf(second, liar)
  for (const { rpc: own } of two.rpc.voters) await own.result('eth_blockNumber', [])
  await two.rpc.compareHeads()
  expect(statesOf(two.health)).toEqual(['behind', 'up'])
})

test.each([`-${'9'.repeat(100)}`, '9'.repeat(100), `0x${'f'.repeat(65)}`])(
  'a head that is no JSON-RPC quantity (%s) is not compared: its millions of digits would stop the process',
  async (head) => {
    const [liar, second] = [Object.assign(await aNode(), { head }), await aNode()]
    const { rpc, health } = rpcOf(liar, second)
    for (const { rpc: own } of rpc.voters) await own.result('eth_chainId', [])
    await rpc.compareHeads()
    expect(statesOf(health)).toEqual(['up', 'up'])
  },
)

test('a token whose domain matches the registry is right, and is unchecked before a node answered', async () => {
  const node = await aNode()
  node.isDown = true
  const chains = chainsOf(node)
  chains.watch()
  await expect.poll(() => chains.health(network)?.status).toBe('down')
  await expect.poll(() => JSON.stringify(errors)).toContain('no network is reachable')
  expect(chains.tokenDomainState(network, usdc)).toBe('unchecked')
  node.isDown = false
  clock.forward(61_000)
  await expect.poll(() => chains.tokenDomainState(network, usdc)).toBe('right')
  expect(JSON.stringify(errors)).not.toContain('does not match the registry')
})

test.each([
  ['another name', { name: 'USD Coin', version: '2', decimals: 6 }],
  ['another version', { name: 'USDC', version: '1', decimals: 6 }],
  ['other decimals', { name: 'USDC', version: '2', decimals: 18 }],
  ['no code', undefined],
])('a token with %s is refused with an error log', async (_what, token) => {
  const node = await aNode()
  node.token = token
  const chains = chainsOf(node)
  chains.watch()
  await expect.poll(() => chains.tokenDomainState(network, usdc)).toBe('wrong')
  expect(chains.health(network)?.wrongTokens).toEqual(['USDC'])
  expect(JSON.stringify(errors)).toContain('does not match the registry')
})

test('an error of a node’s call leaves a token unchecked, and a wrong token is checked again each minute', async () => {
  const node = await aNode()
  const chains = chainsOf(node)
  const stateThen = async () => {
    await chains.check()
    return chains.tokenDomainState(network, usdc)
  }
  node.faults.set('eth_call', -32_016)
  expect(await stateThen()).toBe('unchecked')
  node.faults.clear()
  node.token = { name: 'USDC', version: '3', decimals: 6 }
  expect(await stateThen()).toBe('wrong')
  node.token = { name: 'USDC', version: '2', decimals: 6 }
  clock.forward(61_000)
  expect(await stateThen()).toBe('right')
})

test('a token’s signing domain is checked again every hour', async () => {
  const node = await aNode()
  const chains = chainsOf(node)
  chains.watch()
  await expect.poll(() => chains.tokenDomainState(network, usdc)).toBe('right')
  node.token = { name: 'USDC', version: '3', decimals: 6 }
  clock.forward(3_601_000)
  await expect.poll(() => chains.tokenDomainState(network, usdc)).toBe('wrong')
})

test('a main network with a single node is reported, in the log and by its health; a test network is not', async () => {
  const lines: unknown[] = []
  const warning = { ...log, warn: (...parts: unknown[]) => void lines.push(parts) } as Log
  const [single, first, second, sandbox] = [await aNode(), await aNode(), await aNode(), await aNode()]
  const rpcUrls = {
    base: [single.url],
    ethereum: [first.url, second.url],
    'base-sepolia': [sandbox.url],
  }
  const chains = createChains({ outbound, clock, networks, rpcUrls, rpcTimeoutMs: 4_000, log: warning })
  running.push(chains)
  const moneyOn = (name: string) => chains.health(networks.find((one) => one.name === name) ?? network)
  expect(['base', 'ethereum', 'base-sepolia'].map((name) => moneyOn(name)?.money)).toEqual(['alone', 'moves', 'moves'])
  expect(lines).toEqual([
    [{ network: 'base' }, expect.stringContaining('a single node confirms payments of real money')],
  ])
})
