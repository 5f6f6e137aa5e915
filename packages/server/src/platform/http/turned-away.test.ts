import { once } from 'node:events'
import net from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Deps } from '../ctx.ts'
import { bindOperations, type Operation, operationFor } from '../operation.ts'
import { unauthorized } from './authenticate.ts'
import { bodyBytesMax, createHttpServer, type HttpServer } from './server.ts'

const operation = operationFor<Deps>()

const burst = 4
let deps: Deps
const operations: readonly Operation<Deps>[] = [
  operation({
    id: 'toys.create',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys/{id}',
    summary: 'Make a toy.',
    params: z.strictObject({ id: z.string() }),
    input: z.strictObject({ name: z.string() }),
    output: z.strictObject({ name: z.string() }),
    run: (_ctx, { body }) => body,
  }),
]

let database: TestDatabase
let server: HttpServer
let port = 0
let base = ''

beforeEach(async () => {
  database = await freshDatabase()
  const now = new Date()
  deps = toyDeps(database.db)
  const own = { ...deps, clock: { ...deps.clock, now: () => now } }
  server = createHttpServer({
    deps: own,
    operations: bindOperations(own, operations),
    pages: [
      { path: '/healthz', respond: () => ({ status: 200, headers: {}, body: 'up' }) },
      { path: '/page', respond: () => ({ status: 200, headers: {}, body: 'here' }) },
    ],
    async authenticate(authorization) {
      if (authorization !== 'Bearer good') throw unauthorized('the key is unknown or revoked')
      return {
        organisationId: 'org_1',
        environment: 'test',
        apiKeyId: 'key_1',
        shareOwner: 'org_1',
        scopes: null,
        isSuspended: false,
      }
    },
    keyLimit: { perSecond: 1_000, burst: 1_000 },
    addressLimit: { perSecond: 1, burst },
    trustProxy: false,
  })
  port = (await server.listen(0, '127.0.0.1')).port
  base = `http://127.0.0.1:${port}`
})
afterEach(async () => {
  await server.close()
  await database.drop()
})

const large = { method: 'POST', body: 'x'.repeat(bodyBytesMax + 1), headers: { 'content-type': 'application/json' } }
const oddType = { method: 'POST', body: '{}', headers: { 'content-type': ';;' } }

/** Requests that end before a key is looked up. */
const uncounted: readonly (readonly [name: string, path: string, init: RequestInit, status: number])[] = [
  ['an unknown path', '/.env', {}, 404],
  ['an unknown path with a body', '/wp-login.php', { method: 'POST', body: '{}' }, 404],
  ['a method that a path does not have', '/page', { method: 'DELETE' }, 404],
  ['a path that is not valid text', '/toys/%zz', {}, 404],
  ['a body that would be too large', '/toys/1', large, 401],
  ['an unknown media type', '/toys/1', oddType, 401],
]

test.each(uncounted)(
  '%s counts against the address like every call without a key, and is 429 beyond its limit',
  async (_, path, init, status) => {
    const answers = []
    for (let count = 0; count < burst + 1; count++) answers.push(await fetch(base + path, init))
    expect(answers.map((response) => response.status)).toEqual([...Array.from({ length: burst }, () => status), 429])
    expect(answers.map(({ headers }) => headers.get('ratelimit'))).toEqual(
      [3, 2, 1, 0, 0].map((left) => `"default";r=${left};t=${left === 0 ? 1 : 0}`),
    )
    const last = answers.at(-1)
    expect(last?.headers.get('retry-after')).toBe('1')
    expect(await last?.json()).toMatchObject({ type: expect.stringMatching(/\/problems\/rate-limit-exceeded$/) })
  },
)

test('one limit applies to all requests of an address without a valid key, whatever they request', async () => {
  const requested: readonly [string, RequestInit][] = [
    ['/nowhere', {}],
    ['/page', {}],
    ['/toys/1', oddType],
    ['/toys/1', { method: 'POST', headers: { authorization: 'Bearer guessed' } }],
    ['/page', {}],
  ]
  const statuses = []
  for (const [path, init] of requested) statuses.push((await fetch(base + path, init)).status)
  expect(statuses).toEqual([404, 200, 401, 401, 429])
})

test('each refusal before an operation counts in the metrics by its code, and what an operation refuses does not', async () => {
  await fetch(`${base}/toys/1`, { method: 'POST', headers: { authorization: 'Bearer guessed' } })
  for (let count = 0; count < burst; count++) await fetch(`${base}/nowhere`)
  expect(await sent('nonsense\r\n\r\n')).toContain('400')
  const headers = { authorization: 'Bearer good', 'content-type': 'application/json' }
  expect((await fetch(`${base}/toys/1`, { method: 'POST', headers, body: '{}' })).status).toBe(422)
  const { values } = await deps.metrics.refusals.get()
  expect(Object.fromEntries(values.map(({ labels, value }) => [labels.code, value]))).toEqual({
    unauthorized: 1,
    'not-found': burst - 1,
    'rate-limit-exceeded': 1,
    'bad-request': 1,
  })
})

test('an address over its limit may still use a valid key, and can still query the health of the server', async () => {
  for (let count = 0; count < burst + 1; count++) await fetch(`${base}/nowhere`)
  const headers = { authorization: 'Bearer good', 'content-type': 'application/json' }
  const made = await fetch(`${base}/toys/1`, { method: 'POST', headers, body: '{"name":"a"}' })
  expect([made.status, (await fetch(`${base}/healthz`)).status]).toEqual([200, 200])
})

/** Sends raw bytes and returns the response. */
async function sent(bytes: string): Promise<string> {
  const socket = net.connect(port, '127.0.0.1')
  let response = ''
  socket.on('error', () => undefined)
  socket.setEncoding('utf8').on('data', (text: string) => {
    response += text
  })
  socket.write(bytes)
  await once(socket, 'close')
  return response
}

const unreadable: readonly (readonly [string, string, status: number, code: string])[] = [
  ['invalid HTTP', 'hello\r\n\r\n', 400, 'bad-request'],
  [
    'an endless header',
    `GET / HTTP/1.1\r\nhost: x\r\na: ${'a'.repeat(20_000)}\r\n\r\n`,
    431,
    'request-header-fields-too-large',
  ],
  [
    'a body with two lengths',
    'POST /toys/1 HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}',
    400,
    'bad-request',
  ],
  [
    'an invalid chunk',
    'POST /toys/1 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    400,
    'bad-request',
  ],
]

/** Requests that Node reads and the service does not accept. */
const refusedHeads: readonly (readonly [string, string, status: number, code: string])[] = [
  ['no Host', 'GET /page HTTP/1.1\r\n', 400, 'bad-request'],
  ['two Hosts', 'GET /page HTTP/1.1\r\nhost: x\r\nHost: y\r\n', 400, 'bad-request'],
  [
    'two Authorizations',
    'GET /page HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\nAuthorization: Bearer bad\r\n',
    400,
    'bad-request',
  ],
  ['101 parameters', `GET /page?${'a&'.repeat(100)} HTTP/1.1\r\nhost: x\r\n`, 400, 'bad-request'],
  ['a query of 16 KB', `POST /toys/1?${'a&'.repeat(7_900)} HTTP/1.1\r\nhost: x\r\n`, 400, 'bad-request'],
  ['an unknown expectation', 'GET /page HTTP/1.1\r\nhost: x\r\nexpect: a-miracle\r\n', 400, 'bad-request'],
  [
    'a Content-Encoding',
    'POST /toys/1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\ncontent-encoding: gzip\r\ncontent-type: application/json\r\ncontent-length: 1\r\n',
    415,
    'unsupported-media-type',
  ],
  [
    'a Content-Encoding of a body of unknown length',
    'POST /toys/1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n',
    415,
    'unsupported-media-type',
  ],
]

test.each(refusedHeads)('%s is answered with a problem record', async (_, head, status, code) => {
  const response = await sent(`${head}connection: close\r\n\r\n`)
  expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  const problem: unknown = JSON.parse(/\{.*\}/s.exec(response)?.[0] ?? '')
  expect(problem).toMatchObject({ type: `http://purser.test/problems/${code}`, status })
})

test('a query of 100 parameters is accepted', async () => {
  expect(await sent(`GET /page?${'a&'.repeat(99)} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)).toMatch(
    /^HTTP\/1\.1 200 /,
  )
})

test('an HTTP/1.0 request needs no Host, and 100-continue and identity are accepted', async () => {
  expect(await sent('GET /page HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  const head =
    'GET /page HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-encoding: identity\r\nconnection: close\r\n\r\n'
  expect(await sent(head)).toMatch(/HTTP\/1\.1 200 /)
})

test.each(['gzip\r\n', '\r\n', 'gzip\r\ncontent-length: 0\r\n'])(
  'a request without a body is accepted with the Content-Encoding %j',
  async (encoding) => {
    const head = `GET /page HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-encoding: ${encoding}\r\n`
    expect(await sent(head)).toMatch(/^HTTP\/1\.1 200 /)
  },
)

test('an empty Content-Encoding of a body is none', async () => {
  const head =
    'POST /toys/1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\nconnection: close\r\ncontent-type: application/json\r\n'
  const response = await sent(`${head}content-encoding:\r\ncontent-length: 12\r\n\r\n{"name":"a"}`)
  expect(response).toMatch(/^HTTP\/1\.1 200 /)
})

test('a connection whose body arrives after its response and after the stop began does not delay the stop', async () => {
  const socket = net.connect(port, '127.0.0.1')
  const closed = once(socket, 'close')
  socket.write('POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345')
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 404 /)
  const stopped = server.close()
  await expect.poll(() => fetch(`${base}/healthz`).catch(() => 'refused')).toBe('refused')
  const begun = performance.now()
  socket.write('67890')
  await stopped
  await closed
  expect(performance.now() - begun, 'far below the keep-alive timeout of 72 s').toBeLessThan(30_000)
})

test.each(unreadable)(
  '%s is answered with a problem record that has a request id, and the connection ends',
  async (_, bytes, status, code) => {
    const response = await sent(bytes)
    const [head = '', body = ''] = response.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(head).toMatch(/content-type: application\/problem\+json/)
    const problem: unknown = JSON.parse(body)
    expect(problem).toMatchObject({ type: `http://purser.test/problems/${code}`, status })
    expect(head).toContain(`x-request-id: ${Object(problem).requestId}`)
    expect(head).toContain('x-service-version: 1.0.0')
  },
)
