import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createGuardedFetch, type PostOutcome } from './guarded-fetch.ts'

const body = new TextEncoder().encode('{}')

/** A receiver that answers `first`, and then sends `unit` without end for as long as its client reads. */
async function aFlood(first: string, unit: string): Promise<{ port: number; sentBytes: () => number }> {
  const block = Buffer.from(unit.repeat(Math.ceil(65_536 / unit.length)))
  let sent = 0
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket.on('error', () => {}))
    socket.once('data', () => {
      const pour = (): void => {
        let isTaken = true
        while (isTaken && !socket.destroyed) {
          isTaken = socket.write(block)
          sent += block.length
        }
      }
      socket.on('drain', pour).write(first)
      pour()
    })
  })
  const port = await portOf(server)
  onTestFinished(() => open.forEach((socket) => void socket.destroy()))
  return { port, sentBytes: () => sent }
}

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port }: Partial<AddressInfo> = Object(server.address())
  return port ?? 0
}

function poster(port: number): () => Promise<PostOutcome> {
  // A look-up takes at least one turn of the event loop, in which a finished connection becomes free.
  const lookup = () => new Promise<string[]>((resolve) => setImmediate(resolve, ['127.0.0.1']))
  const guarded = createGuardedFetch({ reach: 'public-and-private', lookup })
  onTestFinished(() => guarded.close())
  return () => guarded.post({ url: `http://hooks.example.test:${port}/`, group: 'wh_1', headers: {}, body })
}

test.each<[string, string, string, Partial<PostOutcome>]>([
  ['interim responses', '', 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n', { failure: 'answer-malformed' }],
  [
    'extensions of a chunk',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;',
    'x',
    { status: 200, isBodyWhole: false },
  ],
])(
  'a receiver that sends %s without end is disconnected after some hundred kilobytes',
  async (_, first, unit, expected) => {
    const { port, sentBytes } = await aFlood(first, unit)
    const post = poster(port)
    expect(await post()).toMatchObject(expected)
    expect(sentBytes()).toBeLessThan(2 ** 24)
  },
)

test('the limit is of one request: a kept connection may carry any number of responses', async () => {
  let connections = 0
  const server = createHttpServer((request, response) => {
    request.resume().on('end', () => response.end('x'.repeat(1_024)))
  }).on('connection', () => {
    connections += 1
  })
  const post = poster(await portOf(server))
  for (let sent = 0; sent < 500; sent++) expect(await post()).toMatchObject({ status: 200, isBodyWhole: true })
  expect(connections).toBe(1)
})

test('a response in tiny chunks is read up to a number of chunks, because each costs a hundred times as much memory as its byte', async () => {
  const { port } = await aFlood('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', '1\r\na\r\n')
  const limits = { responseBytesMax: 1_048_576 }
  const guarded = createGuardedFetch({ reach: 'public-and-private', lookup: async () => ['127.0.0.1'], limits })
  onTestFinished(() => guarded.close())
  const outcome = await guarded.post({ url: `http://hooks.example.test:${port}/`, group: 'wh_1', headers: {}, body })
  expect(outcome).toMatchObject({ status: 200, isBodyWhole: false })
  expect(Object(outcome).bytes?.length ?? Object(outcome).body.length).toBe(16_384)
})
