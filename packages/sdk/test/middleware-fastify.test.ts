import { PassThrough } from 'node:stream'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { payHook, paymentOf, walletPlugin } from '../src/middleware/fastify.ts'
import { apiKey, type FakePurser, problem, startFakePurser } from './fake-purser.ts'
import { header, v2 } from './stage.ts'

let fake: FakePurser
let app: FastifyInstance
beforeEach(async () => {
  fake = await startFakePurser()
  app = Fastify()
  const options = { apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1', registry: false, retry: { delayMsFirst: 1 } }
  await app.register(walletPlugin, options)
})
afterEach(async () => {
  await app.close()
  await fake.stop()
})

const paid = { onRequest: payHook({ price: '0.01' }) }

async function buy(path = '/'): Promise<Response> {
  const url = app.server.listening ? '' : await app.listen({ port: 0, host: '127.0.0.1' })
  return fetch((url || app.listeningOrigin) + path, { headers: v2() })
}

test('a handler that uses the raw response is buffered until payment like any other', async () => {
  app.get('/', paid, (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/plain', 'cache-control': 'public' })
    reply.raw.end('goods')
  })
  const response = await buy()
  expect([response.status, await response.text(), header(response, 'cache-control')]).toEqual([200, 'goods', 'private'])
  expect(header(response, 'payment-response')).not.toBe('')
  fake.script('/settle', problem(409, 'settlement-failed'))
  const unpaid = await buy()
  expect(unpaid.status).toBe(402)
  expect(await unpaid.text()).not.toContain('goods')
})

test('an answer withheld takes the headers of the handler with it and keeps those of hooks before', async () => {
  fake.script('/settle', problem(409, 'settlement-failed'))
  app.addHook('onRequest', async (_request, reply) => void reply.header('x-before', 'kept'))
  app.get('/', { preHandler: payHook({ price: '0.01' }) }, (_request, reply) =>
    reply.headers({ 'x-before': 'changed', 'set-cookie': 'ticket=secret', etag: '"goods"' }).send('goods'),
  )
  const response = await buy()
  expect([response.status, header(response, 'x-before')]).toEqual([402, 'kept'])
  expect(response.headers.getSetCookie()).toEqual([])
  expect(response.headers.has('etag')).toBe(false)
  expect(await response.json()).toEqual({ error: 'settlement_failed' })
})

test('hooks that change the response run before it is buffered', async () => {
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('x-sent', 'yes')
    return `${payload}!`
  })
  app.get('/', paid, async (request) => `goods of ${paymentOf(request)?.paymentId}`)
  const response = await buy()
  expect([await response.text(), header(response, 'x-sent')]).toEqual(['goods of pay_01!', 'yes'])
})

test('a stream that breaks off is not sold: nothing of it leaves and nothing is settled', async () => {
  app.get('/', paid, (_request, reply) => {
    const stream = new PassThrough()
    stream.write('half of the goods')
    reply.raw.once('pipe', () => setImmediate(() => stream.destroy(new Error('broke off'))))
    return reply.send(stream)
  })
  await expect(buy().then((response) => response.text())).rejects.toThrow(TypeError)
  expect(fake.calls('/verify')).toHaveLength(1)
  expect(fake.calls('/settle')).toHaveLength(0)
})

test('the plugin reaches the routes beside it and below it, and requests that Fastify injects', async () => {
  await app.register(async (child) => void child.get('/below', paid, async () => 'goods'))
  const unpaid = await app.inject('/below')
  expect([unpaid.statusCode, unpaid.headers['payment-required']]).toEqual([402, expect.any(String)])
  const sold = await app.inject({ url: '/below', headers: v2() })
  expect([sold.statusCode, sold.body]).toEqual([200, 'goods'])
  expect(fake.calls('/settle')).toHaveLength(1)
})

test('a paid route without walletPlugin before it is closed, not open', async () => {
  let runs = 0
  const bare = Fastify()
  bare.get('/', paid, async () => `run ${++runs}`)
  const response = await bare.inject('/')
  expect([response.statusCode, runs]).toEqual([500, 0])
})
