import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { codeOf, type Org } from '../world.ts'
import { aVaultStage, type VaultStage } from './vaults-stage.ts'

/** Calls that are repeated for a token or two leave no rows without an end. */

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

async function made(org: Org, path: string, body: object): Promise<string> {
  const { status, body: record } = await stage.call(org, 'POST', path, body)
  expect(status).toBe(201)
  return `${path}/${record.id}`
}

async function recordsOf(org: Org): Promise<number> {
  const { count } = await stage.world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from audit_log where organisation_id = ${org.id}`,
  )
  return Number(count)
}

const metadata = { shop: 1, tags: ['a'] }
const wallet = { chain: 'base', supportedTokens: ['USDC'], metadata, name: 'one' }
const aMaster = (org: Org) => made(org, '/wallet-infra/master-wallets', wallet)

const settings = {
  'an organisation': [async () => '/organisations/current', { name: 'Two' }],
  'a webhook': [
    (org: Org) => made(org, '/webhooks', { url: 'https://example.com/hook', events: ['vault.sealed'] }),
    { events: ['vault.expiring', 'vault.sealed'], isActive: true },
  ],
  'a BYO wallet': [
    (org: Org) => made(org, '/wallet-infra/byo-wallets', { ...wallet, address: `0x${'1'.repeat(40)}` }),
    { name: 'two', metadata: { deep: { none: null } } },
  ],
  'a master wallet': [aMaster, { name: 'two', metadata: { deep: { none: null } } }],
  'a child': [
    async (org: Org) => made(org, `${await aMaster(org)}/child-addresses`, { metadata, name: 'one' }),
    { name: 'two', metadata: { deep: { none: null } } },
  ],
  'a route': [
    async (org: Org) => {
      const route = { host: 'api.example.com', method: 'GET', routePattern: '/map', amount: '0.01', protocol: 'x402' }
      await stage.call(org, 'POST', '/registry/snapshots', route)
      const [listed] = (await stage.call(org, 'GET', '/registry/routes')).list
      return `/registry/routes/${listed?.id}`
    },
    { isPublic: true },
  ],
} as const

test.each(Object.entries(settings))(
  'a change of %s leaves one record, however often it is repeated',
  async (_, [make, change]) => {
    const org = await stage.world.organisation('pro')
    const path = await make(org)
    const before = await recordsOf(org)
    const answers = []
    for (let time = 0; time < 4; time++) answers.push(await stage.call(org, 'PATCH', path, change))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    for (const { body } of answers) expect(body).toEqual(answers[0]?.body)
    expect(await recordsOf(org)).toBe(before + 1)
  },
)

test('refused changes of settings count nothing, and a key can be revoked whatever other keys change', async () => {
  const org = await stage.world.organisation('pro')
  const retire = () => stage.call(org, 'DELETE', '/wallet-infra/master-wallets/mwt_01h455vb4pex5vsknk084sn02q')
  for (let time = 0; time < 260; time++) expect(codeOf(await retire())).toBe('wallet-not-found')
})

test('a revoked key has no makers in its row, and a key that it made is still found by all of them', async () => {
  const org = await stage.world.organisation('pro')
  const keysPath = '/organisations/current/api-keys'
  const makeKey = async (by: string) => {
    const { body } = await stage.world.call(by, 'POST', keysPath, { name: 'next', environment: 'test' })
    return { id: String(body.id), key: String(body.key) }
  }
  const first = await makeKey(org.testKey)
  const second = await makeKey(first.key)
  const third = await makeKey(second.key)
  expect((await stage.call(org, 'DELETE', `${keysPath}/${second.id}`)).status).toBe(200)
  const { db } = stage.world.database
  const Makers = z.object({ id: z.string(), count: z.number() })
  const rows = await db.many(
    Makers,
    sql`select id, cardinality(made_by_keys) as count from api_keys where id = any(${[second.id, third.id]}::text[]) order by created_at, id`,
  )
  expect(new Map(rows.map(({ id, count }) => [id, count]))).toEqual(
    new Map([
      [second.id, 0],
      [third.id, 3],
    ]),
  )
  const cascade = await stage.call(org, 'DELETE', `${keysPath}/${first.id}?cascade=true`)
  expect(cascade.body).toMatchObject({ ended: [{ id: third.id }] })
})
