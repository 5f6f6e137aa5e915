import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aBrowser, type Browser } from '../people.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

let world: World
let org: Org

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
})
afterAll(() => world.stop())

const idOf = (response: Answer): string => String(response.headers.get('x-request-id'))

async function logged(key: string, request: string): Promise<Record<string, unknown>> {
  let found: Answer | undefined
  await expect
    .poll(
      async () => {
        found = await world.call(key, 'GET', `/requests/${request}`)
        return found.status
      },
      { timeout: 20_000 },
    )
    .toBe(200)
  return found?.body ?? {}
}

async function ownerOf({ id }: Org): Promise<Browser> {
  const { email } = await world.database.db.one(
    z.object({ email: z.string() }),
    sql`select email from accounts join members on account_id = accounts.id where organisation_id = ${id}`,
  )
  return aBrowser(world, { email, organisationId: id })
}

test('a request is in the log with its route, status, duration and key, and without its values', async () => {
  const sent = await world.call(org.testKey, 'POST', '/vaults', { description: 'a private description' })
  expect(sent.status).toBe(201)
  const row = await logged(org.testKey, idOf(sent))
  const keys = await world.call(org.testKey, 'GET', '/organisations/current/api-keys')
  const own = keys.list.find(({ environment }) => environment === 'test')
  expect(row).toEqual({
    id: idOf(sent),
    method: 'POST',
    route: '/vaults',
    status: 201,
    durationMs: expect.any(Number),
    apiKeyId: own?.id,
    accountId: null,
    code: null,
    createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
  })
  expect(row.durationMs, 'a commit takes a millisecond').toBeGreaterThan(0)
  const missing = await world.call(org.testKey, 'GET', `/vaults/${String(sent.body.id).slice(0, -4)}zzzz`)
  expect(await logged(org.testKey, idOf(missing))).toMatchObject({
    route: '/vaults/{id}',
    status: 404,
    code: 'vault-not-found',
  })
  const { rows } = await world.database.db.one(
    z.object({ rows: z.string() }),
    sql`select string_agg(request_log::text, ' ') as rows from request_log where organisation_id = ${org.id}`,
  )
  expect(rows).not.toContain('private')
  expect(rows).not.toContain(org.testKey)
  expect(rows).not.toContain(String(sent.body.id))
})

test('the list is filtered by status, route, method, key and time, and paged', async () => {
  const own = await world.organisation()
  const made: string[] = []
  for (const name of ['a', 'b', 'c'])
    made.push(idOf(await world.call(own.testKey, 'POST', '/vaults', { description: name })))
  const refused = idOf(await world.call(own.testKey, 'POST', '/vaults', { noSuchField: 1 }))
  const absent = idOf(await world.call(own.testKey, 'GET', '/vaults/vlt_01h455vb4pex5vsknk084sn02q'))
  await logged(own.testKey, absent)
  const listed = async (query: string): Promise<unknown[]> => {
    const response = await world.call(own.testKey, 'GET', `/requests?${query}`)
    expect(response.status, JSON.stringify(response.body)).toBe(200)
    return response.list.map(({ id }) => id)
  }
  const all = [...made, refused]
  expect(await listed('route=/vaults')).toEqual(all.toReversed())
  expect(await listed('route=/vaults&status=201')).toEqual(made.toReversed())
  expect(await listed('status=4xx&method=POST')).toEqual([refused])
  expect(await listed('route=/vaults/{id}&status=404&method=GET')).toEqual([absent])
  const { apiKeyId, createdAt } = await logged(own.testKey, refused)
  expect(await listed(`route=/vaults&apiKeyId=${apiKeyId}`)).toHaveLength(4)
  expect(await listed('route=/vaults&apiKeyId=key_01h455vb4pex5vsknk084sn02q')).toEqual([])
  expect(await listed(`from=${createdAt}&route=/vaults`)).toContain(refused)
  expect(await listed(`to=${createdAt}&route=/vaults`)).not.toContain(refused)
  const first = await world.call(own.testKey, 'GET', '/requests?route=/vaults&limit=3')
  const next = /^<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1]
  const second = await world.call(own.testKey, 'GET', String(next))
  expect([...first.list, ...second.list].map(({ id }) => id)).toEqual(all.toReversed())
  for (const query of ['status=6xx', 'status=40', 'method=TRACE', 'from=yesterday', 'cursor=x'])
    expect((await world.call(own.testKey, 'GET', `/requests?${query}`)).status).toBe(422)
})

test('no other organisation and no other environment sees a request', async () => {
  const other = await world.organisation()
  const sent = idOf(await world.call(org.testKey, 'GET', '/webhooks'))
  await logged(org.testKey, sent)
  for (const key of [other.testKey, other.liveKey, org.liveKey]) {
    const seen = await world.call(key, 'GET', `/requests/${sent}`)
    expect([seen.status, String(seen.body.type).split('/').at(-1)]).toEqual([404, 'request-not-found'])
    expect((await world.call(key, 'GET', '/requests')).list.map(({ id }) => id)).not.toContain(sent)
  }
})

test('a refusal for a scope or a rate is in the log of the key’s organisation; one without a good key is in none', async () => {
  const made = await world.call(org.testKey, 'POST', '/organisations/current/api-keys', {
    name: 'limited',
    environment: 'test',
    scopes: ['vaults'],
  })
  const refused = await world.call(String(made.body.key), 'GET', '/webhooks')
  expect(refused.status).toBe(403)
  expect(await logged(org.testKey, idOf(refused))).toMatchObject({
    route: '/webhooks',
    status: 403,
    code: 'scope-not-allowed',
    apiKeyId: made.body.id,
  })
  expect((await world.call(String(made.body.key), 'GET', '/requests')).status).toBe(403)

  const slow = await world.another({ keyLimit: { perSecond: 0.001, burst: 1 } })
  const send = () => fetch(`${slow.base}/vaults`, { headers: { authorization: `Bearer ${org.liveKey}` } })
  await send()
  const limited = await send()
  expect(limited.status).toBe(429)
  const row = await logged(org.liveKey, String(limited.headers.get('x-request-id')))
  expect(row).toMatchObject({ route: '/vaults', status: 429, code: 'rate-limit-exceeded' })

  const spoilt = `${org.testKey.slice(0, -1)}${org.testKey.endsWith('0') ? '1' : '0'}`
  const unknown = idOf(await world.call(spoilt, 'GET', '/vaults'))
  await logged(org.testKey, idOf(await world.call(org.testKey, 'GET', '/vaults')))
  const { count } = await world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) from request_log where id = ${unknown}`,
  )
  expect(count).toBe(0n)
})

test('what a person changes is in the log with the account, and a viewer reads it', async () => {
  const browser = await ownerOf(org)
  await browser.call('GET', '/webhooks')
  const changed = await browser.call('PATCH', '/organisations/current', { name: 'Renamed' })
  const row = await logged(org.testKey, idOf(changed))
  expect(row).toMatchObject({ method: 'PATCH', apiKeyId: null, accountId: expect.stringMatching(/^acc_/) })
  expect((await browser.call('GET', '/requests')).list.map(({ id }) => id)).toContain(row.id)
})

test('requests that wait to be written are stored when the process stops', async () => {
  const another = await world.another()
  const response = await fetch(`${another.base}/webhooks`, { headers: { authorization: `Bearer ${org.testKey}` } })
  await another.server.stop()
  const found = await world.call(org.testKey, 'GET', `/requests/${response.headers.get('x-request-id')}`)
  expect(found.status).toBe(200)
})
