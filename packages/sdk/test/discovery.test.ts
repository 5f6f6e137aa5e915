import { createServer, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { createAdaptorServer } from '@hono/node-server'
import express, { type Request as ExpressRequest } from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { DiscoveryDocument, PaymentInfo, validate } from 'mppx/discovery'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { aWorld, type DevChain, type Org, startChain, type World } from '../../server/test/world.ts'
import { createPurser } from '../src/index.ts'
import * as onExpress from '../src/middleware/express.ts'
import * as onFastify from '../src/middleware/fastify.ts'
import * as onHono from '../src/middleware/hono.ts'
import * as onNext from '../src/middleware/next.ts'
import { close, listen } from './fake-purser.ts'

let base: DevChain
let world: World
let org: Org
let wallet: onExpress.WalletOptions
beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [base] })
  org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  wallet = { apiKey: org.testKey, baseUrl: world.base, walletId, registry: false }
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
})

const info = { title: 'Weather', version: '2.1.0' }
const serviceInfo = { categories: ['data'], docs: { homepage: 'https://weather.example.com' } }
const requestBody = {
  content: {
    'application/json': { schema: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } } },
  },
}
const city = { name: 'city', in: 'path', required: true, schema: { type: 'string' }, example: 'Lima' }

/** The routes that each shop sells: with a fixed price, by both protocols or one, and with a price by the request. */
function routesOf<H extends object>(pay: Record<'fixed' | 'byRequest' | 'x402Only', H>): onExpress.DiscoveryConfig {
  return {
    info,
    serviceInfo,
    routes: [
      { method: 'GET', path: '/forecast/:city', handler: pay.fixed, parameters: [city] },
      { method: 'POST', path: '/reports', handler: pay.byRequest, summary: 'A report', requestBody },
      { method: 'GET', path: '/map', handler: pay.x402Only },
    ],
  }
}

const fixed = { price: '0.01', description: 'The weather of a city' }
const x402Only = { price: '0.05', protocols: ['x402'] } as const

interface Shop {
  readonly url: string
  readonly close: () => Promise<unknown>
}

async function served(fetch: (request: Request) => Response | Promise<Response>): Promise<Shop> {
  const server = createAdaptorServer({ fetch })
  if (!('closeAllConnections' in server)) throw new Error('not an HTTP/1 server')
  return { url: await listen(server), close: () => close(server) }
}

const shops: Record<string, () => Promise<Shop>> = {
  express: async () => {
    const byRequest = { price: (req: ExpressRequest) => (req.query.long === undefined ? '0.1' : '0.3') }
    const pay = {
      fixed: onExpress.payMiddleware(fixed),
      byRequest: onExpress.payMiddleware(byRequest),
      x402Only: onExpress.payMiddleware(x402Only),
    }
    const app = express()
    app.use(onExpress.walletMiddleware(wallet))
    app.get('/forecast/:city', pay.fixed, (_req, res) => void res.json({ sky: 'clear' }))
    app.post('/reports', pay.byRequest, (_req, res) => void res.json({}))
    app.get('/map', pay.x402Only, (_req, res) => void res.json({}))
    app.get('/openapi.json', onExpress.discovery(routesOf(pay)))
    const server = createServer(app)
    return { url: await listen(server), close: () => close(server) }
  },
  fastify: async () => {
    const pay = {
      fixed: onFastify.payHook(fixed),
      byRequest: onFastify.payHook({ price: () => '0.1' }),
      x402Only: onFastify.payHook(x402Only),
    }
    const app = Fastify()
    await app.register(onFastify.walletPlugin, wallet)
    app.get('/openapi.json', onFastify.discovery(routesOf(pay)))
    return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() }
  },
  hono: async () => {
    const pay = {
      fixed: onHono.payMiddleware(fixed),
      byRequest: onHono.payMiddleware({ price: () => '0.1' }),
      x402Only: onHono.payMiddleware(x402Only),
    }
    const app = new Hono()
    app.use(onHono.walletMiddleware(wallet))
    app.get('/openapi.json', onHono.discovery(routesOf(pay)))
    return served((request) => app.fetch(request))
  },
  next: async () => {
    const sold = () => Response.json({})
    const pay = {
      fixed: onNext.withPayment({ ...wallet, ...fixed }, sold),
      byRequest: onNext.withPayment({ ...wallet, price: () => '0.1' }, sold),
      x402Only: onNext.withPayment({ ...wallet, ...x402Only }, sold),
    }
    const GET = onNext.discovery(routesOf(pay))
    return served(GET)
  },
}

describe.each(Object.keys(shops))('%s', (name) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await (shops[name]?.() ?? Promise.reject(new Error(name)))
  })
  afterAll(() => shop?.close())

  test('mppx reads the document of its paid routes, with the offers that their 402 has', async () => {
    const response = await fetch(`${shop.url}/openapi.json`)
    expect([response.status, response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
      200,
      expect.stringMatching(/^application\/json/),
      'public, max-age=300',
    ])
    const document: unknown = await response.json()
    expect(validate(document)).toEqual([])
    const { paths, ...head } = DiscoveryDocument.parse(document)
    expect(head).toMatchObject({ openapi: '3.1.0', info, 'x-service-info': serviceInfo })
    expect(Object.keys(paths ?? {})).toEqual(['/forecast/{city}', '/reports', '/map'])
    const usdc = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
    const offer = { intent: 'charge', method: 'evm', currency: usdc }
    const { get } = paths?.['/forecast/{city}'] ?? {}
    expect(get).toMatchObject({ summary: fixed.description, parameters: [city], responses: { 402: {} } })
    expect(get?.['x-payment-info']).toEqual({ offers: [{ ...offer, amount: '10000', description: fixed.description }] })
    const { post } = paths?.['/reports'] ?? {}
    expect(post).toMatchObject({ summary: 'A report', requestBody })
    expect(post?.['x-payment-info']).toEqual({ offers: [{ ...offer, amount: null }] })
    const map = Object(document).paths['/map'].get['x-payment-info']
    expect(map).toEqual({ price: { mode: 'fixed', currency: 'USD', amount: '0.05' }, protocols: [{ x402: {} }] })
    expect(PaymentInfo.parse(map).offers).toHaveLength(1)
  })
})

test('without publicUrl the title is the host of each caller, and a caller’s host changes nothing for others', async () => {
  const pay = onExpress.payMiddleware(fixed)
  const app = express()
  app.use(onExpress.walletMiddleware(wallet))
  app.get('/openapi.json', onExpress.discovery({ routes: [{ method: 'GET', path: '/forecast', handler: pay }] }))
  const server = createServer(app)
  const url = await listen(server)
  const titleFor = (host: string) =>
    new Promise((resolve, reject) => {
      const sent = request(`${url}/openapi.json`, { headers: { Host: host } }, async (response) => {
        const body = await json(response)
        resolve([response.statusCode, Object(body).info?.title])
      })
      sent.on('error', reject).end()
    })
  expect(await titleFor('[')).toEqual([400, undefined])
  expect(await titleFor('evil.example')).toEqual([200, 'evil.example'])
  expect(await titleFor('api.example.com')).toEqual([200, 'api.example.com'])
  await close(server)
})

test('mppx reads the routes of a host that an organisation made public in the registry', async () => {
  const purser = createPurser({ apiKey: org.testKey, baseUrl: world.base })
  for (const protocol of ['mpp', 'x402'] as const)
    await purser.registry.snapshots.create({
      host: 'api.example.com',
      method: 'GET',
      routePattern: `/${protocol}/:id`,
      amount: '0.5',
      protocol,
    })
  for await (const { id } of purser.registry.routes.list({ host: 'api.example.com' }))
    await purser.registry.routes.update(id, { isPublic: true })
  const response = await fetch(`${world.base}/registry/test/${org.id}/api.example.com/openapi.json`)
  const document: unknown = await response.json()
  expect(validate(document)).toEqual([])
  expect(Object.keys(DiscoveryDocument.parse(document).paths ?? {})).toEqual(['/mpp/{id}', '/x402/{id}'])
})

test('a route that nothing sells, and a mistyped member, are refused at start-up', () => {
  const pay = onExpress.payMiddleware({ price: '0.01' })
  const route = { method: 'GET', path: '/forecast', handler: pay }
  for (const [config, fault] of [
    [{ routes: [] }, 'routes is'],
    [{ routes: [{ ...route, handler: () => undefined }] }, 'handler is'],
    [{ routes: [{ ...route, path: 'forecast' }] }, 'path is "forecast"'],
    [{ routes: [{ ...route, method: '' }] }, 'method is ""'],
  ] as const)
    expect(() => onExpress.discovery(config)).toThrow(fault)
  const mistyped: object = { routes: [route], infos: info }
  expect(() => onExpress.discovery(mistyped as onExpress.DiscoveryConfig)).toThrow('infos is')
})
