import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import net from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Deps } from '../ctx.ts'
import { bindOperations, operationFor } from '../operation.ts'
import { limitBodySilence, limitBodyTime } from './connections.ts'
import { createHttpServer, type HttpServer } from './server.ts'

const operation = operationFor<Deps>()

/** Limit of the server in this test, whose senders stop in the middle: nothing more arrives, so it can be short. */
const bodyMsMax = 50

const guests = async () =>
  ({
    tenant: { organisationId: 'org_1', environment: 'test' },
    actor: { kind: 'guest', guestId: 'one' },
    shareOwner: 'org_1',
  }) as const

let handled = 0
/** What the handler waits for. */
let gate: Promise<void> = Promise.resolve()

const operations = [
  operation({
    id: 'toys.create',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys',
    summary: 'Make a toy.',
    input: z.strictObject({ name: z.string() }),
    output: z.strictObject({ name: z.string() }),
    guests,
    async run(_ctx, { body }) {
      handled += 1
      await gate
      return body
    },
  }),
  operation({
    id: 'toys.files.add',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys/{id}/files',
    summary: 'Put a file into a toy.',
    params: z.strictObject({ id: z.string() }),
    streamsInput: { mediaType: 'text/plain', schema: { type: 'string' } },
    output: z.strictObject({ bytes: z.int() }),
    guests,
    async run(_ctx, { stream }) {
      let bytes = 0
      for await (const chunk of stream ?? []) bytes += chunk.length
      return { bytes }
    },
  }),
]

afterEach(() => {
  vi.useRealTimers()
})

let database: TestDatabase
let server: HttpServer
let port = 0

const toyServer = (): HttpServer =>
  createHttpServer({
    deps: toyDeps(database.db),
    operations: bindOperations(toyDeps(database.db), operations),
    pages: [],
    authenticate: () => Promise.reject(new Error('nobody has a key here')),
    keyLimit: { perSecond: 1_000, burst: 1_000 },
    addressLimit: { perSecond: 1_000, burst: 1_000 },
    trustProxy: false,
    bodyMsMax,
  })

beforeAll(async () => {
  database = await freshDatabase()
  server = toyServer()
  port = (await server.listen(0, '127.0.0.1')).port
})
afterAll(async () => {
  await server.close()
  await database.drop()
})

/** Sends a head and this much of a body, and no more; returns the response once the server has closed the connection. */
async function beginning(path: string, type: string, { body, sent }: { body: string; sent: number }): Promise<string> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  let response = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    response += text
  })
  const closed = once(socket, 'close')
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n`
  socket.write(head + body.slice(0, sent))
  await closed
  return response
}

const named = JSON.stringify({ name: 'x'.repeat(100) })

test('a JSON body that is not complete within the limit gets a 408 and its connection is cut', async () => {
  const response = await beginning('/toys', 'application/json', { body: named, sent: 20 })
  expect(response).toMatch(/^HTTP\/1\.1 408 /)
  expect(response).toContain('/problems/request-timeout')
})

test('a request for an unknown address is refused without its body, which is cut as soon', async () => {
  expect(await beginning('/nowhere', 'application/json', { body: named, sent: 20 })).toMatch(/^HTTP\/1\.1 404 /)
})

test('a streamed body is cut if nothing of it arrives within the limit', async () => {
  const response = await beginning('/toys/1/files', 'text/plain', { body: named, sent: 20 })
  expect(response).not.toMatch(/^HTTP\/1\.1 2/)
})

/** Sends requests in one piece, of which the last asks for the end of the connection; returns the number of responses once it has ended. */
async function sentAhead(count: number): Promise<number> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  let received = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text
  })
  const body = JSON.stringify({ name: 'ahead' })
  const request = (more: string) =>
    `POST /toys HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`
  const closed = once(socket, 'close')
  socket.write(request('').repeat(count - 1) + request('connection: close\r\n'))
  await closed
  return received.split('HTTP/1.1 200 ').length - 1
}

test('a connection may send eight requests ahead, and one that sends more is closed before they are handled', async () => {
  expect(await sentAhead(8)).toBe(8)
  const opened = Promise.withResolvers<void>()
  gate = opened.promise
  handled = 0
  const ended = sentAhead(200)
  await Promise.race([ended, vi.waitUntil(() => handled > 8, { timeout: 10_000 })])
  opened.resolve()
  await ended
  expect(handled).toBeLessThanOrEqual(8)
})

/** A request whose head has arrived and whose body has not. */
function aRequest(contentLength: string | undefined): IncomingMessage {
  const request = new IncomingMessage(new net.Socket())
  if (contentLength !== undefined) request.headers['content-length'] = contentLength
  return request
}

/** A request of which a byte of the body arrives every tenth of a second. */
function drip(request: IncomingMessage): NodeJS.Timeout {
  return setInterval(() => request.push('x'), 100)
}

test('a slow body gets no more time: it is refused at the limit and not a millisecond earlier', () => {
  vi.useFakeTimers()
  const refuse = vi.fn()
  const request = aRequest('1000')
  limitBodyTime(request, 1_000, refuse)
  drip(request)
  vi.advanceTimersByTime(999)
  expect(refuse).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(refuse).toHaveBeenCalledOnce()
})

test('a complete body, a closed connection and a request without a body leave no timer', () => {
  vi.useFakeTimers()
  const [whole, gone, none] = [aRequest('1000'), aRequest('1000'), aRequest(undefined)]
  for (const request of [whole, gone, none]) limitBodyTime(request, 1_000, () => expect.unreachable('refused'))
  expect(vi.getTimerCount()).toBe(2)
  whole.emit('end')
  gone.emit('close')
  expect(vi.getTimerCount()).toBe(0)
})

test('a streamed body may be slow for any time, and its connection’s next request is not cut', () => {
  vi.useFakeTimers()
  const request = aRequest('1000')
  limitBodySilence(request, 1_000)
  expect(vi.getTimerCount(), 'the total time is not limited').toBe(0)
  expect(request.socket.timeout, 'Node limits the idle time of the connection').toBe(1_000)
  request.emit('end')
  request.socket.emit('timeout')
  expect([request.socket.timeout, request.destroyed]).toEqual([0, false])
})

test('a server that closes responds to all requests that wait on connections which it has not accepted', async () => {
  const closing = toyServer()
  const { port: itsPort } = await closing.listen(0, '127.0.0.1')
  const body = JSON.stringify({ name: 'waiting' })
  const head = `POST /toys HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  const responses = Array.from({ length: 40 }, async () => {
    const socket = net.connect(itsPort, '127.0.0.1')
    let received = ''
    socket.on('error', () => undefined)
    socket.setEncoding('utf8').on('data', (text: string) => {
      received += text
    })
    const closed = once(socket, 'close')
    socket.write(head + body)
    await closed
    return received.split('\r\n')[0]
  })
  // The connections are in the kernel's queue once this has run, and none is accepted.
  await new Promise((resolve) => process.nextTick(resolve))
  await closing.close()
  expect(await Promise.all(responses)).toEqual(Array.from({ length: 40 }, () => 'HTTP/1.1 200 OK'))
})
