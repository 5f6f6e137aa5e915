import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { listSoldRoutes } from './store.ts'

let world: World
let org: Org
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
})
afterAll(() => world?.stop())

async function aRoute(routePattern: string, more: Record<string, unknown> = {}): Promise<string> {
  const snapshot = { host: 'api.example.com', method: 'GET', routePattern, amount: '0.01', protocol: 'x402', ...more }
  await world.call(org.testKey, 'POST', '/registry/snapshots', snapshot)
  const [route] = (await world.call(org.testKey, 'GET', '/registry/routes?limit=1')).list
  return String(route?.id)
}

const publish = (id: string, isPublic = true) =>
  world.call(org.testKey, 'PATCH', `/registry/routes/${id}`, { isPublic })

async function read(place = `test/${org.id}/api.example.com`) {
  const response = await fetch(`${world.base}/registry/${place}/openapi.json`)
  return { status: response.status, headers: response.headers, document: Object(await response.json()) }
}

test('the routes that are public are described without a key, with the MPP offer of the currency that was paid', async () => {
  const { id: walletId } = await world.wallet(org)
  const stub = { protocol: 'x402', credential: 'stub_payment_accepted', walletId, price: '0.01' }
  const resource = 'https://api.example.com/users/1'
  expect((await world.call(org.testKey, 'POST', '/payments/verify', { ...stub, resource })).status).toBe(200)
  const [log] = (await world.call(org.testKey, 'GET', '/payments/logs?limit=1')).list
  const params = {
    headers: [{ name: 'x-units', type: 'string', required: false }, { name: 'content-type' }],
    queryParams: [{ name: 'long', type: 'boolean', required: true, example: true }],
    bodyParams: [{ name: 'city', type: 'string', required: true, example: 'Oslo' }],
    bodyContentType: 'application/json',
  }
  const offered = { method: 'POST', protocol: 'mpp', paymentLogId: log?.id, amount: '0.25', ...params }
  const [paid, plain, secret] = [
    await aRoute('/users/:id/orders/:order', offered),
    await aRoute('/map'),
    await aRoute('/hidden'),
  ]
  expect((await read()).status).toBe(404)
  for (const id of [paid, plain]) await publish(id)
  const { status, headers, document } = await read()
  expect([status, headers.get('cache-control'), headers.get('access-control-allow-origin')]).toEqual([
    200,
    'public, max-age=300',
    '*',
  ])
  expect(document).toMatchObject({ openapi: '3.1.0', servers: [{ url: 'https://api.example.com' }] })
  expect(Object.keys(document.paths)).toEqual(['/map', '/users/{id}/orders/{id2}'])
  expect(document.paths['/map'].get).toEqual({
    'x-payment-info': { price: { mode: 'fixed', currency: 'USD', amount: '0.01' }, protocols: [{ x402: {} }] },
    responses: { 200: expect.anything(), 402: { description: 'Payment Required' } },
  })
  const { post } = document.paths['/users/{id}/orders/{id2}']
  expect(post['x-payment-info']).toEqual({
    offers: [
      {
        intent: 'charge',
        method: 'evm',
        amount: '250000',
        currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        description: '0.25 USD on base-sepolia',
      },
    ],
  })
  expect(post.parameters.map((one: { name: string; in: string }) => `${one.in} ${one.name}`)).toEqual([
    'path id',
    'path id2',
    'query long',
    'header x-units',
  ])
  const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  expect(post.requestBody).toEqual({ content: { 'application/json': { schema } } })
  expect(JSON.stringify(document)).not.toMatch(/Oslo|hidden/)
  expect(secret).toMatch(/^reg_/)

  await publish(plain, false)
  expect(Object.keys((await read()).document.paths)).toEqual(['/users/{id}/orders/{id2}'])
})

test('a host, an organisation or an environment without public routes is unknown, and so is a suspended organisation', async () => {
  await publish(await aRoute('/seen'))
  expect((await read()).status).toBe(200)
  const other = await world.organisation()
  for (const place of [
    `test/${org.id}/other.example.com`,
    `live/${org.id}/api.example.com`,
    `prod/${org.id}/api.example.com`,
    `test/${other.id}/api.example.com`,
    'test/org_none/api.example.com',
    `test/${org.id}/%00`,
  ])
    expect((await read(place)).status, place).toBe(404)
  const suspend = (at: string | null) =>
    world.database.db.run(sql`
      update organisations set suspended_at = ${at}::timestamptz, suspension_reason = case when ${at}::text is null then null else 'abuse' end
      where id = ${org.id}`)
  await suspend('2026-11-01T00:00:00Z')
  expect((await read()).status).toBe(404)
  await suspend(null)
  expect((await read()).status).toBe(200)
})

/** Publishes routes at a host, each with as many parameters of each kind, in this order. */
async function publishMany(host: string, routes: number, params: number): Promise<void> {
  const ids = Array.from({ length: routes }, () => newId('reg', world.server.deps))
  const names = Array.from({ length: params }, (_, place) => `${String(place).padStart(3, '0')}${'n'.repeat(125)}`)
  const given = JSON.stringify(
    names.map((name) => ({ name, type: 'string', required: true, example: 'e'.repeat(512) })),
  )
  await world.database.db.run(sql`
    insert into registry_routes (id, organisation_id, environment, host, method, route_pattern, headers, query_params, body_params,
      body_content_type, amount, protocol, protocols, snapshot_count, is_public, created_at, last_seen_at)
    select id, ${org.id}, 'test', ${host}, 'GET', '/' || lpad(place::text, 4, '0'), ${given}::jsonb, ${given}::jsonb, ${given}::jsonb,
      null, 0.01, 'x402', array['x402'], 1, true, now(), now()
    from unnest(${ids}::text[]) with ordinality as given (id, place)`)
}

test('a document has at most a hundred routes and a mebibyte, and examples are not read for it', async () => {
  const pathsOf = async (host: string) => {
    const { document } = await read(`test/${org.id}/${host}`)
    return { paths: Object.keys(document.paths), bytes: JSON.stringify(document).length }
  }
  await publishMany('many.example.com', 110, 1)
  const many = await pathsOf('many.example.com')
  expect([many.paths.length, many.paths[0], many.paths.at(-1)]).toEqual([100, '/0001', '/0100'])
  await publishMany('large.example.com', 60, 64)
  const large = await pathsOf('large.example.com')
  expect(large.bytes).toBeLessThan(1_048_576)
  expect(large.bytes).toBeGreaterThan(900_000)
  const tenant = { organisationId: org.id, environment: 'test' as const }
  const [route] = await listSoldRoutes(world.database.db, tenant, 'large.example.com')
  expect(route?.headers.map(({ name }) => Number(name.slice(0, 3)))).toEqual(Array.from({ length: 64 }, (_, at) => at))
  expect(route?.headers[0]).toEqual({ name: expect.any(String), type: 'string', required: true })
})
