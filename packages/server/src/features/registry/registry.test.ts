import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type Answer, aWorld, codeOf, countByStatus, type Org, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

const snapshot = {
  host: 'API.Example.com',
  method: 'get',
  routePattern: '/weather/:city',
  amount: '0.010',
  protocol: 'x402',
}

/** 900 characters, 2,700 bytes, that no compression makes short. */
const wide = Array.from({ length: 900 }, (_, at) => String.fromCodePoint(0x4e00 + ((at * 7_919) % 20_000))).join('')

function see(org: Org, changes: Record<string, unknown> = {}, key = org.testKey): Promise<Answer> {
  return world.call(key, 'POST', '/registry/snapshots', { ...snapshot, ...changes })
}

async function routesOf(org: Org, query = '', key = org.testKey): Promise<Answer['list']> {
  const { status, list } = await world.call(key, 'GET', `/registry/routes${query}`)
  expect(status).toBe(200)
  return list
}

async function onlyRoute(org: Org): Promise<Record<string, unknown>> {
  const [route, ...others] = await routesOf(org)
  expect(others).toEqual([])
  return route ?? {}
}

const param = (name: string, more: Record<string, unknown> = {}) => ({ name, type: 'string', required: false, ...more })

test('a snapshot is accepted and is a route from then on', async () => {
  const org = await world.organisation()
  const accepted = await see(org, { queryParams: [param('units', { example: 'metric' })] })
  expect([accepted.status, accepted.body]).toEqual([202, { accepted: true }])
  const route = await onlyRoute(org)
  expect(route).toEqual({
    id: expect.stringMatching(/^reg_[0-9a-z]{26}$/),
    host: 'api.example.com',
    method: 'GET',
    routePattern: '/weather/{id}',
    headers: [],
    queryParams: [param('units', { example: 'metric' })],
    bodyParams: [],
    bodyContentType: null,
    amount: '0.01',
    protocol: 'x402',
    protocols: ['x402'],
    paymentLogId: null,
    isPublic: false,
    snapshotCount: 1,
    createdAt: expect.stringMatching(/Z$/),
    lastSeenAt: route.createdAt,
  })
  expect((await world.call(org.testKey, 'GET', `/registry/routes/${route.id}`)).body).toEqual(route)
})

test('further reports move a public route forward in the list once an hour, and a private one once a minute', async () => {
  const org = await world.organisation()
  await see(org)
  const { id } = await onlyRoute(org)
  const isMovedAfter = async (minutes: number) => {
    const ago = new Date(Date.now() - minutes * 60_000)
    await world.database.db.run(sql`update registry_routes set last_seen_at = ${ago} where organisation_id = ${org.id}`)
    await see(org)
    return (await onlyRoute(org)).lastSeenAt !== ago.toISOString()
  }
  expect([await isMovedAfter(0.5), await isMovedAfter(1), await isMovedAfter(-1)]).toEqual([false, true, false])
  await world.call(org.testKey, 'PATCH', `/registry/routes/${id}`, { isPublic: true })
  expect([await isMovedAfter(58), await isMovedAfter(60), await isMovedAfter(-1)]).toEqual([false, true, false])
})

test.each(['host', 'method', 'routePattern', 'amount', 'protocol'])(
  'a snapshot without %s is refused',
  async (field) => {
    const org = await world.organisation()
    const refused = await see(org, { [field]: undefined })
    expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
    expect(refused.body.errors).toEqual([expect.objectContaining({ path: `/${field}` })])
    expect(await routesOf(org)).toEqual([])
  },
)

test.each([
  ['a host with a path', { host: 'api.example.com/x' }],
  ['a host with credentials', { host: 'me:secret@example.com' }],
  ['a host with a query', { host: 'example.com?x' }],
  ['a host of spaces', { host: 'exa mple.com' }],
  ['a port that is none', { host: 'example.com:99999' }],
  ['a method of other letters', { method: 'GET /' }],
  ['a pattern that is a whole URL', { routePattern: 'https://example.com/x' }],
  ['a pattern that is too long', { routePattern: `/${'x'.repeat(2_048)}` }],
  ['a pattern with too many bytes for an index', { routePattern: `/${wide}` }],
  ['a pattern with too many parameters', { routePattern: '/1'.repeat(33) }],
  ['a negative amount', { amount: '-1' }],
  ['an amount with an exponent', { amount: '1e3' }],
  ['an amount as a number', { amount: 0.01 }],
  ['a protocol that is not spoken', { protocol: 'ach' }],
  ['65 parameters', { queryParams: Array.from({ length: 65 }, (_, index) => param(`p${index}`)) }],
  ['an example that is an object', { bodyParams: [param('a', { example: { password: 'x' } })] }],
  ['a parameter with another member', { headers: [param('a', { pattern: 'x' })] }],
  ['a payment log id that can be none', { paymentLogId: 'pay_01h455vb4pex5vsknk084sn02q' }],
])('%s is refused, and nothing is registered', async (_case, changes) => {
  const org = await world.organisation()
  expect((await see(org, changes)).status).toBe(422)
  expect(await routesOf(org)).toEqual([])
})

test('the same route with other identifiers, letter case of the host, slashes and queries is one updated row', async () => {
  const org = await world.organisation()
  await see(org, { routePattern: '/users/123?x=1', amount: '1', queryParams: [param('x')] })
  const before = await onlyRoute(org)
  await see(org, { routePattern: '//users/456/', host: 'api.EXAMPLE.com:443', amount: '2', protocol: 'mpp' })
  await see(org, { routePattern: '/users/[id]', method: 'Get', amount: '3', queryParams: [param('y')] })
  const after = await onlyRoute(org)
  expect(after).toMatchObject({
    id: before.id,
    routePattern: '/users/{id}',
    amount: '3',
    protocol: 'x402',
    protocols: ['x402', 'mpp'],
    snapshotCount: 3,
    queryParams: [param('y'), param('x')],
    createdAt: before.createdAt,
  })
  await see(org, { routePattern: '/users/1', method: 'POST' })
  await see(org, { routePattern: '/users/1', host: 'other.example.com' })
  expect(await routesOf(org)).toHaveLength(3)
})

test('a route keeps at most 64 parameters of a kind, those that were seen last', async () => {
  const org = await world.organisation()
  const many = (from: number) => Array.from({ length: 40 }, (_, index) => param(`p${from + index}`))
  await see(org, { queryParams: many(0) })
  await see(org, { queryParams: many(100) })
  const { queryParams } = await onlyRoute(org)
  const names = z.array(z.looseObject({ name: z.string() })).parse(queryParams)
  expect(names).toHaveLength(64)
  expect(names.slice(0, 40).map(({ name }) => name)).toEqual(many(100).map(({ name }) => name))
})

test('fifty parallel snapshots of one route are one row that counts all fifty', async () => {
  const org = await world.organisation()
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      world.call(
        org.testKey,
        'POST',
        '/registry/snapshots',
        { ...snapshot, routePattern: `/users/${index}`, queryParams: [param(`q${index}`)] },
        index % 2 === 0 ? { 'idempotency-key': `snapshot-${index}` } : {},
      ),
    ),
  )
  expect(countByStatus(answers)).toEqual({ 202: 50 })
  const route = await onlyRoute(org)
  expect(route.snapshotCount).toBe(50)
  expect(route.queryParams).toHaveLength(50)
})

test('a snapshot sent again with its Idempotency-Key counts once', async () => {
  const org = await world.organisation()
  const send = () => world.call(org.testKey, 'POST', '/registry/snapshots', snapshot, { 'idempotency-key': 'one' })
  expect((await send()).status).toBe(202)
  const again = await send()
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([202, 'true'])
  expect((await onlyRoute(org)).snapshotCount).toBe(1)
})

test('no example of a parameter named like a credential reaches the database, in header, query or body', async () => {
  const org = await world.organisation()
  const secret = (name: string) => param(name, { example: `leak-of-${name}` })
  await see(org, {
    headers: [secret('Authorization'), secret('X-Api-Key'), param('Accept-Language', { example: 'nb' })],
    queryParams: [secret('access_token'), param('city', { example: 'Oslo' })],
    bodyParams: [secret('password'), param('hours', { example: 6 })],
  })
  const { stored } = await world.database.db.one(
    z.object({ stored: z.string() }),
    sql`select registry_routes::text as stored from registry_routes where organisation_id = ${org.id}`,
  )
  expect(stored).not.toContain('leak')
  expect(await onlyRoute(org)).toMatchObject({
    headers: [param('authorization'), param('x-api-key'), param('accept-language', { example: 'nb' })],
    queryParams: [param('access_token'), param('city', { example: 'Oslo' })],
    bodyParams: [param('password'), param('hours', { example: 6 })],
  })
})

test('a snapshot may name the caller’s own payment log, and no other’s', async () => {
  const org = await world.organisation()
  const other = await world.organisation()
  const wallet = await world.wallet(org)
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: wallet.id }
  expect((await world.call(org.testKey, 'POST', '/payments/verify', body)).status).toBe(200)
  const [log] = (await world.call(org.testKey, 'GET', '/payments/logs')).list
  expect((await see(org, { paymentLogId: log?.id })).status).toBe(202)
  expect((await onlyRoute(org)).paymentLogId).toBe(log?.id)
  for (const stranger of [
    await see(other, { paymentLogId: log?.id }),
    await see(org, { paymentLogId: log?.id }, org.liveKey),
  ])
    expect([stranger.status, codeOf(stranger)]).toEqual([422, 'payment-log-not-found'])
  expect(await routesOf(other)).toEqual([])
})

test('routes are listed newest first, page by page, each exactly once', async () => {
  const org = await world.organisation()
  for (let index = 0; index < 7; index++) await see(org, { routePattern: `/route${index}` })
  const seen: unknown[] = []
  let path = '/registry/routes?limit=3&host=api.example.com'
  while (path !== '') {
    const { list, headers } = await world.call(org.testKey, 'GET', path)
    seen.push(...list.map((route) => route.routePattern))
    path = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1] ?? ''
  }
  expect(seen).toEqual([6, 5, 4, 3, 2, 1, 0].map((index) => `/route${index}`))
})

test('only routes that match every filter are listed', async () => {
  const org = await world.organisation()
  await see(org, { routePattern: '/cheap', amount: '0.01' })
  await see(org, { routePattern: '/dear_100%', amount: '10', protocol: 'mpp', method: 'POST' })
  await see(org, { routePattern: '/both', amount: '9.99' })
  await see(org, { routePattern: '/both', amount: '9.99', protocol: 'mpp' })
  await see(org, { routePattern: '/cheap', host: 'other.example.com:8080' })
  const found = async (query: string) =>
    (await routesOf(org, query)).map(({ host, routePattern }) => `${host}${routePattern}`)
  const api = (path: string) => `api.example.com${path}`
  expect(await found('?host=Other.example.com:8080')).toEqual(['other.example.com:8080/cheap'])
  expect(await found('?protocol=mpp')).toEqual([api('/both'), api('/dear_100%')])
  expect(await found('?protocol=x402&host=api.example.com')).toEqual([api('/both'), api('/cheap')])
  expect(await found('?maxAmount=9.99')).toEqual(['other.example.com:8080/cheap', api('/both'), api('/cheap')])
  expect(await found('?maxAmount=0.009')).toEqual([])
  expect(await found('?q=R_100%25')).toEqual([api('/dear_100%')])
  expect(await found('?q=_')).toEqual([api('/dear_100%')])
  expect(await found('?q=POST%20api')).toEqual([api('/dear_100%')])
  expect(await found('?q=CHEAP&host=api.example.com')).toEqual([api('/cheap')])
})

test('a route is seen and changed by its own organisation and environment alone', async () => {
  const org = await world.organisation()
  const other = await world.organisation()
  await see(org)
  const { id } = await onlyRoute(org)
  for (const key of [other.testKey, other.liveKey, org.liveKey]) {
    expect(await routesOf(org, '', key)).toEqual([])
    for (const [method, body] of [['GET'], ['PATCH', { isPublic: true }]] as const) {
      const response = await world.call(key, method, `/registry/routes/${id}`, body)
      expect([response.status, codeOf(response)]).toEqual([404, 'registry-route-not-found'])
    }
  }
  await see(org, {}, org.liveKey)
  expect((await onlyRoute(org)).snapshotCount).toBe(1)
})

test('above ten thousand routes, the private one that was seen longest ago is deleted', async () => {
  const org = await world.organisation('pro')
  await see(org, { routePattern: '/public' })
  const { id } = await onlyRoute(org)
  await world.call(org.testKey, 'PATCH', `/registry/routes/${id}`, { isPublic: true })
  await see(org, { routePattern: '/oldest' })
  await world.database.db.run(sql`
    insert into registry_routes select 'reg_0000000000000000000000' || lpad(n::text, 4, '0'), organisation_id, environment, host, method,
      '/filler' || n, headers, query_params, body_params, body_content_type, amount, protocol, protocols, payment_log_id, false, 1,
      created_at, last_seen_at + interval '1 ms'
    from registry_routes, generate_series(1, 9998) n where organisation_id = ${org.id} and route_pattern = '/oldest'`)
  await see(org, { routePattern: '/newest' })
  const rest = await world.database.db.many(
    z.object({ routePattern: z.string() }),
    sql`select route_pattern from registry_routes where organisation_id = ${org.id} and route_pattern not like '/filler%' order by 1`,
  )
  expect(rest.map(({ routePattern }) => routePattern)).toEqual(['/newest', '/public'])
  const kept = sql`select count(*) as count from registry_routes where organisation_id = ${org.id}`
  expect((await world.database.db.one(z.object({ count: z.bigint() }), kept)).count).toBe(10_000n)
})

test.each([
  ['hobby', 100, 100],
  ['enterprise', 10_001, 10_002],
] as const)('the plan %s: of %i routes and another one %i stay', async (plan, before, after) => {
  const org = await world.organisation(plan)
  await see(org, { routePattern: '/oldest' })
  await world.database.db.run(sql`
    insert into registry_routes select 'reg_' || lpad((n + ${before * 100}::integer)::text, 26, '0'), organisation_id, environment, host, method,
      '/filler' || n, headers, query_params, body_params, body_content_type, amount, protocol, protocols, payment_log_id, false, 1,
      created_at, last_seen_at + interval '1 ms'
    from registry_routes, generate_series(1, ${before - 1}::integer) n where organisation_id = ${org.id}`)
  await see(org, { routePattern: '/newest' })
  const kept = sql`select count(*) as count, count(*) filter (where route_pattern = '/newest') as newest from registry_routes where organisation_id = ${org.id}`
  const Kept = z.object({ count: z.bigint(), newest: z.bigint() })
  expect(await world.database.db.one(Kept, kept)).toEqual({ count: BigInt(after), newest: 1n })
})

test('of a hundred private routes, one that was reported again within the hour is not the next to be deleted', async () => {
  const org = await world.organisation('hobby')
  for (const routePattern of ['/used', '/unused']) await see(org, { routePattern })
  await world.database.db.run(sql`
    update registry_routes set last_seen_at = last_seen_at - interval '2 minutes' where organisation_id = ${org.id}`)
  await see(org, { routePattern: '/used' })
  await world.database.db.run(sql`
    insert into registry_routes select 'reg_' || lpad((n + 900000)::text, 26, '0'), organisation_id, environment, host, method,
      '/filler' || n, headers, query_params, body_params, body_content_type, amount, protocol, protocols, payment_log_id, false, 1,
      created_at, last_seen_at + interval '1 ms'
    from registry_routes, generate_series(1, 98) n where organisation_id = ${org.id} and route_pattern = '/used'`)
  await see(org, { routePattern: '/new' })
  expect((await routesOf(org, '?q=used')).map(({ routePattern }) => routePattern)).toEqual(['/used'])
})
