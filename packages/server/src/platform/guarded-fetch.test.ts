import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createGuardedFetch, type GuardedFetch, type GuardedOptions, type GuardedPost } from './guarded-fetch.ts'

const body = new TextEncoder().encode('{"eventId":"evt_1"}')

interface Receiver {
  readonly port: number
  /** Requests as `POST /path`, in order. */
  readonly requests: string[]
  readonly counts: { connections: number }
}

async function listening(server: Server): Promise<{ port: number; counts: { connections: number } }> {
  const counts = { connections: 0 }
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    counts.connections += 1
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return { port: portOf(server), counts }
}

function portOf(server: Server): number {
  const { port }: Partial<AddressInfo> = Object(server.address())
  return port ?? 0
}

async function aReceiver(answer: RequestListener = (_, response) => response.end('thanks')): Promise<Receiver> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    request.resume().on('end', () => answer(request, response))
  })
  return { requests, ...(await listening(server)) }
}

/** A receiver that does not speak HTTP: `talk` gets the socket once a request has begun to arrive. */
async function aRawReceiver(talk: (socket: Socket) => void): Promise<Receiver> {
  const server = createNetServer((socket) => void socket.once('data', () => talk(socket)))
  return { requests: [], ...(await listening(server)) }
}

function aGuardedFetch(options: Partial<GuardedOptions> = {}): GuardedFetch {
  const guarded = createGuardedFetch({ reach: 'public-and-private', lookup: () => turn(['127.0.0.1']), ...options })
  onTestFinished(() => guarded.close())
  return guarded
}

/** A real look-up takes at least one turn of the event loop, in which a finished connection becomes free. */
function turn<T>(response: T): Promise<T> {
  return new Promise((resolve) => setImmediate(resolve, response))
}

function to({ port }: Pick<Receiver, 'port'>, given: Partial<GuardedPost> = {}): GuardedPost {
  return { url: `http://hooks.example.test:${port}/in?a=b`, group: 'wh_1', headers: {}, body, ...given }
}

const failed = (failure: string) => ({ kind: 'failed', failure })

test('a request arrives as it was given, at the address of the one look-up, with the name of the URL', async () => {
  const seen: IncomingMessage[] = []
  const received: Buffer[] = []
  const server = createServer(async (request, response) => {
    seen.push(request)
    for await (const chunk of request) received.push(chunk)
    response.writeHead(202, { 'retry-after': '7' }).end('thanks')
  })
  const { port } = await listening(server)
  const names: string[] = []
  const guarded = aGuardedFetch({
    lookup: async (name) => {
      names.push(name)
      return ['127.0.0.1']
    },
  })
  const outcome = await guarded.post(to({ port }, { headers: { 'webhook-id': 'evt_1' } }))
  expect(outcome).toEqual({ kind: 'responded', status: 202, body: 'thanks', isBodyWhole: true, retryAfter: '7' })
  expect(names).toEqual(['hooks.example.test'])
  expect(seen).toHaveLength(1)
  expect(seen[0]).toMatchObject({
    method: 'POST',
    url: '/in?a=b',
    headers: { host: `hooks.example.test:${port}`, 'webhook-id': 'evt_1', 'content-length': String(body.length) },
  })
  expect(Buffer.concat(received)).toEqual(Buffer.from(body))
})

test.each([
  [['169.254.169.254']],
  [['127.0.0.1', '169.254.169.254']],
  [['8.8.8.8', '127.0.0.1', 'fd00:ec2::254']],
  [['127.0.0.1', '::ffff:169.254.169.254']],
  [['127.0.0.1', '64:ff9b::a9fe:a9fe']],
  [['127.0.0.1', 'fe80::1%eth0']],
  [['127.0.0.1', 'not an address']],
])('a name that resolves to %j is not requested, even if one of its addresses is allowed', async (addresses) => {
  const receiver = await aReceiver()
  const guarded = aGuardedFetch({ lookup: async () => addresses })
  expect(await guarded.post(to(receiver))).toEqual(failed('address-refused'))
  expect(receiver.counts.connections).toBe(0)
})

test.each(['127.0.0.1', '10.0.0.1', '100.64.0.1', '::1', 'fc00::1', '::ffff:192.168.0.1'])(
  'the public entry point refuses a name that resolves to %s, alone or beside a public address',
  async (address) => {
    for (const addresses of [[address], ['8.8.8.8', address], [address, '2606:4700:4700::1111']]) {
      const guarded = aGuardedFetch({ reach: 'public', lookup: async () => addresses })
      const request = to({ port: 1 }, { url: 'https://hooks.example.com/in' })
      expect(await guarded.post(request)).toEqual(failed('address-refused'))
    }
  },
)

test('a name that changes to a forbidden address is refused at the next request, even if a connection is still open', async () => {
  const receiver = await aReceiver()
  const answers = [['127.0.0.1'], ['169.254.169.254'], ['127.0.0.1']]
  const guarded = aGuardedFetch({ lookup: () => turn(answers.shift() ?? []) })
  expect(await guarded.post(to(receiver))).toMatchObject({ status: 200 })
  expect(await guarded.post(to(receiver))).toEqual(failed('address-refused'))
  expect(await guarded.post(to(receiver))).toMatchObject({ status: 200 })
  expect(await guarded.post(to(receiver))).toEqual(failed('name-unknown'))
  expect(receiver.requests).toHaveLength(2)
  expect(receiver.counts.connections).toBe(1)
})

test('a name is looked up once for each request, so that a second answer is never connected to', async () => {
  const right = await aReceiver()
  let lookups = 0
  const guarded = aGuardedFetch({
    lookup: async () => {
      lookups += 1
      return lookups === 1 ? ['127.0.0.1'] : ['127.0.0.2']
    },
  })
  expect(await guarded.post(to(right))).toMatchObject({ status: 200 })
  expect(lookups).toBe(1)
  expect(await guarded.post(to(right))).toEqual(failed('unreachable'))
  expect(right.counts.connections).toBe(1)
})

test('an address in the URL is checked as it is written, and never looked up', async () => {
  const receiver = await aReceiver()
  const guarded = aGuardedFetch({ lookup: () => Promise.reject(new Error('looked up')) })
  const url = `http://127.0.0.1:${receiver.port}/in`
  expect(await guarded.post(to(receiver, { url }))).toMatchObject({ status: 200 })
  expect(await guarded.post(to(receiver, { url: 'http://169.254.169.254/' }))).toEqual(failed('address-refused'))
  expect(await aGuardedFetch({ reach: 'public' }).post(to(receiver, { url }))).toEqual(failed('address-refused'))
})

test('a local machine is found by its name in the hosts file if private networks are open', async () => {
  const receiver = await aReceiver()
  const guarded = createGuardedFetch({ reach: 'public-and-private' })
  onTestFinished(() => guarded.close())
  const url = `http://localhost:${receiver.port}/in`
  expect(await guarded.post(to(receiver, { url }))).toMatchObject({ status: 200 })
})

test.each([301, 302, 303, 307, 308])('a redirect with %i is a response, and is not followed', async (status) => {
  const inner = await aReceiver()
  const location = `http://127.0.0.1:${inner.port}/secret`
  const outer = await aReceiver((_, response) => response.writeHead(status, { location }).end())
  expect(await aGuardedFetch().post(to(outer))).toMatchObject({ kind: 'responded', status })
  expect(inner.counts.connections).toBe(0)
})

test('of a response of a gigabyte a kilobyte is read, and its connection is closed', async () => {
  let sent = 0
  const closed = Promise.withResolvers<void>()
  const chunk = Buffer.alloc(65_536, 'x')
  const receiver = await aReceiver((_, response) => {
    response.on('close', closed.resolve)
    const pour = () => {
      while (sent < 2 ** 30 && !response.destroyed) {
        sent += chunk.length
        if (!response.write(chunk)) return
      }
    }
    response.on('drain', pour)
    pour()
  })
  const outcome = await aGuardedFetch().post(to(receiver))
  expect(outcome).toMatchObject({ status: 200, body: 'x'.repeat(1_024), isBodyWhole: false })
  await closed.promise
  expect(sent).toBeLessThan(2 ** 25)
})

test('a response of exactly a kilobyte is whole, and its connection is used again', async () => {
  const receiver = await aReceiver((_, response) => response.end('x'.repeat(1_024)))
  const guarded = aGuardedFetch()
  for (let i = 0; i < 3; i++) expect(await guarded.post(to(receiver))).toMatchObject({ isBodyWhole: true })
  expect(receiver.counts.connections).toBe(1)
})

const hurried = { totalMs: 1_000, connectMs: 800 }

test.each([
  ['never answers', () => {}, failed('timeout')],
  ['answers headers one byte at a time', drip('HTTP/1.1 200 OK\r\nx-slow: ', 'x'), failed('timeout')],
  ['promises answers forever', drip('', 'HTTP/1.1 102 Processing\r\n\r\n'), failed('timeout')],
  ['answers a body that never ends', drip('HTTP/1.1 200 OK\r\n\r\n', 'x'), { status: 200, isBodyWhole: false }],
  [
    'stops in the middle of its body',
    (socket: Socket) => void socket.write('HTTP/1.1 500 No\r\ncontent-length: 10\r\n\r\nhalf'),
    { status: 500, body: 'half', isBodyWhole: false },
  ],
])('a receiver that %s is limited by the timeout', async (_, talk, expected) => {
  const receiver = await aRawReceiver(talk)
  expect(await aGuardedFetch({ limits: hurried }).post(to(receiver))).toMatchObject(expected)
})

function drip(first: string, then: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(first)
    const timer = setInterval(() => socket.write(then), 10)
    socket.on('close', () => clearInterval(timer))
  }
}

test.each([
  ['closes at once', '', 'connection-lost'],
  ['speaks no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', 'answer-malformed'],
  ['answers without a status', 'HTTP/1.1 OK\r\n\r\n', 'answer-malformed'],
  ['answers a header with a NUL', 'HTTP/1.1 200 OK\r\nx: \0\r\n\r\n', 'answer-malformed'],
  ['answers a folded header name', 'HTTP/1.1 200 OK\r\nx y: z\r\n\r\n', 'answer-malformed'],
  ['answers 1 MB of headers', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(1_048_576)}\r\n\r\n`, 'answer-malformed'],
  ['answers two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx', 'answer-malformed'],
  ['answers a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n', 'answer-malformed'],
  ['asks to speak something else', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n', 'connection-lost'],
  ['stops in the middle of its headers', 'HTTP/1.1 200 OK\r\nx: ', 'connection-lost'],
])('a receiver that %s is a failure and nothing worse', async (_, text, failure) => {
  const receiver = await aRawReceiver((socket) => socket.end(text))
  expect(await aGuardedFetch().post(to(receiver))).toEqual(failed(failure))
})

test.each([
  ['a long one', ['1'.repeat(65)], undefined],
  ['two of them', ['1', '2'], undefined],
  ['a date', ['Sat, 21 Nov 2026 12:00:00 GMT'], 'Sat, 21 Nov 2026 12:00:00 GMT'],
  ['bytes beyond ASCII', ['\u00ff\u0080'], '\u00ff\u0080'],
])('of Retry-After %s is handled', async (_, values, retryAfter) => {
  const lines = values.map((value) => `retry-after: ${value}\r\n`).join('')
  const receiver = await aRawReceiver((socket) =>
    socket.end(Buffer.from(`HTTP/1.1 503 Busy\r\n${lines}content-length: 0\r\n\r\n`, 'latin1')),
  )
  expect(await aGuardedFetch().post(to(receiver))).toMatchObject({ status: 503, retryAfter })
})

test('the beginning of a body is text that a database accepts', async () => {
  const answer = Buffer.concat([
    Buffer.from('a\0b'),
    Buffer.from([0xff, 0xc3]),
    Buffer.alloc(1_018, 'x'),
    Buffer.from('é'),
  ])
  const receiver = await aReceiver((_, response) => response.end(answer))
  const outcome = await aGuardedFetch().post(to(receiver))
  expect(outcome).toMatchObject({ body: `a\ufffdb\ufffd\ufffd${'x'.repeat(1_018)}\ufffd`, isBodyWhole: false })
})

test.each([
  ['x-name', 'a\r\nx-evil: 1'],
  ['x-name', 'a\nb'],
  ['x-name', 'a\0b'],
  ['x-name', 'é'],
  ['x-name', ''],
  ['x-name\r\nx-evil', '1'],
  ['x name', '1'],
  ['', '1'],
  ['Host', 'inner.example.test'],
  ['content-length', '1'],
  ['Transfer-Encoding', 'chunked'],
  ['connection', 'upgrade'],
  ['proxy-authorization', 'Basic eA=='],
])('the header %j with the value %j is never sent', async (name, value) => {
  const receiver = await aReceiver()
  expect(await aGuardedFetch().post(to(receiver, { headers: { [name]: value } }))).toEqual(failed('header-refused'))
  expect(receiver.counts.connections).toBe(0)
})

test('a body over the limit is never sent', async () => {
  const receiver = await aReceiver()
  const guarded = aGuardedFetch({ limits: { requestBytesMax: 10 } })
  expect(await guarded.post(to(receiver, { body: new Uint8Array(11) }))).toEqual(failed('body-too-large'))
  expect(await guarded.post(to(receiver, { body: new Uint8Array(10) }))).toMatchObject({ status: 200 })
  expect(receiver.requests).toHaveLength(1)
})

test('connections are kept for a group, and one group never uses those of another', async () => {
  const receiver = await aReceiver()
  const guarded = aGuardedFetch()
  for (let i = 0; i < 5; i++) await guarded.post(to(receiver))
  expect(receiver.counts.connections).toBe(1)
  await guarded.post(to(receiver, { group: 'wh_2' }))
  expect(receiver.counts.connections).toBe(2)
})

test('the connections of an evicted group end, and its requests do not', async () => {
  const held = Promise.withResolvers<void>()
  const requested = Promise.withResolvers<void>()
  const receiver = await aReceiver((request, response) => {
    if (request.url !== '/slow') return void response.end()
    requested.resolve()
    held.promise.then(() => response.end('late'))
  })
  const guarded = aGuardedFetch({ limits: { groupsMax: 1 } })
  const slow = guarded.post(to(receiver, { url: `http://hooks.example.test:${receiver.port}/slow` }))
  await requested.promise
  expect(await guarded.post(to(receiver, { group: 'wh_2' }))).toMatchObject({ status: 200 })
  expect(await guarded.post(to(receiver, { group: 'wh_1' }))).toMatchObject({ status: 200 })
  expect(receiver.counts.connections).toBe(3)
  held.resolve()
  expect(await slow).toMatchObject({ status: 200, body: 'late' })
})

test('requests of one group that all hang delay no other group', async () => {
  const receiver = await aReceiver((request, response) => {
    if (request.url !== '/hang') response.end()
  })
  const guarded = aGuardedFetch({ limits: { totalMs: 60_000, connectionsPerGroup: 4 } })
  const hanging = `http://hooks.example.test:${receiver.port}/hang`
  const stuck = Array.from({ length: 100 }, () => guarded.post(to(receiver, { url: hanging })))
  for (let i = 0; i < 20; i++)
    expect(await guarded.post(to(receiver, { group: 'wh_2' }))).toMatchObject({ status: 200 })
  expect(await Promise.race([...stuck, 'pending'])).toBe('pending')
  expect(receiver.requests.filter((request) => request === 'POST /hang')).toHaveLength(4)
  await guarded.close()
  expect(new Set((await Promise.all(stuck)).map((outcome) => outcome.kind))).toEqual(new Set(['failed']))
})

test('the next address is tried if one refuses the connection', async () => {
  const receiver = await aReceiver()
  const guarded = aGuardedFetch({ lookup: async () => ['127.0.0.2', '127.0.0.3', '127.0.0.1'] })
  expect(await guarded.post(to(receiver))).toMatchObject({ status: 200 })
  expect(receiver.requests).toHaveLength(1)
  const far = aGuardedFetch({ lookup: async () => ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.1'] })
  expect(await far.post(to(receiver))).toEqual(failed('unreachable'))
})

test('a name with more than 64 addresses is refused before they are checked', async () => {
  const receiver = await aReceiver()
  const answerOf = (count: number) => {
    const guarded = aGuardedFetch({ lookup: async () => Array(count).fill('127.0.0.1') })
    return guarded.post(to(receiver))
  }
  expect(await answerOf(64)).toMatchObject({ status: 200 })
  expect(await answerOf(65)).toEqual(failed('address-refused'))
})

test('an address with an open connection is tried first', async () => {
  const receiver = await aReceiver()
  const answers = [['127.0.0.1'], ['127.0.0.2', '127.0.0.1']]
  const guarded = aGuardedFetch({ lookup: () => turn(answers.shift() ?? []) })
  await guarded.post(to(receiver))
  expect(await guarded.post(to(receiver))).toMatchObject({ status: 200 })
  expect(receiver.counts.connections).toBe(1)
})

test('a request that began to be sent is not sent to another address', async () => {
  const receiver = await aRawReceiver((socket) => socket.destroy())
  const guarded = aGuardedFetch({ lookup: async () => ['127.0.0.1', '127.0.0.1', '127.0.0.1'] })
  expect(await guarded.post(to(receiver))).toEqual(failed('connection-lost'))
  expect(receiver.counts.connections).toBe(1)
})

test.each([
  ['fails', () => Promise.reject(new Error('ENOTFOUND')), 'name-unknown'],
  ['finds nothing', () => Promise.resolve([]), 'name-unknown'],
  ['never ends', () => new Promise<never>(() => {}), 'timeout'],
])('a look-up that %s is a failure', async (_, lookup, failure) => {
  const receiver = await aReceiver()
  expect(await aGuardedFetch({ lookup, limits: hurried }).post(to(receiver))).toEqual(failed(failure))
  expect(receiver.counts.connections).toBe(0)
})

test('a header value of more than 8,192 characters is never sent', async () => {
  const receiver = await aReceiver()
  const sized = (size: number) => to(receiver, { headers: { 'x-name': 'x'.repeat(size) } })
  expect(await aGuardedFetch().post(sized(8_193))).toEqual(failed('header-refused'))
  expect(await aGuardedFetch().post(sized(8_192))).toMatchObject({ status: 200 })
  expect(receiver.requests).toHaveLength(1)
})

test('nothing in an outcome shows the URL, which may hold a token of its owner', async () => {
  const url = 'http://hooks.example.test:1/in?token=sesame'
  for (const lookup of [async () => ['127.0.0.1'], async () => ['169.254.169.254'], async () => []])
    expect(JSON.stringify(await aGuardedFetch({ lookup }).post(to({ port: 1 }, { url })))).not.toMatch(/sesame|hooks/)
})
