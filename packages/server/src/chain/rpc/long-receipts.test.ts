import { createServer, type Server } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { StoppedClock } from '../../../test/webhooks/clock.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { createNodes } from './nodes.ts'
import { createRpc } from './rpc.ts'

const chainId = 84_532
const timeoutMs = 1_500
/** The limit of a large response. */
const largeMs = 4 * timeoutMs

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

/**
 * A node that begins each response with a receipt `0x1…` and does not end it, and the calls of its requests. It moves the clock by the limit of a large response
 * for each that is read as one: a request of all calls, and a receipt that was requested by itself before.
 */
async function aSlowNode(clock: StoppedClock) {
  const requests: string[][] = []
  const alone = new Set<string>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const parsed: Call | Call[] = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    const calls = Array.isArray(parsed) ? parsed : [parsed]
    const hashes = calls.map(({ params: [hash] }) => String(hash))
    response.writeHead(200, { 'content-type': 'application/json' })
    if (calls[0]?.method === 'eth_chainId')
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id: calls[0].id, result: `0x${chainId.toString(16)}` }))
    requests.push(hashes)
    const whole = calls.map(({ id }) => ({ jsonrpc: '2.0', id, result: null }))
    if (!hashes.some(isLong)) return void response.end(JSON.stringify(Array.isArray(parsed) ? whole : whole[0]))
    const [first = ''] = hashes
    if (hashes.length > 8 || (hashes.length === 1 && alone.has(first))) clock.forward(largeMs)
    if (hashes.length === 1) alone.add(first)
    response.write(`{"jsonrpc":"2.0","id":1,"result":"${' '.repeat(1_200_000)}`)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { url: `http://127.0.0.1:${address.port}`, requests }
}

function isLong(hash: string): boolean {
  return hash.startsWith('0x1')
}

test('receipts that do not arrive delay the others of their request by a limited time, and are then not requested for ten minutes', async () => {
  const clock = new StoppedClock()
  const { url, requests } = await aSlowNode(clock)
  const nodes = createNodes({ network: 'base-sepolia', urls: [url], clock })
  const { voters } = createRpc(outbound, { nodes, chainId, timeoutMs, clock, lagBlocks: 3n })
  const hashes = Array.from({ length: 30 }, (_, index) => `0x${index % 10 === 0 ? 1 : 2}${index}`)
  const calls = hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }))
  const [long, others] = [hashes.filter(isLong), hashes.filter((hash) => !isLong(hash))]
  /** Returns the time that a request of all took, in limits of a large response. */
  const pass = async (): Promise<number> => {
    const before = clock.now().getTime()
    const answers = (await voters[0]?.rpc.batch(calls)) ?? []
    expect(hashes.filter((_, index) => answers[index]?.ok === true)).toEqual(others)
    return (clock.now().getTime() - before) / largeMs
  }
  expect(await pass(), 'the whole request, and one receipt by itself').toBe(2)
  for (const hash of long.slice(1)) {
    requests.length = 0
    expect(await pass(), 'the next receipt by itself').toBe(1)
    expect(requests).toEqual([others, [hash]])
  }
  requests.length = 0
  expect(await pass()).toBe(0)
  expect(requests).toEqual([others])
  expect(nodes.all.map(({ state }) => state)).toEqual(['up'])
  clock.forward(600_000)
  requests.length = 0
  await voters[0]?.rpc.batch(calls)
  expect(requests[0], 'all are requested again').toEqual(hashes)
}, 60_000)
