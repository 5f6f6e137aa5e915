import { once } from 'node:events'
import { createServer } from 'node:http'
import net from 'node:net'
import { Readable } from 'node:stream'
import { composeApiKey } from '@purser/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { tools } from '../src/generated/tools.ts'
import { mcpHttpServer } from '../src/http/http-server.ts'
import { messageBytesMax, readBody, shapeOf } from '../src/http/message.ts'
import { mcpServer } from '../src/server.ts'
import { listening } from './stage.ts'

const keys = [0, 1, 2].map((byte) => composeApiKey('test', new Uint8Array(32).fill(byte)))
/** The first two keys belong to two organisations that share their limits. */
const owners = new Map(keys.map((key, at) => [`Bearer ${key}`, at === 2 ? 'other' : 'one']))

/** The server at a time that a test sets, before a service that counts its calls, or that never responds. */
async function aServer({ isSilent = false } = {}) {
  const state = { now: 0, calls: 0 }
  const service = createServer((req, res) => {
    if (isSilent) return
    if (!req.url?.endsWith('/organisations/current')) state.calls += 1
    const { authorization = '' } = req.headers
    const named = { 'x-service-share': owners.get(authorization) ?? '', 'x-service-organisation': authorization }
    res.writeHead(200, { 'content-type': 'application/json', ...named }).end('{}')
  })
  const { port: servicePort } = await listening(service)
  const options = {
    baseUrl: `http://127.0.0.1:${servicePort}`,
    serverOf: (deps, waitingOf) => mcpServer({ ...deps, tools, version: '0.1.0' }, waitingOf),
    onError: () => undefined,
  } satisfies Parameters<typeof mcpHttpServer>[0]
  const server = mcpHttpServer(options, { hosts: [], now: () => state.now })
  const { port } = await listening(server)
  const url = `http://127.0.0.1:${port}/mcp`
  const post = (key: string | undefined, message: unknown) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${key}`,
      },
      body: typeof message === 'string' ? message : JSON.stringify(message),
    })
  return { state, server, port, post }
}

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
const callOf = (name: string, args: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
})
const membersOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, 0]))

test('organisations that share limits send at most one rate of messages, another one sends its own, and time refills it', async () => {
  const { state, post } = await aServer()
  const statuses: number[] = []
  const send = async (key: string | undefined, message: unknown = ping) => {
    const response = await post(key, message)
    await response.arrayBuffer()
    statuses.push(response.status)
    return response
  }
  for (let sent = 0; sent < 300; sent += 1) await send(keys[sent % 2])
  expect(new Set(statuses)).toEqual(new Set([200]))
  const refused = await send(keys[0])
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect((await send(keys[2])).status).toBe(200)
  state.now = 20
  expect((await send(keys[1])).status).toBe(200)
  expect((await send(keys[1])).status).toBe(429)
})

test('a message of many members costs as many messages as it takes time, whether its tool exists or not', async () => {
  const { state, post } = await aServer()
  const many = membersOf(90_000)
  expect((await post(keys[0], callOf('vaults_list', many))).status).toBe(200)
  const refused = await post(keys[0], ping)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3'])
  expect((await post(keys[2], callOf('no_such_tool', many))).status).toBe(200)
  expect((await post(keys[2], ping)).status).toBe(429)
  expect(state.calls).toBe(0)
})

test('a refusal of many arguments with long names names the first twenty, and their beginnings', async () => {
  const { post } = await aServer()
  const long = Object.fromEntries(
    Object.entries(membersOf(100)).map(([name, value]) => [name + 'x'.repeat(5_000), value]),
  )
  for (const args of [membersOf(50_000), long]) {
    const response = await post(keys[0], callOf('vaults_list', args))
    const text = await response.text()
    expect(text.length).toBeLessThan(8_192)
    expect(text.match(/is not an argument/g)).toHaveLength(20)
  }
})

test('a batch has at most eight messages, each of which counts', async () => {
  const { post } = await aServer()
  const batch = (count: number) => Array.from({ length: count }, (_, id) => ({ ...ping, id }))
  expect((await post(keys[0], batch(9))).status).toBe(400)
  const served = await post(keys[0], batch(8))
  expect((await served.text()).match(/"result"/g)).toHaveLength(8)
  // The SDK leaves out byte order marks.
  for (const mark of ['\u{feff}', '\u{feff}\u{feff}'])
    expect((await post(keys[0], `${mark}${JSON.stringify(batch(9))}`)).status).toBe(400)
})

test.each([
  ['{"a":[1,2,{"b":","}],"c":"\\"["}', { messages: 1, nodes: 9 }],
  [' \n[{"a":1},{"b":[1,2]}]', { messages: 2, nodes: 8 }],
  ['\u{feff}[{"a":1},{"b":1}]', { messages: 2, nodes: 6 }],
  ['', { messages: 1, nodes: 0 }],
])('the shape of %s is counted without parsing it', (text, shape) => {
  expect(shapeOf(Buffer.from(text))).toEqual(shape)
})

test('a body in pieces is read whole, up to the largest message', async () => {
  async function* pieces(count: number, piece: string) {
    for (let index = 0; index < count; index += 1) yield Buffer.from(piece)
  }
  const read = (count: number, piece: string) => readBody(Readable.from(pieces(count, piece), { objectMode: false }))
  const half = 'a'.repeat(messageBytesMax / 2)
  const bodies = await Promise.all([read(0, ''), read(1_000, 'a'), read(10_000, 'a'.repeat(64)), read(2, half)])
  expect(bodies.map(({ length }) => length)).toEqual([0, 1_000, 640_000, messageBytesMax])
  expect(String(bodies[1])).toBe('a'.repeat(1_000))
  expect(await read(3, half)).toBe('too-large')
})

/** Sends a message in chunks of one byte. */
function sendInBytes(port: number, text: string): net.Socket {
  const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  const fields = [
    'host: localhost',
    `authorization: Bearer ${keys[0]}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'transfer-encoding: chunked',
  ]
  const chunks = [...text].map((character) => `1\r\n${character}\r\n`)
  socket.write(`POST /mcp HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${chunks.join('')}0\r\n\r\n`)
  return socket
}

test('a message in thousands of tiny chunks is refused, and one in a thousand is served', async () => {
  const { port } = await aServer()
  const text = JSON.stringify(ping)
  const send = async (length: number): Promise<string> => {
    const [response] = await once(sendInBytes(port, text.padEnd(length)), 'data')
    return String(response)
  }
  expect(await send(1_000)).toMatch(/^HTTP\/1\.1 200 /)
  for (const length of [1_001, 9_000]) expect(await send(length)).toMatch(/^HTTP\/1\.1 400 .*in larger chunks/s)
})

test('tiny chunks of a caller that is not known yet are not kept', async () => {
  const { server, port } = await aServer({ isSilent: true })
  const begun = once(server, 'request')
  sendInBytes(port, ' '.repeat(9_000))
  const [request] = await begun
  await expect.poll(() => request.readableLength).toBe(1_000)
  await new Promise((resolve) => setImmediate(resolve))
  expect(request.readableLength).toBe(1_000)
})
