import { once } from 'node:events'
import net from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Deps } from '../ctx.ts'
import { bindOperations, operationFor, Reply } from '../operation.ts'
import { ReusedBufferStream, type TakeBytes } from '../reused-buffer-stream.ts'
import { createHttpServer, type HttpServer } from './server.ts'

const operation = operationFor<Deps>()

const pieces = 200
const pieceBytes = 100_000

/** Gives each number as many times as a piece has bytes, all in one buffer; or fails in the middle. */
class Numbers extends ReusedBufferStream {
  readonly ended = Promise.withResolvers<unknown>()
  readonly #breaksOff: boolean
  taken = 0

  constructor(breaksOff: boolean) {
    super()
    this.#breaksOff = breaksOff
  }

  override async writeTo(take: TakeBytes): Promise<void> {
    const memory = Buffer.allocUnsafeSlow(pieceBytes)
    try {
      for (let piece = 0; piece < pieces; piece++) {
        await take(memory.fill(piece))
        this.taken += 1
        if (this.#breaksOff && piece === pieces / 2) throw new Error('the disk is away')
      }
      this.ended.resolve('whole')
    } catch (fault) {
      this.ended.resolve(fault)
      throw fault
    }
  }
}

let database: TestDatabase
let server: HttpServer
let port = 0
let numbers: Numbers

const get = operation({
  id: 'toys.numbers',
  needs: { role: 'viewer', scope: 'read' },
  method: 'GET',
  path: '/toys/numbers',
  summary: 'Get numbers.',
  streamsOutput: '*/*',
  guests: async () => ({
    tenant: { organisationId: 'org_1', environment: 'test' },
    actor: { kind: 'guest', guestId: 'one' },
    shareOwner: 'org_1',
  }),
  run: () => new Reply(200, numbers, { 'content-length': String(pieces * pieceBytes) }),
})

beforeEach(async () => {
  database = await freshDatabase()
  numbers = new Numbers(false)
  server = createHttpServer({
    deps: toyDeps(database.db),
    operations: bindOperations(toyDeps(database.db), [get]),
    pages: [],
    authenticate: () => Promise.reject(new Error('nobody has a key here')),
    keyLimit: { perSecond: 1_000, burst: 1_000 },
    addressLimit: { perSecond: 1_000, burst: 1_000 },
    trustProxy: false,
  })
  port = (await server.listen(0, '127.0.0.1')).port
})
afterEach(async () => {
  await server.close()
  await database.drop()
})

test('a stream with a reused buffer arrives byte for byte, and the connection takes another request', async () => {
  for (let times = 0; times < 2; times++) {
    const response = await fetch(`http://127.0.0.1:${port}/toys/numbers`)
    const body = Buffer.from(await response.arrayBuffer())
    const expected = Buffer.concat(Array.from({ length: pieces }, (_, piece) => Buffer.alloc(pieceBytes, piece)))
    expect([response.status, response.headers.get('connection'), body.equals(expected)]).toEqual([
      200,
      'keep-alive',
      true,
    ])
  }
})

async function ask(): Promise<net.Socket> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write('GET /toys/numbers HTTP/1.1\r\nhost: x\r\n\r\n')
  await once(socket, 'readable')
  return socket
}

test('a caller that disconnects in the middle ends the stream', async () => {
  const socket = await ask()
  socket.destroy()
  expect(String(await numbers.ended.promise)).toContain('the caller disconnected')
  expect(numbers.taken).toBeLessThan(pieces)
})

test('a stream that fails cuts the connection, so that nobody takes a part for the whole', async () => {
  numbers = new Numbers(true)
  const response = await fetch(`http://127.0.0.1:${port}/toys/numbers`)
  expect(response.status).toBe(200)
  const ended = await response.arrayBuffer().then(
    () => 'whole',
    () => 'broken off',
  )
  expect(ended).toBe('broken off')
})

test('a server that stops waits for running streams, and for nothing else on the connection', async () => {
  const socket = await ask()
  const stopping = server.close()
  let bytes = 0
  const closed = once(socket, 'close')
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  socket.resume()
  await stopping
  await closed
  expect(bytes).toBeGreaterThan(pieces * pieceBytes)
})
