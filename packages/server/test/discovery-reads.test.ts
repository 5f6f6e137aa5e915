import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { countResources, listResources, upsertResource } from '../src/features/payments/facilitator/discovery-store.ts'
import { DiscoveryQuery } from '../src/features/payments/facilitator/schema.ts'
import { sql } from '../src/platform/db/db.ts'
import { newId } from '../src/platform/ids.ts'
import type { Tenant } from '../src/platform/tenant.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { rowsRead } from './rows-read.ts'
import { toyDeps } from './toy-deps.ts'

const DiscoveredVersion = z.object({ xmin: z.string() })
const resources = 12_000
const rare = '0x00000000000000000000000000000000000000aB'
let database: TestDatabase
let tenant: Tenant

beforeAll(async () => {
  database = await freshDatabase()
  const { db } = database
  const deps = toyDeps(db)
  tenant = { organisationId: newId('org', deps), environment: 'test' }
  await db.run(sql`
    insert into organisations (id, name, type, plan, created_at) values (${tenant.organisationId}, 'Acme', 'team', 'enterprise', now())`)
  // The oldest three pay an address of their own; nothing is an MCP tool. In parts, because the triggers of all take as long as a statement may on a slow machine.
  for (let first = 1; first <= resources; first += resources / 8)
    await db.run(sql`
      insert into discovered_resources (organisation_id, environment, resource, type, operation, x402_version, accepts, details, updated_at)
      select ${tenant.organisationId}, 'test', 'https://shop.example.com/' || n, 'http', 'GET', 2,
        jsonb_build_array(jsonb_build_object('scheme', 'exact', 'network', 'eip155:8453', 'payTo', case when n <= 3 then ${rare} else '0xc0' || n end)),
        '{}', now() - interval '1 day' + n * interval '1 second'
      from generate_series(${first}::integer, ${first + resources / 8 - 1}::integer) n`)
  await db.run(sql`analyze discovered_resources`)
  await db.run(sql`analyze discovery_terms`)
}, 60_000)
afterAll(() => database?.drop())

/** The resources that a list finds, their count, and how many rows of the tables of discovery both read. */
function found(query: Record<string, unknown>, plans: 'force_generic_plan' | 'force_custom_plan') {
  const parsed = DiscoveryQuery.parse(query)
  return database.db.tx(
    async (tx) => {
      await tx.run(sql`select set_config('plan_cache_mode', ${plans}, true)`)
      const before = await rowsRead(tx, '^discover')
      const rows = await listResources(tx, 'test', parsed)
      const count = await countResources(tx, 'test', parsed, parsed.offset + parsed.limit + 1_000)
      const read = Number((await rowsRead(tx, '^discover')) - before)
      return { paths: rows.map(({ resource }) => new URL(resource).pathname), count, read }
    },
    { readsInOrder: true },
  )
}

const newest = ['/12000', '/11999']
test.each<
  readonly [name: string, query: Record<string, unknown>, paths: readonly string[], count: number, most: number]
>([
  ['no address', { payTo: '0x01' }, [], 0, 10],
  ['a rare address, in any case', { payTo: rare.toLowerCase() }, ['/3', '/2', '/1'], 3, 20],
  ['a rare address on a common network', { payTo: rare, network: 'eip155:8453' }, ['/3', '/2', '/1'], 3, 20],
  ['a rare address of another type', { payTo: rare, type: 'mcp' }, [], 0, 10],
  ['a common scheme on no network', { scheme: 'exact', network: 'eip155:1' }, [], 0, 10],
  ['a common scheme of a type that none has', { scheme: 'exact', type: 'mcp' }, [], 0, 10],
  ['a type that none has', { type: 'mcp' }, [], 0, 10],
  ['an extension that none has', { extensions: 'sign-in' }, [], 0, 0],
  ['everything common', { scheme: 'exact', network: 'eip155:8453', type: 'http', limit: 2 }, newest, 1_002, 1_100],
  ['no filter', { limit: 2 }, newest, 1_002, 1_100],
  ['a large offset', { scheme: 'exact', limit: 2, offset: 5_000 }, ['/7000', '/6999'], 6_002, 11_100],
])(
  'discovery by %s reads the rows of its page and of its count, whatever is listed',
  async (_, query, paths, count, most) => {
    for (const plans of ['force_generic_plan', 'force_custom_plan'] as const) {
      const { read, ...result } = await found(query, plans)
      expect(result).toEqual({ paths, count })
      expect(read).toBeLessThanOrEqual(most)
    }
  },
)

test('an offset above 10,000 is refused with the reason', () => {
  const refused = DiscoveryQuery.safeParse({ offset: 10_001 })
  expect(refused.error?.issues.map(({ message }) => message)).toEqual([
    'must be at most 10000; narrow the list with filters',
  ])
})

test('a resource is found by the offers that it has now, and a payment soon after another writes nothing', async () => {
  const { db } = database
  const at = (seconds: number) => new Date(Date.UTC(2030, 0, 1) + seconds * 1_000)
  const paid = (payTo: string, network: string, seconds: number) =>
    upsertResource(db, tenant, {
      ...{ resource: 'https://new.example.com/a', type: 'http', operation: 'GET', x402Version: 2, details: {} },
      accepts: { scheme: 'upto', network, payTo, asset: '0x1' },
      ...{ now: at(seconds), resourcesMax: 100_000 },
    })
  const versions = () =>
    db.many(
      DiscoveredVersion,
      sql`select xmin::text as xmin from discovered_resources where resource = 'https://new.example.com/a'`,
    )
  const count = async (query: Record<string, unknown>) => (await found(query, 'force_generic_plan')).count
  expect(await paid('0xA1', 'eip155:10', 0)).toBe(true)
  const first = await versions()
  expect(await paid('0xA1', 'eip155:10', 599)).toBe(true)
  expect(await versions()).toEqual(first)
  expect(await paid('0xA1', 'eip155:10', 601)).toBe(true)
  expect(await versions()).not.toEqual(first)
  expect(await paid('0xA2', 'eip155:137', 602)).toBe(true)
  expect(await count({ payTo: '0xa1', network: 'eip155:10' })).toBe(1)
  expect(await count({ payTo: '0xa1', network: 'eip155:137' }), 'parts of two offers').toBe(0)
  expect(await count({ payTo: '0xa2', scheme: 'upto', network: 'eip155:137' })).toBe(1)
  for (let at = 3; at < 19; at++) await paid(`0xB${at}`, 'eip155:42', 700 + at)
  expect(await count({ payTo: '0xa1' }), 'the oldest of more than 16 offers').toBe(0)
  await db.run(sql`delete from discovered_resources where resource = 'https://new.example.com/a'`)
  expect(await count({ scheme: 'upto' })).toBe(0)
})
