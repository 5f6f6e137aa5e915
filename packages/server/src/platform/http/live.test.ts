import { once } from 'node:events'
import net from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { type Line, Live } from '../live.ts'
import { operation, Reply } from '../operation.ts'
import { createHttpServer, type HttpServer } from './server.ts'

let database: TestDatabase
let server: HttpServer
let port = 0
/** What the server was given, in the order of the requests, and how often each was told that it is closed. */
let opened: { readonly line: Line; closed: number }[]
let waiters: (() => void)[]

const watch = operation({
  id: 'toys.watch',
  method: 'GET',
  path: '/toys/watch',
  summary: 'Watch toys.',
  streamsOutput: 'text/event-stream',
  guests: async () => ({
    tenant: { organisationId: 'org_1', environment: 'test' },
    actor: { kind: 'guest', guestId: 'one' },
  }),
  run: () => {
    let own: (typeof opened)[number] | undefined
    const open = (line: Line): void => {
      own = { line, closed: 0 }
      opened.push(own)
      for (const tell of waiters) tell()
    }
    const closed = (): void => {
      if (own !== undefined) own.closed += 1
      for (const tell of waiters) tell()
    }
    return new Reply(200, new Live(open, closed), { 'content-type': 'text/event-stream' })
  },
})

beforeEach(async () => {
  opened = []
  waiters = []
  database = await freshDatabase()
  server = createHttpServer({
    deps: toyDeps(database.db),
    operations: [watch],
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

/** A caller that reads only when told. */
async function call(): Promise<{
  readonly socket: net.Socket
  readonly line: Line
  readonly told: (typeof opened)[number]
}> {
  const count = opened.length
  const socket = net.connect(port, '127.0.0.1').pause()
  socket.on('error', () => undefined)
  socket.write('GET /toys/watch HTTP/1.1\r\nHost: toys\r\n\r\n')
  await until(() => opened.length > count)
  const told = opened[count]
  if (told === undefined) throw new Error('nothing was opened')
  return { socket, line: told.line, told }
}

async function wholeText(socket: net.Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume()
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
}

const more = Buffer.alloc(1_048_576, 'x')

/** Writes until something waits for a caller that does not read. */
function fill(line: Line): void {
  for (let written = 0; written < 64 && line.waiting < 4 * more.length; written++) line.write(more)
}

test('an answer goes on for as long as it is open, and is whole when it was ended', async () => {
  const { socket, line, told } = await call()
  line.write(Buffer.from('one'))
  line.end()
  line.write(Buffer.from('never'))
  expect([line.isOpen, told.closed]).toEqual([false, 1])
  const text = await wholeText(socket)
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(text.toLowerCase()).toContain('connection: close')
  expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe('3\r\none\r\n0\r\n\r\n')
  expect(told.closed).toBe(1)
})

test('whoever writes is told once that the caller has gone, and what waited is forgotten', async () => {
  const { socket, line, told } = await call()
  fill(line)
  const drained = line.drained()
  socket.destroy()
  await until(() => told.closed > 0)
  await drained
  expect([line.isOpen, line.waiting, told.closed]).toEqual([false, 0, 1])
})

test('what waits is drained when the caller reads again, and none of it is lost', async () => {
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

test('a line that is cut ends at once for its caller, without the end of a whole answer', async () => {
  const { socket, line, told } = await call()
  line.write(Buffer.from('one'))
  line.cut()
  expect(told.closed).toBe(1)
  expect(await wholeText(socket)).not.toContain('\r\n0\r\n\r\n')
})

test('a server that stops ends what is open, and waits for no caller that does not read', async () => {
  const [reading, stuck] = [await call(), await call()]
  fill(stuck.line)
  expect(stuck.line.waiting).toBeGreaterThan(0)
  const text = wholeText(reading.socket)
  await server.close()
  expect((await text).endsWith('0\r\n\r\n')).toBe(true)
  expect([reading.told.closed, stuck.told.closed]).toEqual([1, 1])
  expect(await wholeText(stuck.socket)).not.toContain('\r\n0\r\n\r\n')
})
