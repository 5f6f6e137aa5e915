import { createServer } from 'node:http'
import express from 'express'
import Fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import * as onExpress from '../src/middleware/express.ts'
import * as onFastify from '../src/middleware/fastify.ts'
import { apiKey, close, type Doing, listen, problem, startFakePurser } from './fake-purser.ts'
import { frameworks, mpp, stageOf, v2 } from './stage.ts'

const end = '/registry/snapshots'
const on = { wallet: { registry: true, publicUrl: 'https://api.example.com/v1/' } }

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)
  const snapshots = () => at.fake.calls(end).map(({ body }) => body)

  test('a paid call is reported to the registry with names and kinds alone', async () => {
    await at.open(on)
    const headers = { ...v2(), 'x-units': 'leak', cookie: 'leak=1' }
    expect((await at.buy(headers, '/paid?city=leak&days=3')).status).toBe(200)
    await expect.poll(snapshots).toEqual([
      {
        host: 'api.example.com',
        method: 'GET',
        routePattern: '/v1/paid',
        headers: [{ name: 'x-units', type: 'string', required: false }],
        queryParams: [
          { name: 'city', type: 'string', required: false },
          { name: 'days', type: 'number', required: false },
        ],
        bodyParams: [],
        amount: '0.01',
        protocol: 'x402',
      },
    ])
    expect(at.shop.faults).toEqual([])
  })

  test('a payment by MPP is reported as one', async () => {
    await at.open(on)
    expect((await at.buy({ authorization: mpp() })).status).toBe(200)
    await expect.poll(snapshots).toEqual([expect.objectContaining({ protocol: 'mpp', headers: [] })])
  })

  test('what was not paid for, not served or not settled is not reported', async () => {
    await at.open(on)
    at.fake.script('/settle', problem(409, 'settlement-failed'))
    expect((await at.buy({})).status).toBe(402)
    expect((await at.buy(v2())).status).toBe(402)
    expect((await at.buy(v2(), '/fails')).status).toBe(422)
    expect((await at.buy(v2(), '/throws')).status).toBe(500)
    expect((await fetch(`${at.shop.url}/paid`, { method: 'OPTIONS' })).status).toBe(204)
    at.fake.script('/settle', { status: 200, body: { txHash: '0x1', settledAt: '2026-11-21T00:00:02.000Z' } })
    expect((await at.buy(v2(), '/paid?last=1')).status).toBe(200)
    await expect.poll(snapshots).toHaveLength(1)
    expect(snapshots()[0]).toMatchObject({ queryParams: [{ name: 'last' }] })
  })

  const silences: [string, Doing][] = [
    ['hangs', 'hang'],
    ['breaks the connection', 'reset'],
    ['does not know it', problem(404, 'not-found')],
    ['refuses it', problem(422, 'validation-error')],
    ['answers in HTML', { status: 200, text: '<html>' }],
  ]

  test.each(silences)('paid calls are answered all the same when the registry %s', async (_case, doing) => {
    await at.open(on)
    at.fake.script(end, doing)
    for (let call = 0; call < 3; call++) {
      const response = await at.buy(v2())
      expect([response.status, await response.json()]).toEqual([200, { secret: 'the goods' }])
    }
    // Nobody has waited for it: it would have given up by now, and reported it.
    if (doing === 'hang') expect(at.shop.faults).toEqual([])
    await expect.poll(snapshots).toHaveLength(1)
    expect(at.shop.faults.filter(({ stage }) => stage !== 'registry')).toEqual([])
    if (doing !== 'hang') await expect.poll(() => at.shop.faults.map(({ stage }) => stage)).toEqual(['registry'])
  })

  test('registry: false sends no reports', async () => {
    await at.open({ wallet: { registry: false } })
    expect((await at.buy(v2())).status).toBe(200)
    await at.open(on)
    expect((await at.buy(v2())).status).toBe(200)
    await expect.poll(snapshots).toHaveLength(1)
    expect(snapshots()[0]).toMatchObject({ host: 'api.example.com' })
  })
})

const post = { method: 'POST', body: JSON.stringify({ city: 'Oslo', days: 3 }) }
const seenBody = {
  routePattern: '/orgs/{id}/reports/{id}',
  bodyContentType: 'application/json',
  bodyParams: [
    { name: 'city', type: 'string', required: false },
    { name: 'days', type: 'number', required: false },
  ],
}

test.each([true, false])(
  'the pattern of a router of Express is reported and no word of the address (sold before the router: %s)',
  async (isBefore) => {
    const fake = await startFakePurser()
    const app = express()
    const pay = onExpress.payMiddleware({ price: '0.01' })
    app.use(express.json(), onExpress.walletMiddleware({ apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1' }))
    const router = express.Router()
    const handlers: express.RequestHandler[] = [...(isBefore ? [] : [pay]), (_req, res) => void res.json({})]
    router.post('/:orgId/reports/:name', ...handlers)
    if (isBefore) app.use(pay)
    app.use('/orgs', (_req, _res, next) => next(), router)
    const server = createServer(app)
    const url = await listen(server)
    const headers = { ...v2(), 'content-type': 'application/json; charset=utf-8' }
    expect((await fetch(`${url}/orgs/acme/reports/summer`, { ...post, headers })).status).toBe(200)
    await expect.poll(() => fake.calls(end).map(({ body }) => body)).toEqual([expect.objectContaining(seenBody)])
    await close(server)
    await fake.stop()
  },
)

test('the pattern of a route of Fastify is reported and no word of the address', async () => {
  const fake = await startFakePurser()
  const app = Fastify()
  await app.register(onFastify.walletPlugin, { apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1' })
  app.post('/orgs/:orgId/reports/:name', { preHandler: onFastify.payHook({ price: '0.01' }) }, async () => ({}))
  await app.ready()
  const url = await listen(app.server)
  const headers = { ...v2(), 'content-type': 'application/json' }
  expect((await fetch(`${url}/orgs/acme/reports/summer`, { ...post, headers })).status).toBe(200)
  await expect.poll(() => fake.calls(end).map(({ body }) => body)).toEqual([expect.objectContaining(seenBody)])
  await close(app.server)
  await fake.stop()
})

test('a route behind a wildcard is reported by its address', async () => {
  const fake = await startFakePurser()
  const app = express()
  app.use(onExpress.walletMiddleware({ apiKey, baseUrl: fake.baseUrl, walletId: 'byw_1' }))
  app.get('/files/*path', onExpress.payMiddleware({ price: '0.01' }), (_req, res) => void res.json({}))
  const server = createServer(app)
  const url = await listen(server)
  expect((await fetch(`${url}/files/2026/report.pdf`, { headers: v2() })).status).toBe(200)
  await expect.poll(() => fake.calls(end).map(({ body }) => body.routePattern)).toEqual(['/files/{id}/report.pdf'])
  await close(server)
  await fake.stop()
})
