import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { composeApiKey } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Deps } from '../ctx.ts'
import { sql } from '../db/db.ts'
import { defineErrors } from '../errors.ts'
import { type ApiKeyId, id, type OrganisationId } from '../ids.ts'
import { bindOperations, operationFor, Reply } from '../operation.ts'
import { Metadata, PageQuery, pageOf, text } from '../wire.ts'
import { createAuthenticate } from './authenticate.ts'
import { openApiDocument } from './openapi.ts'
import { publicPages } from './pages.ts'
import { createHttpServer, type HttpServer } from './server.ts'

const operation = operationFor<Deps>()

const fail = defineErrors({
  'toy-not-found': { status: 404, title: 'Toy Not Found', detail: 'No such toy.', causes: ['Lost.'], fix: 'Look.' },
  'toy-taken': { status: 409, title: 'Toy Taken', detail: 'Somebody has the toy.', causes: ['Lent.'], fix: 'Ask.' },
})
const Toy = z.strictObject({ name: text(64), times: z.int(), metadata: Metadata })
let slowGate = Promise.resolve()

const operations = [
  operation({
    id: 'toys.create',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys',
    summary: 'Make a toy.',
    status: 201,
    input: z.strictObject({ name: text(64, 1), times: z.int().default(1), metadata: Metadata.default({}) }),
    output: Toy,
    async run(ctx, { body }) {
      await ctx.db.tx(async (tx) => {
        await ctx.publish(tx, 'webhook.test', { webhookId: body.name })
      })
      await slowGate
      if (body.name === 'boom') throw new Error('the secret inside')
      if (body.name === 'gone') throw fail('toy-not-found')
      if (body.name === 'taken') throw fail('toy-taken')
      return body
    },
  }),
  operation({
    id: 'toys.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/toys/{id}',
    summary: 'Get a toy.',
    params: z.strictObject({ id: id('doc') }),
    output: Toy,
    errors: fail.table,
    run: () => {
      throw fail('toy-not-found')
    },
  }),
  operation({
    id: 'toys.list',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/toys',
    summary: 'List toys.',
    query: PageQuery,
    output: z.string(),
    list: true,
    run: (_ctx, { query }) =>
      pageOf(['doc_01h455vb4pex5vsknk084sn02q', 'doc_01h455vb4pex5vsknk084sn02r'], query.limit, (row) => row),
  }),
  operation({
    id: 'toys.measure',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys/measure',
    summary: 'Count the bytes of a toy, however large it is.',
    streamsInput: { mediaType: 'application/octet-stream', schema: { type: 'string', format: 'binary' } },
    output: z.strictObject({ bytes: z.int() }),
    async run(_ctx, { stream }) {
      let bytes = 0
      for await (const chunk of stream ?? []) bytes += chunk.length
      return { bytes }
    },
  }),
  operation({
    id: 'toys.play',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/toys/play',
    summary: 'An endless stream, for callers with a key or a ticket.',
    query: z.strictObject({ ticket: text(64).optional() }),
    streamsOutput: 'application/octet-stream',
    async guests(_deps, { query }) {
      if (query.ticket === undefined) return undefined
      if (query.ticket !== 'good') throw fail('toy-not-found')
      const tenant = { organisationId: 'org_0', environment: 'test' } as const
      return { tenant, actor: { kind: 'guest', guestId: 'ticket' }, shareOwner: 'org_0' } as const
    },
    run(ctx) {
      played.push(ctx.actor.kind)
      const endless = new Readable({
        read: () => endless.push(Buffer.alloc(65_536)),
        destroy: (error, done) => {
          destroyed.resolve()
          done(error)
        },
      })
      return new Reply(200, endless, { 'content-type': 'application/octet-stream' })
    },
  }),
]
const played: string[] = []
const destroyed = Promise.withResolvers<void>()

let database: TestDatabase
let server: HttpServer
let base = ''
const testKey = composeApiKey('test', randomBytes(32))
const otherKey = composeApiKey('test', randomBytes(32))
const limitedKey = composeApiKey('test', randomBytes(32))

beforeAll(async () => {
  database = await freshDatabase()
  const deps = toyDeps(database.db)
  const findKey = async (hash: Uint8Array) => {
    const index = [testKey, otherKey, limitedKey].findIndex((key) => Buffer.compare(hash, sha256(key)) === 0)
    if (index < 0) return undefined
    return {
      organisationId: `org_${index}` as OrganisationId,
      environment: 'test' as const,
      apiKeyId: `key_${index}` as ApiKeyId,
      shareOwner: `org_${index}`,
      scopes: null,
      isSuspended: false,
    }
  }
  server = createHttpServer({
    deps,
    operations: bindOperations(deps, operations),
    pages: publicPages(deps, operations, () =>
      openApiDocument(operations, { title: 'Toys', version: '1', description: '' }),
    ),
    authenticate: createAuthenticate(findKey, ['test']),
    keyLimit: { perSecond: 1, burst: 200 },
    addressLimit: { perSecond: 1_000, burst: 1_000 },
    trustProxy: false,
  })
  base = `http://127.0.0.1:${(await server.listen(0, '127.0.0.1')).port}`
})
afterAll(async () => {
  await server.close()
  await database.drop()
})

function sha256(value: string): Buffer {
  return createHash('sha256').update(value).digest()
}

function post(
  body: string | Uint8Array<ArrayBuffer> | object,
  headers: Record<string, string> = {},
  key = testKey,
): Promise<Response> {
  return fetch(`${base}/toys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body:
      typeof body === 'string' || body instanceof Uint8Array ? new Uint8Array(Buffer.from(body)) : JSON.stringify(body),
  })
}

async function code(response: Response): Promise<string> {
  const record = z.object({ type: z.string(), requestId: z.string(), status: z.number() }).parse(await response.json())
  expect(response.headers.get('content-type')).toContain('application/problem+json')
  expect(response.headers.get('x-request-id')).toBe(record.requestId)
  expect(response.headers.get('x-service-version')).toBe('1.0.0')
  expect(record.status).toBe(response.status)
  return record.type.replace('http://purser.test/problems/', '')
}

test('a key that is missing, malformed, mistyped or of another environment is 401, and the detail begins as documented', async () => {
  const mistyped = `${testKey.slice(0, -1)}${testKey.endsWith('0') ? '1' : '0'}`
  const live = composeApiKey('live', randomBytes(32))
  for (const authorization of [
    undefined,
    'Basic abc',
    'Bearer nonsense',
    `Bearer ${mistyped}`,
    `Bearer ${live}`,
    `Bearer ${composeApiKey('test', randomBytes(32))}`,
  ]) {
    const response = await fetch(`${base}/toys`, authorization === undefined ? {} : { headers: { authorization } })
    expect(response.status).toBe(401)
    const record = z.object({ title: z.string(), type: z.string(), detail: z.string() }).parse(await response.json())
    expect(record.title).toBe('Unauthorized')
    expect(record.type).toMatch(/unauthorized$/)
    expect(record.detail).toMatch(/^API key is invalid or missing/)
  }
})

test('hostile bodies are refused with a 4xx problem and never a 500', async () => {
  const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
  const cases: [string | Uint8Array<ArrayBuffer> | object, Record<string, string>, number, string][] = [
    ['{"name":', {}, 400, 'malformed-json'],
    ['\u0000', {}, 400, 'malformed-json'],
    [new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), {}, 400, 'malformed-json'],
    [`{"name":"a","metadata":${deep}}`, {}, 400, 'malformed-json'],
    ['{"name":"a","metadata":{"__proto__":{"x":1}}}', {}, 400, 'malformed-json'],
    [{ name: 'a\u0000b' }, {}, 422, 'validation-error'],
    [{ name: 'a', metadata: { x: 'a\u0000b' } }, {}, 422, 'validation-error'],
    [{ name: 'lone \ud800 surrogate' }, {}, 422, 'validation-error'],
    [{ name: 7 }, {}, 422, 'validation-error'],
    [{ name: 'a', times: '1' }, {}, 422, 'validation-error'],
    [[], {}, 422, 'validation-error'],
    ['null', {}, 422, 'validation-error'],
    [{ name: 'a' }, { 'content-type': 'text/plain' }, 415, 'unsupported-media-type'],
    ['x'.repeat(10_000_000), {}, 413, 'payload-too-large'],
  ]
  for (const [body, headers, status, problem] of cases) {
    const response = await post(body, headers)
    expect([response.status, await code(response)], JSON.stringify(body).slice(0, 60)).toEqual([status, problem])
  }
})

test('all faults of a body are listed together, with JSON Pointers, and unknown fields are faults', async () => {
  const response = await post({ times: 'x', 'we/ird~': 1 })
  const { errors } = z.object({ errors: z.array(z.looseObject({ path: z.string() })) }).parse(await response.json())
  expect(errors.map((error) => error.path).sort()).toEqual(['/name', '/times', '/we~1ird~0'])
  expect(errors).toContainEqual({ path: '/name', message: 'is missing' })
})

test('an id that cannot exist gets the same response as one that does not', async () => {
  const headers = { authorization: `Bearer ${testKey}` }
  const records = await Promise.all(
    ['garbage', 'doc_01h455vb4pex5vsknk084sn02q', '..%2f..%2fetc', 'doc_01h455vb4pex5vsknk084sn02q%00'].map(
      async (name) => {
        const response = await fetch(`${base}/toys/${name}`, { headers })
        const { requestId, ...record } = z.looseObject({ requestId: z.string() }).parse(await response.json())
        return { status: response.status, record }
      },
    ),
  )
  expect(new Set(records.map((record) => JSON.stringify(record))).size).toBe(1)
  expect(records[0]?.status).toBe(404)
})

test('an internal failure is a 500 without internal details', async () => {
  const response = await post({ name: 'boom' })
  expect(response.status).toBe(500)
  expect(await response.text()).not.toContain('secret')
})

test('a repeated Idempotency-Key returns the stored response, and the effect happens once', async () => {
  const first = await post({ name: 'once' }, { 'idempotency-key': 'k1' })
  const again = await post({ name: 'once' }, { 'idempotency-key': 'k1' })
  expect([first.status, again.status]).toEqual([201, 201])
  expect(await again.text()).toBe(await first.text())
  expect([first.headers.get('idempotency-replayed'), again.headers.get('idempotency-replayed')]).toEqual([null, 'true'])
  expect(await eventsNamed('once')).toBe(1)
})

test('the same key with another body is refused, and another organisation may use it', async () => {
  await post({ name: 'reuse' }, { 'idempotency-key': 'k2' })
  expect(await code(await post({ name: 'reuse', times: 2 }, { 'idempotency-key': 'k2' }))).toBe(
    'idempotency-key-reused',
  )
  expect((await post({ name: 'reuse' }, { 'idempotency-key': 'k2' }, otherKey)).status).toBe(201)
})

test('of refusals only a conflict is stored under a key', async () => {
  const twice = async (body: Record<string, unknown>, key: string) => {
    await post(body, { 'idempotency-key': key })
    const again = await post(body, { 'idempotency-key': key })
    return [again.status, again.headers.get('idempotency-replayed')]
  }
  expect(await twice({ name: 'taken' }, 'k30')).toEqual([409, 'true'])
  expect(await twice({ name: 'gone' }, 'k31')).toEqual([404, null])
  expect(await twice({ name: 'x'.repeat(65) }, 'k32')).toEqual([422, null])
  const kept = sql`select key from idempotency_keys where key in ('k30', 'k31', 'k32')`
  expect(await database.db.many(z.object({ key: z.string() }), kept)).toEqual([{ key: 'k30' }])
  expect((await post({ name: 'boom' }, { 'idempotency-key': 'k4' })).status).toBe(500)
  const again = await post({ name: 'boom' }, { 'idempotency-key': 'k4' })
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([500, null])
})

test('of a hundred concurrent requests with one key one takes effect, and the others are refused for now or get its response', async () => {
  const gate = Promise.withResolvers<void>()
  slowGate = gate.promise
  const flights = Array.from({ length: 100 }, () => post({ name: 'flock' }, { 'idempotency-key': 'k5' }))
  try {
    expect((await Promise.race(flights)).status).toBe(409)
  } finally {
    gate.resolve()
    slowGate = Promise.resolve()
  }
  const statuses = (await Promise.all(flights)).map((response) => response.status)
  expect(statuses.filter((status) => status !== 201 && status !== 409)).toEqual([])
  expect(statuses).toContain(201)
  expect(await eventsNamed('flock')).toBe(1)
})

test('a list has a Link to the next page while more remain', async () => {
  const response = await fetch(`${base}/toys?limit=1`, { headers: { authorization: `Bearer ${otherKey}` } })
  const next = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  expect(next).toMatch(/^\/toys\?limit=1&cursor=/)
})

test('a key over its rate limit is 429 with Retry-After, and others are not affected', async () => {
  const answers = await Promise.all(
    Array.from({ length: 260 }, () => fetch(`${base}/toys`, { headers: { authorization: `Bearer ${limitedKey}` } })),
  )
  const refused = answers.filter((response) => response.status === 429)
  expect(refused.length).toBeGreaterThan(40)
  expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refused[0]?.headers.get('ratelimit')).toMatch(/^"default";r=0;t=\d+$/)
  expect((await fetch(`${base}/toys`, { headers: { authorization: `Bearer ${otherKey}` } })).status).toBe(200)
})

test('health, the API description, its reference and every problem page are public', async () => {
  for (const path of [
    '/healthz',
    '/readyz',
    '/openapi.json',
    '/openapi/toys.json',
    '/docs',
    '/docs/reference',
    '/docs/reference/plain',
    '/docs/quick-start',
    '/docs/quick-start.md',
    '/docs/errors/toy-not-found',
    '/',
    '/llms.txt',
    '/llms-full.txt',
    '/robots.txt',
    '/problems/validation-error',
    '/problems/toy-not-found',
  ]) {
    expect((await fetch(base + path)).status, path).toBe(200)
  }
  expect((await fetch(`${base}/problems/constructor`)).status).toBe(404)
  expect((await fetch(`${base}/nothing`)).status).toBe(404)
})

test('a page of the documentation with a slash behind it redirects to the page', async () => {
  for (const path of ['/docs', '/docs/reference', '/docs/reference/plain', '/docs/quick-start', '/docs/decisions']) {
    const found = await fetch(`${base}${path}/?from=x`, { redirect: 'manual' })
    expect([found.status, found.headers.get('location')], path).toEqual([308, `${path}?from=x`])
    expect((await fetch(`${base}${path}/`)).status, path).toBe(200)
  }
})

async function eventsNamed(name: string): Promise<number> {
  const row = await database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from events where payload ->> 'webhookId' = ${name}`,
  )
  return Number(row.count)
}

test('a streamed body may be larger than any body that is read, and is never whole in memory', async () => {
  const chunk = Buffer.alloc(1_048_576)
  const chunks = 512
  const before = process.memoryUsage().rss
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent++ < chunks) controller.enqueue(chunk)
      else controller.close()
    },
  })
  const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/octet-stream' }
  // `duplex` is required by Node and missing in the types.
  const requested = { method: 'POST', headers, body, duplex: 'half' }
  const response = await fetch(`${base}/toys/measure`, requested)
  expect([response.status, await response.json()]).toEqual([200, { bytes: chunks * chunk.length }])
  expect(process.memoryUsage().rss - before).toBeLessThan((chunks / 2) * chunk.length)
})

test('a streamed response ends when the caller disconnects, and a ticket admits a caller without a key', async () => {
  const leaving = new AbortController()
  const response = await fetch(`${base}/toys/play?ticket=good`, { signal: leaving.signal })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/octet-stream')
  const { value } = (await response.body?.getReader().read()) ?? {}
  expect(value?.length).toBeGreaterThan(0)
  leaving.abort()
  await destroyed.promise
  expect(played).toEqual(['guest'])
})

test('a bad ticket has its own error, and without a ticket a key is required', async () => {
  expect((await fetch(`${base}/toys/play?ticket=bad`)).status).toBe(404)
  expect((await fetch(`${base}/toys/play`)).status).toBe(401)
})
