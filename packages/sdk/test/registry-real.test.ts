import { createServer } from 'node:http'
import express from 'express'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import { createPurser } from '../src/index.ts'
import { type Fault, payMiddleware, walletMiddleware } from '../src/middleware/express.ts'
import { close, listen } from './fake-purser.ts'

let world: World
let org: Org
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
})
afterAll(() => world?.stop())

const stub = { 'X-PAYMENT': 'stub_payment_accepted' }

test('what a middleware reports of the wildest paid calls is what the registry takes, and lists as one route', async () => {
  const purser = createPurser({ apiKey: org.testKey, baseUrl: world.base })
  const { id: walletId } = await world.wallet(org)
  const faults: Fault[] = []
  const app = express()
  const options = { apiKey: org.testKey, baseUrl: world.base, walletId }
  app.use(express.json(), walletMiddleware({ ...options, onFault: (fault) => void faults.push(fault) }))
  app.post('/users/:id', payMiddleware({ price: '0.0100' }), (_req, res) => void res.json({}))
  app.all('/{*rest}', payMiddleware({ price: '0.02' }), (_req, res) => void res.json({}))
  const server = createServer(app)
  const url = await listen(server)

  const wild = Array.from({ length: 40 }, (_, index) => `p${index}x\u{1f600}=1`).join('&')
  const addresses = [`/users/7?${wild}`, '/%20/..%2f..//ü?a[b]=1&&=&a=2', '/', '//', '/users/:id/{x}']
  const body = JSON.stringify({ 'a\u0000': 1, '\ud800': 2, __proto__x: 3, constructor: 4, city: 'Oslo', '': 5 })
  const headers = { ...stub, 'content-type': 'application/json; charset=utf-8', 'x-own': 'value' }
  for (const address of addresses)
    expect((await fetch(url + address, { method: 'POST', headers, body })).status, address).toBe(200)
  expect((await fetch(`${url}/users/8`, { method: 'POST', headers, body: '{}' })).status).toBe(200)
  expect((await fetch(`${url}/last`, { headers: stub })).status).toBe(200)

  const listed = () => purser.registry.routes.list().toArray({ limit: 100 })
  await expect.poll(async () => (await listed()).map(({ routePattern }) => routePattern)).toContain('/last')
  await close(server)
  expect(faults).toEqual([])
  const users = (await listed()).filter(({ routePattern }) => routePattern === '/users/{id}')
  expect(users).toEqual([
    expect.objectContaining({ host: new URL(url).host, method: 'POST', amount: '0.01', snapshotCount: 1 }),
  ])
  expect(users[0]?.bodyParams.map(({ name }) => name)).toEqual(['__proto__x', 'constructor', 'city'])
  expect(users[0]?.headers.map(({ name }) => name)).toEqual(['x-own'])
})

test('the client registers a route, finds it, makes it public and finds it in the discovery', async () => {
  const purser = createPurser({ apiKey: org.testKey, baseUrl: world.base })
  const snapshot = {
    host: 'sdk.example.com',
    method: 'GET',
    routePattern: '/rates/:pair',
    amount: '0.5',
    protocol: 'mpp',
  } as const
  expect(await purser.registry.snapshots.create(snapshot)).toEqual({ accepted: true })
  const [found] = await purser.registry.routes
    .list({ host: 'sdk.example.com', protocol: 'mpp', maxAmount: '0.5', q: 'RATES' })
    .toArray({ limit: 2 })
  expect(found).toMatchObject({ routePattern: '/rates/{id}', isPublic: false })
  const id = found?.id ?? ''
  expect(await purser.registry.routes.update(id, { isPublic: true })).toEqual({ ...found, isPublic: true })
  expect(await purser.registry.routes.get(id)).toEqual({ ...found, isPublic: true })
  const { items } = await purser.facilitator.resources()
  expect(items.map(({ resource }) => resource)).toContain('https://sdk.example.com/rates/{id}')
})
