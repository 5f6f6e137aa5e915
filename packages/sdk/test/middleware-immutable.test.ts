import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { payMiddleware, paymentOf, walletMiddleware } from '../src/middleware/hono.ts'
import { paymentOf as nextPaymentOf, withPayment } from '../src/middleware/next.ts'
import { apiKey, type FakePurser, startFakePurser } from './fake-purser.ts'
import { v2 } from './stage.ts'

let fake: FakePurser
beforeAll(async () => {
  fake = await startFakePurser()
})
afterAll(() => fake?.stop())
beforeEach(() => {
  fake.seen.length = 0
  fake.released.length = 0
})

const wallet = () => ({
  apiKey,
  baseUrl: fake.baseUrl,
  walletId: 'byw_1',
  publicUrl: 'http://shop.test',
})

function immutable(): never {
  throw new TypeError("Can't modify immutable headers.")
}

/** A paid request whose headers cannot be changed, as in Cloudflare Workers. */
function paidRequest(headers: Readonly<Record<string, string>>): Request {
  const request = new Request('http://shop.test/paid', {
    method: 'POST',
    body: 'question',
    headers: { ...v2(), 'content-type': 'text/plain', ...headers },
  })
  return Object.defineProperty(request, 'headers', {
    value: Object.assign(new Headers(request.headers), { delete: immutable, set: immutable, append: immutable }),
  })
}

const seen = ['if-none-match', 'if-match', 'content-type']

test.each([
  ['without a condition', {}],
  ['with conditions', { 'if-none-match': '*', 'if-match': '"a"' }],
])('a Hono request %s whose headers are immutable and whose body was read is sold', async (_, headers) => {
  const app = new Hono()
  app.use(walletMiddleware(wallet()), async (c, next) => {
    await c.req.text()
    await next()
  })
  app.post('/paid', payMiddleware({ price: '0.01' }), async (c) =>
    c.json({
      body: await c.req.text(),
      isUsed: c.req.raw.bodyUsed,
      headers: seen.map((name) => c.req.header(name) ?? null),
      paid: paymentOf(c) !== undefined,
    }),
  )
  const sold = await app.fetch(paidRequest(headers))
  expect([sold.status, await sold.json()]).toEqual([
    200,
    { body: 'question', isUsed: true, headers: [null, null, 'text/plain'], paid: true },
  ])
  expect(fake.calls('/settle')).toHaveLength(1)
})

test.each([
  ['whose body was read', true],
  ['whose body was not read', false],
])('a Next request with conditions, %s and whose headers are immutable, is sold', async (_, isRead) => {
  const sell = withPayment({ ...wallet(), price: '0.01' }, async (request: Request) =>
    Response.json({
      body: request.bodyUsed ? 'used' : await request.text(),
      headers: seen.map((name) => request.headers.get(name)),
      paid: nextPaymentOf(request) !== undefined,
    }),
  )
  const request = paidRequest({ 'if-none-match': '*', 'if-match': '"a"' })
  if (isRead) await request.text()
  const sold = await sell(request, {})
  expect([sold.status, await sold.json()]).toEqual([
    200,
    { body: isRead ? 'used' : 'question', headers: [null, null, 'text/plain'], paid: true },
  ])
  expect(fake.calls('/settle')).toHaveLength(1)
})

test.each([
  [
    'Hono',
    () => {
      const app = new Hono()
      app.onError((_, c) => c.text('failed', 500))
      app.post('/paid', walletMiddleware(wallet()), payMiddleware({ price: '0.01' }), (c) => c.text('goods'))
      return async (request: Request) => app.fetch(request)
    },
  ],
  [
    'Next',
    () => {
      const sell = withPayment({ ...wallet(), price: '0.01' }, () => new Response('goods'))
      return (request: Request) => sell(request, {}).catch(() => new Response('failed', { status: 500 }))
    },
  ],
])('a fault of %s between the verification and the handler releases the payment', async (_, open) => {
  const request = paidRequest({ 'if-none-match': '*' })
  Object.assign(request.headers, { has: immutable })
  expect((await open()(request)).status).toBe(500)
  await vi.waitFor(() => expect(fake.released).toHaveLength(1))
  expect(fake.calls('/settle')).toHaveLength(0)
})

test('a Hono handler that throws what is not an error releases the payment', async () => {
  const app = new Hono()
  app.post('/paid', walletMiddleware(wallet()), payMiddleware({ price: '0.01' }), () => {
    throw 'a text'
  })
  await expect(async () => app.fetch(paidRequest({}))).rejects.toBe('a text')
  await vi.waitFor(() => expect(fake.released).toHaveLength(1))
})
