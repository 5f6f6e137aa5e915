import { createServer, request } from 'node:http'
import express from 'express'
import Fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { payMiddleware, walletMiddleware } from '../src/middleware/express.ts'
import { payHook, walletPlugin } from '../src/middleware/fastify.ts'
import { apiKey, close, type FakePurser, listen, startFakePurser } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, stageOf } from './stage.ts'

/** As they are sent on the wire: `fetch` would resolve the steps first. */
const spellings = [
  ...['/a//../paid', '/a/%2F../paid', '/a/./../paid', '/a/../paid', '/%2e%2e/paid', '/a/%252e%252e/paid'],
  ...['//paid', '/paid/', '/paid//', '/./paid', '/PAID', '/%70aid', '/paid%0A', '/paid%20', '/paid;a=1'],
  ...['/pa%FFid', '/paid%FF', '/pa%id', '/paid%00', '/paid?%FF', 'http://shop.test/paid', 'http://shop.test//paid'],
]

function sendRaw(url: string, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const sent = request({ hostname, port, path, agent: false }, (response) => {
      response.setEncoding('utf8')
      let body = ''
      response.on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)

  test('no spelling of a path is served without a payment', async () => {
    for (const path of spellings) {
      const { status, body } = await sendRaw(at.shop.url, path)
      expect(status, path).toBeGreaterThanOrEqual(400)
      expect(body, path).not.toContain(goods.secret)
    }
    expect(at.shop.runs).toEqual([])
  })
})

/** Both frameworks match the path as it was sent; `URL` turns each of these into `/paid`. */
const detours = ['/item/..\\..\\paid', '/item/x/../../paid', '/item/%2e%2e/../paid', '/item/.%2E/paid']

type Open = (fake: FakePurser) => Promise<{ readonly url: string; readonly close: () => Promise<void> }>

/** A shop of two prices: 0.01 for each item, and 5.00 for `/paid`. */
const twoPrices: readonly (readonly [name: string, open: Open])[] = [
  [
    'express',
    async (fake) => {
      const app = express()
      app.use(walletMiddleware({ apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1', registry: false }))
      app.use('/item', payMiddleware({ price: '0.01' }))
      app.get('/paid', payMiddleware({ price: '5.00' }), (_req, res) => void res.json(goods))
      const server = createServer(app)
      return { url: await listen(server), close: () => close(server) }
    },
  ],
  [
    'fastify',
    async (fake) => {
      const app = Fastify()
      await app.register(walletPlugin, { apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1', registry: false })
      app.get('/item*', { onRequest: payHook({ price: '0.01' }) }, async () => ({}))
      app.get('/paid', { onRequest: payHook({ price: '5.00' }) }, async () => goods)
      await app.ready()
      return { url: await listen(app.server), close: () => close(app.server) }
    },
  ],
]

async function aShop(open: Open): Promise<{ readonly fake: FakePurser; readonly url: string }> {
  const fake = await startFakePurser()
  onTestFinished(() => fake.stop())
  const shop = await open(fake)
  onTestFinished(() => shop.close())
  return { fake, url: shop.url }
}

describe.each(twoPrices)('%s with two prices', (_name, open) => {
  test('a path that names one route and the URL of another gets no challenge', async () => {
    const { fake, url } = await aShop(open)
    for (const path of detours) expect((await sendRaw(url, path)).status, path).toBe(400)
    expect(fake.calls('/challenge')).toEqual([])
    expect((await sendRaw(url, '/item/..a')).status).toBe(402)
  })

  test('a challenge names no method, so that it promises its price to no other request of its URL', async () => {
    const { fake, url } = await aShop(open)
    expect((await sendRaw(url, '/paid')).status).toBe(402)
    expect(fake.calls('/challenge').map(({ body }) => body)).toEqual([
      { walletId: 'byw_1', resource: `${url}/paid`, price: '5.00' },
    ])
  })
})
