import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { unauthorized } from './authenticate.ts'
import { dashboardPages } from './dashboard.ts'
import { createHttpServer, type HttpServer } from './server.ts'

const script = 'console.log("the dashboard")'
let database: TestDatabase
let server: HttpServer
let port: number
let directory: string
let outside: string

beforeAll(async () => {
  database = await freshDatabase()
  outside = mkdtempSync(path.join(os.tmpdir(), 'purser-dashboard-'))
  writeFileSync(path.join(outside, 'secret.txt'), 'a secret')
  directory = path.join(outside, 'dist')
  server = createHttpServer({
    deps: toyDeps(database.db),
    operations: [],
    pages: dashboardPages([directory]),
    authenticate: () => Promise.reject(unauthorized('nobody')),
    keyLimit: { perSecond: 1, burst: 1 },
    addressLimit: { perSecond: 1, burst: 1 },
    trustProxy: false,
  })
  port = (await server.listen(0, '127.0.0.1')).port
})

afterAll(async () => {
  await server.close()
  await database.drop()
  rmSync(outside, { recursive: true })
})

function build(index: string, at: number): void {
  mkdirSync(path.join(directory, 'assets'), { recursive: true })
  writeFileSync(path.join(directory, 'index.html'), index)
  writeFileSync(path.join(directory, 'theme.js'), 'document.title')
  writeFileSync(path.join(directory, 'assets', 'index-1a2b.js'), script)
  writeFileSync(path.join(directory, 'assets', 'index-1a2b.js.br'), brotliCompressSync(script))
  utimesSync(path.join(directory, 'index.html'), at, at)
}

interface Answer {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Returns the response bytes unchanged: `fetch` would normalize the path and decompress the body. */
function get(target: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: target, headers }, async (response) => {
      resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(await response.toArray()) })
    })
      .on('error', reject)
      .end()
  })
}

test('without a build the page says how to make one', async () => {
  const { status, headers, body } = await get('/dashboard')
  expect([status, headers['content-type']]).toEqual([503, 'text/plain; charset=utf-8'])
  expect(String(body)).toContain('npm run build:dashboard')
})

test('index.html answers for every address that the dashboard routes by itself, and a new build takes its place', async () => {
  build('<!doctype html><title>one</title>', 1_000)
  for (const target of [
    '/dashboard',
    '/dashboard/',
    '/dashboard/payments/pay_1?status=settled',
    '/dashboard/index.html',
  ]) {
    const { status, headers, body } = await get(target)
    expect([target, status, headers['content-type'], String(body)]).toEqual([
      target,
      200,
      'text/html; charset=utf-8',
      '<!doctype html><title>one</title>',
    ])
    expect(headers['cache-control']).toBe('no-cache')
  }
  build('<!doctype html><title>two</title>', 2_000)
  expect(String((await get('/dashboard')).body)).toContain('two')
})

test('no page loads from or sends to another origin, and no page has an inline script', async () => {
  build('<!doctype html>', 3_000)
  const { headers } = await get('/dashboard')
  const policy = new Map(
    String(headers['content-security-policy'])
      .split('; ')
      .map((directive) => [directive.split(' ')[0], directive.split(' ').slice(1)]),
  )
  expect(policy.get('default-src')).toEqual(["'self'"])
  expect(policy.get('connect-src')).toEqual(["'self'"])
  expect(policy.get('frame-ancestors')).toEqual(["'none'"])
  expect(policy.has('script-src') || policy.has('style-src')).toBe(false)
  expect(String(headers['content-security-policy'])).not.toMatch(/unsafe|https?:|\*/)
  expect(headers).toMatchObject({ 'referrer-policy': 'same-origin', 'x-content-type-options': 'nosniff' })
})

test('hashed files are kept forever, and compressed for those who take it', async () => {
  build('<!doctype html>', 4_000)
  const plain = await get('/dashboard/assets/index-1a2b.js')
  expect(String(plain.body)).toBe(script)
  expect(plain.headers).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'accept-encoding',
  })
  const packed = await get('/dashboard/assets/index-1a2b.js', { 'accept-encoding': 'gzip, br' })
  expect(packed.headers['content-encoding']).toBe('br')
  expect(String(brotliDecompressSync(packed.body))).toBe(script)
  const refused = await get('/dashboard/assets/index-1a2b.js', { 'accept-encoding': 'br;q=0' })
  expect(refused.headers['content-encoding']).toBeUndefined()
  expect((await get('/dashboard/theme.js')).headers['cache-control']).toBe('no-cache')
})

test('a file that the build has not is 404, and no path leads out of the build', async () => {
  build('<!doctype html>the page', 5_000)
  expect((await get('/dashboard/assets/index-old.js')).status).toBe(404)
  const ways = [
    '/dashboard/../secret.txt',
    '/dashboard/..%2fsecret.txt',
    '/dashboard/%2e%2e/secret.txt',
    '/dashboard/assets/../../secret.txt',
    '/dashboard/assets/..%2f..%2fsecret.txt',
    '/dashboard/..%5csecret.txt',
    `/dashboard/${encodeURIComponent(path.join(outside, 'secret.txt'))}`,
    '/dashboard/%00',
    '/dashboard/assets/index-1a2b.js%00.html',
  ]
  for (const target of ways) {
    const { status, body } = await get(target)
    expect([target, String(body)]).toEqual([target, expect.not.stringContaining('a secret')])
    expect([200, 400, 404, 429]).toContain(status)
  }
})

test('a page with many files is not cut short by the limit of requests of one address', async () => {
  build('<!doctype html>', 6_000)
  const answers = await Promise.all(Array.from({ length: 50 }, () => get('/dashboard/assets/index-1a2b.js')))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
})

test('files of the dashboard cost by their bytes: an address reads some 200 MB at once, whatever the limit of its requests', async () => {
  build('<!doctype html>', 6_000)
  writeFileSync(path.join(directory, 'assets', 'large-1a2b.js'), Buffer.alloc(16 * 1_048_576, 'x'))
  build('<!doctype html>', 7_000)
  const statuses: number[] = []
  for (let count = 0; count < 16; count += 1) {
    const response = await fetch(`http://127.0.0.1:${port}/dashboard/assets/large-1a2b.js`)
    await response.body?.cancel()
    statuses.push(response.status)
  }
  expect(statuses.indexOf(429)).toBeGreaterThan(10)
})
