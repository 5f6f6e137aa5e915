import { once } from 'node:events'
import net from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Deps } from '../ctx.ts'
import { EventStreamResponse, type SseConnection } from '../event-streams/response.ts'
import { bindOperations, operationFor, Reply } from '../operation.ts'
import { createHttpServer, type HttpServer } from './server.ts'

const operation = operationFor<Deps>()

let database: TestDatabase
let server: HttpServer
let port = 0
/** The responses that the server opened, in order, and how often each was reported as closed. */
let opened: { readonly line: SseConnection; closed: number }[]
let waiters: (() => void)[]

const watch = operation({
  id: 'toys.watch',
  needs: { role: 'viewer', scope: 'read' },
  method: 'GET',
  path: '/toys/watch',
  summary: 'Watch toys.',
  streamsOutput: 'text/event-stream',
  guests: async () => ({
    tenant: { organisationId: 'org_1', environment: 'test' },
    actor: { kind: 'guest', guestId: 'one' },
    shareOwner: 'org_1',
  }),
  run: () => {
    let own: (typeof opened)[number] | undefined
    const open = (line: SseConnection): void => {
      own = { line, closed: 0 }
      opened.push(own)
      for (const tell of waiters) tell()
    }
    const closed = (): void => {
      if (own !== undefined) own.closed += 1
      for (const tell of waiters) tell()
    }
    return new Reply(200, new EventStreamResponse(open, closed), { 'content-type': 'text/event-stream' })
  },
})

beforeEach(async () => {
  opened = []
  waiters = []
  database = await freshDatabase()
  server = createHttpServer({
    deps: toyDeps(database.db),
    operations: bindOperations(toyDeps(database.db), [watch]),
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

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise<void>((resolve) => waiters.push(resolve))
}

/** A caller that reads only on request. */
async function call(): Promise<{
  readonly socket: net.Socket
  readonly line: SseConnection
  readonly reported: (typeof opened)[number]
}> {
  const count = opened.length
  const socket = net.connect(port, '127.0.0.1').pause()
  socket.on('error', () => undefined)
  socket.write('GET /toys/watch HTTP/1.1\r\nHost: toys\r\n\r\n')
  await until(() => opened.length > count)
  const reported = opened[count]
  if (reported === undefined) throw new Error('nothing was opened')
  return { socket, line: reported.line, reported }
}

async function wholeText(socket: net.Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume()
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
}

const more = Buffer.alloc(1_048_576, 'x')

/** Writes until data waits for a caller that does not read. */
function fill(line: SseConnection): void {
  for (let written = 0; written < 64 && line.waiting < 4 * more.length; written++) line.write(more)
}

test('a response continues while it is open, and is complete when it was ended', async () => {
  const { socket, line, reported } = await call()
  line.write(Buffer.from('one'))
  line.end()
  line.write(Buffer.from('never'))
  expect([line.isOpen, reported.closed]).toEqual([false, 1])
  const text = await wholeText(socket)
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(text.toLowerCase()).toContain('connection: close')
  expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe('3\r\none\r\n0\r\n\r\n')
  expect(reported.closed).toBe(1)
})

test('the writer is notified once that the caller has disconnected, and waiting data is dropped', async () => {
  const { socket, line, reported } = await call()
  fill(line)
  const drained = line.drained()
  socket.destroy()
  await until(() => reported.closed > 0)
  await drained
  expect([line.isOpen, line.waiting, reported.closed]).toEqual([false, 0, 1])
})

test('waiting data is sent when the caller reads again, and none of it is lost', async () => {
  const { socket, line } = await call()
  fill(line)
  expect(line.waiting).toBeGreaterThan(0)
  const text = wholeText(socket)
  await line.drained()
  expect(line.waiting).toBe(0)
  line.write(Buffer.from('last'))
  line.end()
  expect(await text).toContain('\r\n4\r\nlast\r\n0\r\n\r\n')
})

test('a response that is cut ends immediately for its caller, without the end of a complete response', async () => {
  const { socket, line, reported } = await call()
  line.write(Buffer.from('one'))
  line.cut()
  expect(reported.closed).toBe(1)
  expect(await wholeText(socket)).not.toContain('\r\n0\r\n\r\n')
})

test('a server that stops ends open responses, and waits for no caller that does not read', async () => {
  const [reading, stuck] = [await call(), await call()]
  fill(stuck.line)
  expect(stuck.line.waiting).toBeGreaterThan(0)
  const text = wholeText(reading.socket)
  await server.close()
  expect((await text).endsWith('0\r\n\r\n')).toBe(true)
  expect([reading.reported.closed, stuck.reported.closed]).toEqual([1, 1])
  expect(await wholeText(stuck.socket)).not.toContain('\r\n0\r\n\r\n')
})
