import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { listRoutes } from '../src/features/registry/store.ts'
import { sql } from '../src/platform/db/db.ts'
import { aWorld, type Org, type World } from './world.ts'

// Pages of lists whose rows are large: how much of them a process reads at once.

const stored = 40
let world: World
let org: Org
beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' } })
  org = await world.organisation()
  const param = { name: 'n', type: 'string', required: true, example: '語'.repeat(500) }
  const params = JSON.stringify(Array.from({ length: 64 }, () => param))
  await world.database.db.run(sql`
    insert into registry_routes (id, organisation_id, environment, host, method, route_pattern, headers, query_params, body_params, amount, protocol, protocols,
      snapshot_count, created_at, last_seen_at)
    select 'reg_' || lpad(place::text, 26, '0'), ${org.id}, 'test', 'api.example.com', 'GET', '/' || place, ${params}::jsonb, ${params}::jsonb, ${params}::jsonb,
      0.01, 'x402', '{x402}', 1, now(), now() from generate_series(1, ${stored}::integer) as place`)
})
afterAll(() => world?.stop())

test('a process reads a mebibyte of a page of large rows, and no more than another row', async () => {
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const { rows, isCut, bytes } = await listRoutes(world.database.db, tenant, {}, { limit: 500, after: undefined })
  const rowBytes = Buffer.byteLength(JSON.stringify(rows[0]?.headers)) * 3
  expect([isCut, rows.length]).toEqual([true, Math.ceil(1_048_576 / rowBytes)])
  expect(bytes).toBeGreaterThan(rowBytes * stored)
})

test('a list of large rows has each of them once, over all of its pages', async () => {
  const patterns: unknown[] = []
  const pages: number[] = []
  for (let path: string | undefined = '/registry/routes?limit=500'; path !== undefined; ) {
    const { status, list, headers } = await world.call(org.testKey, 'GET', path)
    expect(status).toBe(200)
    patterns.push(...list.map(({ routePattern }) => routePattern))
    pages.push(list.length)
    path = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
  }
  expect(new Set(patterns).size).toBe(stored)
  expect([patterns.length, Math.max(...pages) <= 6]).toEqual([stored, true])
})

test('a route is stored with at most 16 KiB of parameters, its names before its examples', async () => {
  const other = await world.organisation()
  const params = Array.from({ length: 64 }, (_, place) => ({ name: `name ${place}`, example: '語'.repeat(500) }))
  const snapshot = { host: 'a.example.com', method: 'GET', routePattern: '/large', amount: '1', protocol: 'x402' }
  const report = (named: object[]) =>
    world.call(other.testKey, 'POST', '/registry/snapshots', { ...snapshot, queryParams: named, bodyParams: named })
  const Shown = z.looseObject({ queryParams: z.array(z.looseObject({ name: z.string() })) })
  const shown = async () => {
    const [route] = (await world.call(other.testKey, 'GET', '/registry/routes')).list
    return { route: Shown.parse(route), bytes: Buffer.byteLength(JSON.stringify(route)) }
  }
  expect((await report(params.slice(0, 2))).status).toBe(202)
  expect((await shown()).route.queryParams).toMatchObject(params.slice(0, 2))
  expect((await report(params)).status).toBe(202)
  const { route, bytes } = await shown()
  expect([route.queryParams.length, bytes < 17_500]).toEqual([64, true])
  expect(route.queryParams.every(({ example }) => example === undefined)).toBe(true)
  const long = params.map((_, place) => ({ name: `${place}${'語'.repeat(120)}` }))
  expect((await report(long)).status).toBe(202)
  expect((await shown()).bytes).toBeLessThan(17_500)
})
