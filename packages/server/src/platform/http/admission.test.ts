import { once } from 'node:events'
import net from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aToyServer, beginToys, endToys, toys } from '../../../test/toy-server.ts'
import { Metadata } from '../wire.ts'
import type { People } from './identify.ts'

/** What a caller may cost before and after its key is known. */

const large = 'x'.repeat(1_000_000)

beforeEach(beginToys)
afterEach(endToys)

function make(base: string, authorization: string, body: object): Promise<Response> {
  const headers = { authorization, 'content-type': 'application/json' }
  return fetch(`${base}/toys`, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** Sends bytes and returns what came back until the first response's head, or until the connection closed. */
async function firstResponse(port: number, bytes: string): Promise<string> {
  const socket = net.connect(port, '127.0.0.1').setEncoding('utf8')
  socket.on('error', () => undefined)
  const answered = Promise.withResolvers<string>()
  let text = ''
  socket.on('data', (more: string) => {
    text += more
    if (text.includes('\r\n\r\n')) answered.resolve(text)
  })
  socket.once('close', () => answered.resolve(text))
  socket.write(bytes)
  const response = await answered.promise
  socket.destroy()
  return response
}

test('a request without a valid key is refused before its body has arrived', async () => {
  const { port } = await aToyServer()
  const head =
    'POST /toys HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{"name":"'
  expect(await firstResponse(port, head)).toMatch(/^HTTP\/1\.1 401 /)
  expect(await firstResponse(port, head.replace('/toys', '/nowhere'))).toMatch(/^HTTP\/1\.1 404 /)
})

test('the bodies of one organisation in flight leave memory for those of another, and are released', async () => {
  const { base } = await aToyServer({ limits: { bodiesBytesMax: 4_000_000 } })
  const slow = [1, 2].map(() => make(base, 'Bearer org1 key1', { name: 'slow' }))
  const statuses = async (authorization: string, count: number) => {
    const answers = await Promise.all(Array.from({ length: count }, () => make(base, authorization, { name: large })))
    return answers.map(({ status }) => status).sort()
  }
  const bodies = Array.from({ length: 4 }, async () => (await make(base, 'Bearer org1 key1', { name: large })).status)
  expect(await statuses('Bearer org2 key1', 1)).toEqual([200])
  expect([...new Set(await Promise.all(bodies))].filter((status) => status !== 200 && status !== 429)).toEqual([])
  toys.pending.resolve()
  await Promise.all(slow)
  expect(await statuses('Bearer org1 key1', 1)).toEqual([200])
})

/** Opens a request whose body has begun and never ends. Resolves when the service has read its head. */
async function beginBody(port: number, head: readonly string[], bytes: number): Promise<net.Socket> {
  const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
  const lines = [...head, 'host: x', 'content-type: application/json', `content-length: ${bytes}`]
  socket.write(`${lines.join('\r\n')}\r\n\r\n{`)
  await once(socket, 'connect')
  return socket
}

test.each([1_000_000, 32_768])(
  'bodies of %d bytes from addresses without a key leave memory to callers with one, and to other addresses',
  async (bytes) => {
    const { port, base } = await aToyServer({ limits: { bodiesBytesMax: 4_194_304 }, trustProxy: 1 })
    const sockets: net.Socket[] = []
    for (let address = 1; address <= 16; address++) {
      const head = ['POST /sign-in HTTP/1.1', `x-forwarded-for: 203.0.113.${address}`]
      for (let count = 0; count < 8; count++) sockets.push(await beginBody(port, head, bytes))
    }
    const signIn = (): Promise<Response> => {
      const headers = { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.99' }
      return fetch(`${base}/sign-in`, { method: 'POST', headers, body: '{"email":"a@b.example"}' })
    }
    expect((await make(base, 'Bearer org1 key1', { name: 'a' })).status).toBe(200)
    expect((await make(base, 'Bearer org1 key1', { name: large })).status).toBe(200)
    expect((await signIn()).status).toBe(200)
    for (const socket of sockets) socket.destroy()
  },
)

test('however large the bodies of several organisations are, others can make ordinary requests', async () => {
  const { port, base } = await aToyServer({ limits: { bodiesBytesMax: 4_194_304 } })
  const sockets: net.Socket[] = []
  for (let org = 1; org <= 8; org++)
    for (let count = 0; count < 4; count++) {
      const head = ['POST /toys HTTP/1.1', `authorization: Bearer org${org} key1`]
      sockets.push(await beginBody(port, head, 262_144))
    }
  expect((await make(base, 'Bearer org9 key1', { name: 'a' })).status).toBe(200)
  for (const socket of sockets) socket.destroy()
})

test('the keys of one organisation share its limit, and another organisation keeps its own', async () => {
  const { base } = await aToyServer({ organisationLimit: { perSecond: 1, burst: 3 } })
  const statuses = []
  for (const caller of ['1 key1', '1 key2', '1 key3', '1 key4', '2 key1'])
    statuses.push((await make(base, `Bearer org${caller}`, { name: 'a' })).status)
  expect(statuses).toEqual([200, 200, 200, 429, 200])
})

test('a request takes as much from the limit as it costs', async () => {
  const { base } = await aToyServer({ organisationLimit: { perSecond: 1, burst: 10 } })
  expect((await make(base, 'Bearer org1 key1', { name: 'a', count: 8 })).status).toBe(200)
  const refused = await make(base, 'Bearer org1 key1', { name: 'a', count: 8 })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '4'])
  expect((await make(base, 'Bearer org1 key1', { name: 'a' })).status).toBe(200)
})

test('an address that a caller writes itself does not replace the one that the proxy adds', async () => {
  const { base } = await aToyServer({ trustProxy: 1, addressLimit: { perSecond: 1, burst: 3 } })
  const statuses = []
  for (let count = 0; count < 5; count++) {
    const headers = { 'x-forwarded-for': `198.51.100.${count}, 203.0.113.9` }
    statuses.push((await fetch(`${base}/page`, { headers })).status)
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429])
  const other = await fetch(`${base}/page`, { headers: { 'x-forwarded-for': '203.0.113.10' } })
  expect(other.status).toBe(200)
})

test('beyond the limit of an address guessed keys are not toys.looked up, and known ones still are', async () => {
  const { base } = await aToyServer({ addressLimit: { perSecond: 1, burst: 4 } })
  expect((await make(base, 'Bearer org1 key1', { name: 'a' })).status).toBe(200)
  const statuses = []
  for (let count = 0; count < 8; count++)
    statuses.push((await make(base, `Bearer guess${count}`, { name: 'a' })).status)
  expect(statuses).toEqual([401, 401, 401, 429, 429, 429, 429, 429])
  expect(toys.looked.filter((authorization) => authorization.startsWith('Bearer guess'))).toHaveLength(3)
  expect((await make(base, 'Bearer org1 key1', { name: 'a' })).status).toBe(200)
})

test('beyond the limit of a person known sessions are not looked up, also at once, and within it each counts once', async () => {
  let looked = 0
  const people: People = {
    origin: 'http://dashboard.test',
    cookieOf: (cookies) => cookies,
    async find(cookie, organisationId) {
      looked += 1
      const [accountId, sessionId] = ['acc_01h455vb4pex5vsknk084sn02q', 'ssn_01h455vb4pex5vsknk084sn02q'] as const
      const own = { accountId, sessionId, shareOwner: accountId, authenticatedAt: new Date(), isLive: true }
      return cookie.startsWith('session') && organisationId ? { ...own, role: 'owner', isSuspended: false } : undefined
    },
  }
  const { base } = await aToyServer({ people, keyLimit: { perSecond: 0.001, burst: 6 } })
  const organisation = 'org_01h455vb4pex5vsknk084sn02q'
  const own = { origin: people.origin, 'x-service-organisation': organisation, 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'a', count: 0 })
  const statusOf = async (cookie: string) =>
    (await fetch(`${base}/toys`, { method: 'POST', headers: { ...own, cookie }, body })).status
  expect([await statusOf('session 1'), await statusOf('session 2')]).toEqual([200, 200])
  const statuses = await Promise.all(Array.from({ length: 30 }, (_, at) => statusOf(`session ${1 + (at % 2)}`)))
  expect(statuses.filter((status) => status === 200)).toHaveLength(4)
  expect(new Set(statuses)).toEqual(new Set([200, 429]))
  expect(looked).toBe(6)
})

test('connections of one address that only wait are bounded, and those of a caller with a key are not counted', async () => {
  const { port, base } = await aToyServer({ limits: { connectionsPerAddressMax: 2 } })
  const head = 'GET /toys/none HTTP/1.1\r\nhost: x\r\n'
  expect((await make(base, 'Bearer org1 key1', { name: 'a' })).status).toBe(200)
  const waiting = [1, 2].map(() => net.connect(port, '127.0.0.1').on('error', () => undefined))
  await Promise.all(waiting.map((socket) => once(socket, 'connect')))
  expect(await firstResponse(port, `${head}\r\n`)).toBe('')
  for (const socket of waiting) socket.destroy()
  await expect.poll(() => firstResponse(port, `${head}\r\n`)).toMatch(/^HTTP\/1\.1 404 /)
})

test('the connections of one tenant leave places for another, whose requests are answered', async () => {
  const { port } = await aToyServer({ limits: { connectionsMax: 8 } })
  const sockets: net.Socket[] = []
  /** Makes a request on a new connection and leaves that open; returns the status, or nothing where it was not accepted. */
  const statusOf = async (authorization: string) => {
    const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
    sockets.push(socket)
    const answered = Promise.withResolvers<string>()
    socket.once('data', (bytes) => answered.resolve(String(bytes))).once('close', () => answered.resolve(''))
    const head = `POST /toys HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json`
    socket.write(`${head}\r\ncontent-length: 12\r\n\r\n{"name":"a"}`)
    return /^HTTP\/1\.1 (\d+)/.exec(await answered.promise)?.[1]
  }
  const statuses = []
  for (let count = 0; count < 7; count++) statuses.push(await statusOf(`Bearer org1 key${count}`))
  expect(statuses).toEqual(['200', '200', '200', '200', '429', '429', '429'])
  expect([await statusOf('Bearer org2 key1'), await statusOf('Bearer org2 key1')]).toEqual(['200', '200'])
  for (const socket of sockets.slice(0, 2)) socket.destroy()
  await expect.poll(() => statusOf('Bearer org1 key1')).toBe('200')
  for (const socket of sockets) socket.destroy()
})

test('a connection that never completes its header fields is closed with a 408', async () => {
  const { port } = await aToyServer({ limits: { headersMsMax: 100 } })
  expect(await firstResponse(port, 'GET /page HTTP/1.1\r\nhost:')).toMatch(/^HTTP\/1\.1 408 /)
})

test('a caller that never reads its response is disconnected', async () => {
  const { port } = await aToyServer({ limits: { silenceMsMax: 200 } })
  const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
  socket.write('GET /toys/large HTTP/1.1\r\nhost: x\r\nauthorization: Bearer org1 key1\r\n\r\n')
  socket.pause()
  const server = toys.servers[0]
  await once(socket, 'connect')
  // A server that waited for this caller would not close.
  await expect.poll(() => toys.looked.length).toBe(1)
  await server?.close()
  toys.servers = []
  socket.destroy()
})

/** Reads a list of large toys page by page, and returns the toys of each page. */
async function pagesOf(base: string, path: string): Promise<string[][]> {
  const response = await fetch(`${base}${path}`, { headers: { authorization: 'Bearer org1 key1' } })
  expect(response.status).toBe(200)
  const page = (await response.json()) as string[]
  const next = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  return next === undefined ? [page] : [page, ...(await pagesOf(base, next))]
}

test('metadata has at most fifty members', () => {
  const metadata = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, place) => [`key${place}`, 1]))
  expect([Metadata.safeParse(metadata(50)).success, Metadata.safeParse(metadata(51)).success]).toEqual([true, false])
})

test('a page of large items ends at a mebibyte, and the pages together have each item once', async () => {
  const { base } = await aToyServer()
  const pages = await pagesOf(base, '/toys/each?limit=500')
  expect(pages.map(({ length }) => length)).toEqual([5, 5, 5, 5])
  expect(pages.flat().map((toy) => Number.parseInt(toy, 10))).toEqual(Array.from({ length: 20 }, (_, place) => place))
})

test('a response costs a token for each 64 KiB that were read for it, and the next requests wait for them', async () => {
  const { base } = await aToyServer({ organisationLimit: { perSecond: 1, burst: 30 } })
  const authorization = 'Bearer org1 key1'
  const first = await fetch(`${base}/toys/each?limit=5`, { headers: { authorization } })
  expect([first.status, (await first.text()).length > 16 * 60_000]).toEqual([200, true])
  const second = await fetch(`${base}/toys/each?limit=20`, { headers: { authorization } })
  expect(second.status, 'it has tokens left').toBe(200)
  await second.text()
  const third = await make(base, authorization, { name: 'a' })
  // The first cost 16, and the second 62: the organisation owes at most its burst.
  expect([third.status, third.headers.get('retry-after')]).toEqual([429, '31'])
  expect((await make(base, 'Bearer org2 key1', { name: 'a' })).status).toBe(200)
})

test('what a guest owes keeps no other caller of its address waiting', async () => {
  const { base } = await aToyServer({ addressLimit: { perSecond: 1, burst: 60 } })
  const shown = async (ticket: string) => {
    const response = await fetch(`${base}/toys/shown?ticket=${ticket}`)
    await response.text()
    return response.status
  }
  expect([await shown('one'), await shown('one'), await shown('another')]).toEqual([200, 429, 200])
  expect((await fetch(`${base}/page`)).status).toBe(200)
})
