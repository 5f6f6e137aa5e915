import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type Org, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

const Listed = z.object({
  items: z.array(z.looseObject({ resource: z.string(), type: z.string(), accepts: z.array(z.unknown()) })),
  pagination: z.object({ limit: z.number(), offset: z.number(), total: z.number() }),
})

async function discovered(org: Org, query = '', key = org.testKey): Promise<z.output<typeof Listed>> {
  const { status, body } = await world.call(key, 'GET', `/facilitator/discovery/resources${query}`)
  expect(status).toBe(200)
  return Listed.parse(body)
}

async function aRoute(org: Org, routePattern: string, more: Record<string, unknown> = {}): Promise<string> {
  const snapshot = { host: 'api.example.com', method: 'GET', routePattern, amount: '0.01', protocol: 'x402', ...more }
  await world.call(org.testKey, 'POST', '/registry/snapshots', snapshot)
  const [route] = (await world.call(org.testKey, 'GET', '/registry/routes?limit=1')).list
  return String(route?.id)
}

function setPublic(org: Org, id: string, isPublic: boolean) {
  return world.call(org.testKey, 'PATCH', `/registry/routes/${id}`, { isPublic })
}

test('other organisations find a route while it is public, without its examples', async () => {
  const org = await world.organisation()
  const reader = await world.organisation()
  const queryParams = [{ name: 'city', type: 'string', required: true, example: 'Oslo' }]
  const id = await aRoute(org, '/weather/:day', { queryParams })
  expect((await discovered(reader)).pagination.total).toBe(0)

  const shown = await setPublic(org, id, true)
  expect([shown.status, shown.body]).toEqual([200, expect.objectContaining({ id, isPublic: true })])
  const { items, pagination } = await discovered(reader)
  expect(pagination.total).toBe(1)
  expect(items).toEqual([
    {
      resource: 'https://api.example.com/weather/{id}',
      type: 'http',
      x402Version: 2,
      accepts: [],
      lastUpdated: expect.stringMatching(/Z$/),
      metadata: {
        publisher: org.id,
        method: 'GET',
        price: { amount: '0.01', currency: 'USD' },
        protocols: ['x402'],
        input: {
          headers: [],
          queryParams: [{ name: 'city', type: 'string', required: true }],
          bodyParams: [],
          bodyContentType: null,
        },
      },
    },
  ])
  expect((await discovered(reader, '', reader.liveKey)).pagination.total).toBe(0)

  await aRoute(org, '/weather/:day')
  expect((await discovered(reader)).pagination.total).toBe(1)
  expect((await setPublic(org, id, false)).body.isPublic).toBe(false)
  expect((await discovered(reader)).items).toEqual([])
})

test('a route that is made private, reported and made public again keeps its place in the list for an hour', async () => {
  const [mover, other] = [await world.organisation(), await world.organisation()]
  const id = await aRoute(mover, '/mover')
  await setPublic(mover, id, true)
  await setPublic(other, await aRoute(other, '/other'), true)
  const pass = (minutes: number) =>
    world.database.db.run(sql`
      update registry_routes set last_seen_at = last_seen_at - ${minutes} * interval '1 minute', listed_at = listed_at - ${minutes} * interval '1 minute'
      where organisation_id in (${mover.id}, ${other.id})`)
  const order = async () => {
    const { items } = await discovered(mover)
    return items.flatMap(({ resource }) => /\/(?:mover|other)$/.exec(resource)?.[0] ?? [])
  }
  const moveUp = async () => {
    await setPublic(mover, id, false)
    await aRoute(mover, '/mover')
    await setPublic(mover, id, true)
  }
  expect(await order()).toEqual(['/other', '/mover'])
  await pass(30)
  await moveUp()
  expect(await order()).toEqual(['/other', '/mover'])
  await pass(31)
  await moveUp()
  expect(await order()).toEqual(['/mover', '/other'])
  await Promise.all([
    setPublic(mover, id, false),
    world.database.db.run(sql`delete from registry_routes where organisation_id = ${other.id}`),
  ])
})

test('filters on payments exclude public routes, as does a search for tools', async () => {
  const org = await world.organisation()
  const id = await aRoute(org, '/filtered')
  await setPublic(org, id, true)
  const found = async (query: string) => (await discovered(org, query)).pagination.total
  expect(await found('?type=http')).toBe(1)
  for (const query of ['?type=mcp', '?scheme=exact', '?network=eip155:84532', '?payTo=0x1', '?extensions=bazaar'])
    expect([query, await found(query)]).toEqual([query, 0])
  await setPublic(org, id, false)
})

test('pages list declared resources first and public routes after them, each exactly once', async () => {
  const org = await world.organisation()
  await world.database.db.run(sql`
    insert into discovered_resources (organisation_id, environment, resource, type, operation, x402_version, accepts, details, updated_at)
    select ${org.id}, 'test', 'https://declared.example.com/' || n, 'http', 'GET', 2, '[{"scheme":"exact"}]', '{}', now() from generate_series(1, 3) n`)
  for (const path of ['/one', '/two', '/three', '/four']) await setPublic(org, await aRoute(org, path), true)
  const whole = await discovered(org)
  expect(whole.items.map(({ accepts }) => accepts.length)).toEqual([1, 1, 1, 0, 0, 0, 0])
  for (const limit of [1, 2, 3, 4]) {
    const pages: string[] = []
    for (let offset = 0; offset < 8; offset += limit) {
      const { items, pagination } = await discovered(org, `?limit=${limit}&offset=${offset}`)
      expect(pagination).toEqual({ limit, offset, total: 7 })
      pages.push(...items.map(({ resource }) => resource))
    }
    expect(pages).toEqual(whole.items.map(({ resource }) => resource))
  }
})

test('the total counts up to 1,000 items after the page, and no more rows are read for it', async () => {
  const org = await world.organisation()
  const { db } = world.database
  const before = (await discovered(org)).pagination.total
  await db.run(sql`
    insert into discovered_resources (organisation_id, environment, resource, type, operation, x402_version, accepts, details, updated_at)
    select ${org.id}, 'test', 'https://many.example.com/' || n, 'http', 'GET', 2, '[{"scheme":"exact"}]', '{}', now() from generate_series(1, 1200) n`)
  await db.run(sql`
    insert into registry_routes (id, organisation_id, environment, host, method, route_pattern, headers, query_params, body_params, amount, protocol,
      protocols, snapshot_count, created_at, last_seen_at, is_public)
    select 'reg_' || lpad(n::text, 26, '0'), ${org.id}, 'test', 'many.example.com', 'GET', '/' || n, '[]', '[]', '[]', 0.01, 'x402', '{x402}', 1, now(),
      now(), true from generate_series(1, 1200) n`)
  const totalOf = async (offset: number) => (await discovered(org, `?limit=2&offset=${offset}`)).pagination.total
  const totals = await Promise.all([0, 150, 1_199, 2_398].map(totalOf))
  await db.run(sql`delete from discovered_resources where organisation_id = ${org.id}`)
  await db.run(sql`delete from registry_routes where organisation_id = ${org.id}`)
  expect(totals).toEqual([1_002, 1_152, 2_201, 2_400 + before])
})

test('two organisations that publish one host are both listed, each with its publisher, and neither changes or hides the other', async () => {
  const [owner, stranger] = [await world.organisation(), await world.organisation()]
  const host = 'shop.example.com'
  const own = await aRoute(owner, '/report', { host, amount: '0.05' })
  await setPublic(owner, own, true)
  const shown = async () => {
    const { items } = await discovered(owner)
    const Meta = z.object({ publisher: z.string(), price: z.object({ amount: z.string() }) })
    const ofHost = items.filter(({ resource }) => resource === `https://${host}/report`)
    return new Map(ofHost.map((item) => [Meta.parse(item.metadata).publisher, Meta.parse(item.metadata).price.amount]))
  }
  const copied = await aRoute(stranger, '/report', { host, amount: '0.01' })
  expect(copied).not.toBe(own)
  await setPublic(stranger, copied, true)
  expect(await shown()).toEqual(
    new Map([
      [owner.id, '0.05'],
      [stranger.id, '0.01'],
    ]),
  )
  expect((await setPublic(stranger, own, false)).status).toBe(404)
  await aRoute(stranger, '/report', { host, amount: '9' })
  await setPublic(stranger, copied, false)
  expect(await shown()).toEqual(new Map([[owner.id, '0.05']]))
  expect((await world.call(owner.testKey, 'GET', `/registry/routes/${own}`)).body).toMatchObject({
    amount: '0.05',
    snapshotCount: 1,
  })
  await setPublic(owner, own, false)
})

test('making a route public is in the audit log', async () => {
  const org = await world.organisation()
  const id = await aRoute(org, '/audited')
  await setPublic(org, id, true)
  const { list } = await world.call(org.testKey, 'GET', '/organisations/current/audit-log?limit=1')
  expect(list[0]).toMatchObject({ action: 'registry.routes.update', target: id, details: { isPublic: true } })
})

test('routes with many long parameters leave a page of discovery small, with their first parameters', async () => {
  const org = await world.organisation()
  const reader = await world.organisation()
  const params = Array.from({ length: 64 }, (_, place) => ({
    name: `${place}${'語'.repeat(120)}`,
    type: '語'.repeat(32),
  }))
  const ids = []
  for (let place = 0; place < 20; place++)
    ids.push(
      await aRoute(org, `/large/of${'x'.repeat(place)}`, { headers: params, queryParams: params, bodyParams: params }),
    )
  for (const id of ids) await setPublic(org, id, true)
  const { items } = await discovered(reader, '?limit=50')
  expect(items.filter(({ resource }) => resource.includes('/large/'))).toHaveLength(20)
  expect(Buffer.byteLength(JSON.stringify(items))).toBeLessThan(65_536)
  for (const id of ids) await setPublic(org, id, false)
})
