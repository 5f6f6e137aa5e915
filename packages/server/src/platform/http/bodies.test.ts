import { once } from 'node:events'
import net from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { aToyServer, beginToys, endToys, toys } from '../../../test/toy-server.ts'
import { unauthorized } from './authenticate.ts'
import { createReadingPauses } from './pause-reading.ts'

beforeEach(beginToys)
afterEach(endToys)

setFlagsFromString('--expose-gc')
const collectGarbage: unknown = runInNewContext('gc')

/** Bytes of the objects in use. */
function usedBytes(): number {
  if (typeof collectGarbage === 'function') collectGarbage()
  return process.memoryUsage().heapUsed
}

const head = (path: string, length = 'transfer-encoding: chunked', key = 'org1 key1') =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`

/** Sends chunks of one byte, and returns all that is received until the server closes the connection. */
async function sendBytes(port: number, path: string, count: number): Promise<string> {
  const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
  let received = ''
  socket.on('data', (bytes) => {
    received += String(bytes)
  })
  socket.write(head(path))
  socket.write('1\r\n1\r\n'.repeat(count))
  await once(socket, 'close')
  return received
}

test('a body in thousands of chunks of one byte is refused, with its reason, and its connection is closed', async () => {
  const { port } = await aToyServer()
  const received = await sendBytes(port, '/toys', 100_000)
  expect(received).toMatch(/^HTTP\/1\.1 400 /)
  expect(received).toContain('in larger chunks')
})

test('bodies in tiny chunks take little memory, also before their callers are known', async () => {
  const { port } = await aToyServer()
  const before = usedBytes()
  const sockets = Array.from({ length: 16 }, () => net.connect(port, '127.0.0.1').on('error', () => undefined))
  const answers = sockets.map((socket) => once(socket, 'data'))
  for (const socket of sockets) socket.write(head('/toys') + '1\r\n1\r\n'.repeat(32_000))
  await Promise.all(answers)
  expect(usedBytes() - before).toBeLessThan(8 * 2 ** 20)
  for (const socket of sockets) socket.destroy()
})

test('a file that is streamed in thousands of short lines arrives whole', async () => {
  const { port } = await aToyServer()
  const lines = Array.from({ length: 5_000 }, (_, index) => `${index},${index % 13}\n`)
  const chunks = lines.map((line) => `${line.length.toString(16)}\r\n${line}\r\n`)
  const socket = net.connect(port, '127.0.0.1')
  socket.write(head('/toys/measure').replace('application/json', 'application/octet-stream'))
  socket.write(`${chunks.join('')}0\r\n\r\n`)
  const [response] = await once(socket, 'data')
  socket.destroy()
  expect(String(response)).toContain(`{"bytes":${lines.join('').length}}`)
})

test('tiny chunks of a streamed body count for their organisation over all of its connections, and refuse no upload of another at the same address', async () => {
  const pauses = createReadingPauses(() => 0)
  const { port } = await aToyServer({ pauses })
  // More than half a minute of chunks, of other connections of the organisation.
  pauses('org_1', 300_010)
  const keys = ['org1 key1', 'org1 key2', 'org2 key1']
  const sockets = keys.map(() => net.connect(port, '127.0.0.1').on('error', () => undefined))
  const responses = sockets.map((socket) => once(socket, 'data'))
  for (const [index, socket] of sockets.entries())
    socket.write(head('/toys/measure', undefined, keys[index]).replace('application/json', 'application/octet-stream'))
  // An upload counts for its organisation as soon as its key is known.
  await expect.poll(() => toys.looked.length).toBe(keys.length)
  for (const socket of sockets) socket.write(`${'1\r\n1\r\n'.repeat(1_500)}0\r\n\r\n`)
  const statuses = (await Promise.all(responses)).map(([response]) => String(response).slice(9, 12))
  expect(statuses).toEqual(['400', '400', '200'])
  expect(pauses('org_2', 0), 'its own chunks stay counted').toBeGreaterThan(0)
  for (const socket of sockets) socket.destroy()
})

test('tiny chunks of a caller that is not admitted count for nobody', async () => {
  const owners: unknown[] = []
  const { port } = await aToyServer({
    pauses(owner) {
      owners.push(owner)
      return 0
    },
    // Chunks arrive while the key is looked up.
    async authenticate() {
      await new Promise((resolve) => setImmediate(resolve))
      throw unauthorized('the key is unknown')
    },
  })
  const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  socket.write(head('/toys/measure') + '1\r\n1\r\n'.repeat(5_000))
  await once(socket, 'data')
  await expect.poll(() => owners.length).toBeGreaterThan(0)
  expect(new Set(owners)).toEqual(new Set([undefined]))
})

test('a body in a thousand small chunks is read', async () => {
  const { port } = await aToyServer()
  const text = JSON.stringify({ name: 'x'.repeat(980) })
  const chunks = [...text].map((character) => `1\r\n${character}\r\n`)
  expect(chunks.length).toBeLessThan(1_000)
  const socket = net.connect(port, '127.0.0.1')
  socket.write(`${head('/toys')}${chunks.join('')}0\r\n\r\n`)
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1\.1 20\d /)
  socket.destroy()
})

test.each([
  ['more than the limit announced', 'content-length: 1048577', '', '413'],
  [
    'more than the limit in chunks',
    'transfer-encoding: chunked',
    `100001\r\n${'x'.repeat(0x100_001)}\r\n0\r\n\r\n`,
    '413',
  ],
])('a body of %s is refused', async (_, length, body, status) => {
  const { port } = await aToyServer()
  const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
  socket.write(head('/toys', length) + body)
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toContain(`HTTP/1.1 ${status} `)
  socket.destroy()
})
