import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { composeApiKey } from '@purser/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { openCallers } from '../src/http/callers.ts'
import { mcpHttpServer } from '../src/http/http-server.ts'
import { listening } from './stage.ts'

const keyOf = (place: number): string => {
  const bytes = new Uint8Array(32)
  new DataView(bytes.buffer).setUint32(0, place)
  return composeApiKey('test', bytes)
}

/** A service that knows the keys, each with the organisation that it belongs to. */
async function aService(organisations: ReadonlyMap<string, string>) {
  const service = createServer(({ headers }, res) => {
    const id = organisations.get(headers.authorization?.slice('Bearer '.length) ?? '')
    const named = id === undefined ? {} : { 'x-service-organisation': id }
    res.writeHead(id === undefined ? 401 : 200, { 'content-type': 'application/json', ...named })
    res.end(JSON.stringify(id === undefined ? { code: 'unauthenticated' } : { id }))
  })
  const { port } = await listening(service)
  const serverOf = (): never => {
    throw new Error('nobody calls a tool')
  }
  return { baseUrl: `http://127.0.0.1:${port}`, serverOf, onError: () => undefined }
}

test('invented keys of sixteen addresses do not keep a valid new key out', async () => {
  const valid = keyOf(0)
  const find = openCallers(await aService(new Map([[valid, 'one']])))
  let key = 1
  for (let block = 0; block < 16; block += 1)
    for (let count = 0; count < 60; count += 1) await find(keyOf(key++), `2001:db8:0:${block}::1`)
  expect(await find(keyOf(key++), '2001:db8:0:1::1')).toBe('too-many')
  expect(await find(valid, '203.0.113.9')).toMatchObject({ shareOwner: 'one' })
})

test('invented keys of two thousand addresses of one site leave checks to a valid new key', async () => {
  const valid = keyOf(0)
  const service = await aService(new Map([[valid, 'one']]))
  const find = openCallers(service)
  const found = new Map<unknown, number>()
  for (let address = 1; address <= 2_000; address += 1) {
    const one = await find(keyOf(address), `2001:db8:7:${address.toString(16)}::1`)
    found.set(one, (found.get(one) ?? 0) + 1)
  }
  expect(found).toEqual(
    new Map([
      ['unknown', 300],
      ['too-many', 1_700],
    ]),
  )
  expect(await find(keyOf(2_001), '203.0.113.8')).toBe('unknown')
  expect(await find(valid, '203.0.113.9')).toMatchObject({ shareOwner: 'one' })
})

test('what a site has tried is forgotten after a minute', async () => {
  let now = 0
  const find = openCallers(await aService(new Map()), () => now)
  const sends = async (from: number, count: number) => {
    const found: unknown[] = []
    for (let key = from; key < from + count; key += 1) found.push(await find(keyOf(key), `2001:db8:7:${key}::1`))
    return found
  }
  expect((await sends(0, 301)).slice(299)).toEqual(['unknown', 'too-many'])
  now = 59_999
  expect(await sends(400, 1)).toEqual(['too-many'])
  now = 60_000
  expect((await sends(500, 301)).slice(299)).toEqual(['unknown', 'too-many'])
})

test('a known key is checked again after a minute: a revoked one is refused then, and one that cannot be checked is served', async () => {
  const key = keyOf(0)
  const organisations = new Map([[key, 'one']])
  let now = 0
  const find = openCallers(await aService(organisations), () => now)
  const caller = await find(key, '203.0.113.9')
  organisations.delete(key)
  now = 59_999
  expect(await find(key, '203.0.113.9')).toBe(caller)
  now = 60_000
  expect(await Promise.all([find(key, '203.0.113.9'), find(key, '203.0.113.9')])).toEqual(['unknown', 'unknown'])
  organisations.set(key, 'one')
  expect(await find(key, '203.0.113.9')).toBe('unknown')
  now = 120_000
  expect(await find(key, '203.0.113.9')).toMatchObject({ shareOwner: 'one' })
})

/** Sends the head of a request whose body does not come. */
function openRequest(port: number, key: string): { readonly response: () => string } {
  const socket = connect(port, '127.0.0.1')
  let response = ''
  socket.on('data', (chunk) => (response += chunk)).on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  const head = `POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n`
  socket.write(`${head}content-type: application/json\r\ncontent-length: 10\r\n\r\n`)
  return { response: () => response }
}

test('the keys of one organisation have at most half of the requests at once, and another organisation has its own', async () => {
  const keys = Array.from({ length: 15 }, (_, index) => keyOf(index))
  const other = keyOf(99)
  const options = await aService(new Map([...keys.map((key) => [key, 'one'] as const), [other, 'other']]))
  let now = 0
  // So fast that the rate of an organisation refuses none.
  const server = mcpHttpServer(options, { hosts: [], now: () => (now += 20) })
  const { port } = await listening(server)
  const sent = keys.flatMap((key) => Array.from({ length: 32 }, () => openRequest(port, key)))
  const refused = () => sent.filter(({ response }) => response().startsWith('HTTP/1.1 429')).length
  await expect.poll(refused, { timeout: 10_000 }).toBe(15 * 32 - 448)
  const others = Array.from({ length: 32 }, () => openRequest(port, other))
  const [request] = await once(server, 'request')
  expect(request.headers.authorization).toBe(`Bearer ${other}`)
  const { promise: turned, resolve } = Promise.withResolvers<void>()
  openRequest(port, keyOf(0))
  server.once('request', () => resolve())
  await turned
  expect(others.map(({ response }) => response()).join('')).toBe('')
})
