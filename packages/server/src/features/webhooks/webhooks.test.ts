import { eventTypes } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { ShiftedClock } from '../../../test/webhooks/clock.ts'
import { aWorld, codeOf, countByStatus, type Org, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { insertEvents } from '../../platform/events.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { createFanOut } from './delivery/fan-out.ts'
import { expiries } from './tasks.ts'

let world: World
let org: Org
const clock = new ShiftedClock()

beforeAll(async () => {
  const partners = { lifi: { apiKey: 'key', baseUrl: 'https://swaps.partner.example/v1' } }
  world = await aWorld({ config: { role: 'api', webhooksAllowPrivate: false, partners }, boot: { clock } })
  org = await world.organisation()
})
afterAll(() => world?.stop())

const url = 'https://hooks.example.com/purser?token=abc'

function create(body: unknown, headers: Record<string, string> = {}, key = org.testKey) {
  return world.call(key, 'POST', '/webhooks', body, headers)
}

async function publish(own: Org, count: number, type = 'vault.persisted') {
  const { deps } = world.server
  const ctx = { ...deps, tenant: { organisationId: own.id, environment: 'test' as const } }
  const payloads = Array.from({ length: count }, (_, n) => ({ vaultId: `vlt_${n}`, persistedAt: 'then' }))
  return deps.db.tx((tx) => insertEvents(ctx, tx, type, payloads))
}

async function countOf(statement: ReturnType<typeof sql>): Promise<number> {
  return Number((await world.database.db.one(z.object({ count: z.bigint() }), statement)).count)
}

test('a webhook has the fields of the API, and its secret is shown once, at creation', async () => {
  const made = await create({ url, events: ['payment.received', 'vault.sealed'] })
  expect(made.status).toBe(201)
  const { secret, ...record } = made.body
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(record).toEqual({
    id: expect.stringMatching(/^wh_/),
    url,
    events: ['payment.received', 'vault.sealed'],
    isActive: true,
    createdAt: expect.any(String),
  })
  const read = await world.call(org.testKey, 'GET', `/webhooks/${record.id}`)
  expect(read.body).toEqual(record)
  expect((await world.call(org.testKey, 'GET', '/webhooks')).list).toContainEqual(record)
  const changed = await world.call(org.testKey, 'PATCH', `/webhooks/${record.id}`, { events: ['*'], isActive: false })
  expect(changed.body).toEqual({ ...record, events: ['*'], isActive: false })
  const log = JSON.stringify((await world.call(org.testKey, 'GET', '/organisations/current/audit-log')).list)
  expect(log).toContain('webhooks.create')
  expect([log.includes(String(secret)), log.includes('token=abc')]).toEqual([false, false])
  const stored = await countOf(sql`
    select count(*) as count from webhook_secrets where position(convert_to('whsec_', 'UTF8') in secret) > 0`)
  expect(stored).toBe(0)
})

test('the same Idempotency-Key makes one webhook and shows the same secret', async () => {
  const own = await world.organisation()
  const headers = { 'idempotency-key': 'one' }
  const first = await create({ url, events: ['*'] }, headers, own.testKey)
  const again = await create({ url, events: ['*'] }, headers, own.testKey)
  expect(again.body).toEqual(first.body)
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  expect((await world.call(own.testKey, 'GET', '/webhooks')).list).toHaveLength(1)
})

test.each([
  ['http://hooks.example.com/', 'scheme-refused'],
  ['ftp://hooks.example.com/', 'scheme-refused'],
  ['https://127.0.0.1/', 'address-refused'],
  ['https://[::ffff:10.0.0.1]/', 'address-refused'],
  ['https://169.254.169.254/latest/meta-data', 'address-refused'],
  ['https://2130706433/', 'address-refused'],
  ['https://localhost/', 'host-refused'],
  ['https://service.internal/', 'host-refused'],
  ['https://swaps.partner.example/hooks', 'host-refused'],
  ['https://SWAPS.partner.example:8443/', 'host-refused'],
  ['https://user:word@hooks.example.com/', 'credentials-refused'],
  ['https://hooks.example.com:22/', 'port-refused'],
  ['not a url', 'url-malformed'],
])('%s is refused as a webhook’s address, at creation and at a change', async (bad, reason) => {
  const made = await create({ url: bad, events: ['*'] })
  expect([made.status, codeOf(made), made.body.reason]).toEqual([422, 'webhook-url-not-allowed', reason])
  expect(made.body.detail).toContain(reason)
  const good = await create({ url, events: ['*'] })
  const changed = await world.call(org.testKey, 'PATCH', `/webhooks/${good.body.id}`, { url: bad })
  expect([changed.status, codeOf(changed)]).toEqual([422, 'webhook-url-not-allowed'])
  expect((await world.call(org.testKey, 'GET', `/webhooks/${good.body.id}`)).body.url).toBe(url)
})

test('a payment and a delivery are not sent to a server of the deployment', async () => {
  const { sellerFetch, guardedFetch } = world.server.deps
  const to = { url: 'https://swaps.partner.example/quote', group: org.id, headers: {} }
  const sent = await Promise.all([
    sellerFetch.send({ ...to, method: 'GET', body: undefined }),
    guardedFetch.post({ ...to, body: new Uint8Array() }),
  ])
  expect(sent).toEqual([0, 1].map(() => ({ kind: 'failed', failure: 'host-refused' })))
})

test('an unknown event type, a repeated one, and none are refused; every known one is accepted', async () => {
  for (const events of [['vault.sealled'], ['*', '*'], [], ['']]) {
    const response = await create({ url, events })
    expect([response.status, codeOf(response)]).toEqual([422, 'validation-error'])
  }
  expect((await create({ url, events: eventTypes })).status).toBe(201)
})

test('of parallel requests as many succeed as the plan grants, and a deleted webhook frees its place', async () => {
  const own = await world.organisation('hobby')
  const answers = await Promise.all(Array.from({ length: 20 }, () => create({ url, events: ['*'] }, {}, own.testKey)))
  expect(countByStatus(answers)).toEqual({ 201: 1, 429: 19 })
  const refused = answers.find(({ status }) => status === 429)
  expect([refused && codeOf(refused), refused?.body.limit, refused?.body.current]).toEqual([
    'webhook-limit-reached',
    1,
    1,
  ])
  const made = answers.find(({ status }) => status === 201)
  const gone = await Promise.all(
    Array.from({ length: 5 }, () => world.call(own.testKey, 'DELETE', `/webhooks/${made?.body.id}`)),
  )
  expect(countByStatus(gone)).toEqual({ 204: 1, 404: 4 })
  expect((await create({ url, events: ['*'] }, {}, own.testKey)).status).toBe(201)
  const before = (await world.call(own.testKey, 'GET', '/billing/usage')).body.webhooks
  expect(before).toMatchObject({ used: 1, limit: 1 })
  await world.call(own.testKey, 'POST', '/billing/rebuild-cache', {})
  expect((await world.call(own.testKey, 'GET', '/billing/usage')).body.webhooks).toEqual(before)
})

test('a replay names one delivery or a time, and a delivery of another webhook is not found', async () => {
  const [mine, other] = [await create({ url, events: ['*'] }), await create({ url, events: ['*'] })]
  const tested = await world.call(org.testKey, 'POST', `/webhooks/${other.body.id}/test`)
  const replay = (body: unknown) => world.call(org.testKey, 'POST', `/webhooks/${mine.body.id}/replay`, body)
  for (const body of [{}, { deliveryId: tested.body.id, since: '2026-01-01T00:00:00Z' }, { since: 'yesterday' }])
    expect(codeOf(await replay(body))).toBe('validation-error')
  const foreign = await replay({ deliveryId: tested.body.id })
  expect([foreign.status, codeOf(foreign)]).toEqual([422, 'delivery-not-found'])
})

test('a dry run counts what a replay would send again, and changes nothing', async () => {
  const own = await world.organisation()
  const { body: webhook } = await create({ url, events: ['*'] }, {}, own.testKey)
  const { body: delivery } = await world.call(own.testKey, 'POST', `/webhooks/${webhook.id}/test`)
  await world.database.db.run(
    sql`update webhook_deliveries set status = 'dead', due_at = null, ended_at = now() where id = ${String(delivery.id)}`,
  )
  const replay = (body: unknown) => world.call(own.testKey, 'POST', `/webhooks/${webhook.id}/replay`, body)
  const since = '2020-01-01T00:00:00Z'
  for (const body of [{ since, dryRun: true }, { since, dryRun: true }, { since }])
    expect((await replay(body)).body).toEqual({ replayed: 1 })
  expect((await replay({ since, dryRun: true })).body).toEqual({ replayed: 0 })
  expect(codeOf(await replay({ deliveryId: delivery.id, dryRun: true }))).toBe('validation-error')
})

test('events are listed newest first, by type and in pages, and one alone', async () => {
  const own = await world.organisation()
  const sent = [...(await publish(own, 7)), ...(await publish(own, 3, 'vault.expired'))].sort().reverse()
  const first = await world.call(own.testKey, 'GET', '/events?limit=6')
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
  const second = await world.call(
    own.testKey,
    'GET',
    new URL(next, 'http://x').pathname + new URL(next, 'http://x').search,
  )
  expect([...first.list, ...second.list].map(({ id }) => id)).toEqual(sent)
  expect((await world.call(own.testKey, 'GET', '/events?type=vault.expired')).list).toHaveLength(3)
  const one = await world.call(own.testKey, 'GET', `/events/${sent[0]}`)
  expect(one.body).toEqual(first.list[0])
  expect(Object.keys(one.body).sort()).toEqual(['createdAt', 'id', 'payload', 'type'])
})

test('only events that a webhook subscribes to are fanned out, and their rows stay as they were written', async () => {
  const own = await world.organisation()
  const due = (ids: readonly string[]) =>
    countOf(sql`select count(*) as count from events_due where event_id = any(${ids}::text[])`)
  expect(await due(await publish(own, 2))).toBe(0)
  await create({ url, events: ['vault.persisted'] }, {}, own.testKey)
  const wanted = await publish(own, 2)
  expect(await due([...wanted, ...(await publish(own, 1, 'vault.expired'))])).toBe(2)
  const fanOut = createFanOut(world.server.deps)
  while ((await fanOut()).isMore);
  expect(await due(wanted)).toBe(0)
  expect(
    await countOf(sql`
      select count(*) as count from webhook_deliveries join events on events.id = event_id
      where event_id = any(${wanted}::text[]) and events.xmin::text = (written_by::text::bigint % 4294967296)::text`),
  ).toBe(2)
})

test('events and their deliveries are kept for 30 days, and longer while a delivery is pending', async () => {
  const own = await world.organisation()
  const hook = await create({ url, events: ['*'] }, {}, own.testKey)
  const [plain = ''] = await publish(own, 1)
  const tested = await world.call(own.testKey, 'POST', `/webhooks/${hook.body.id}/test`)
  await world.database.db.run(sql`delete from events_due`)
  const sweep = async () => {
    for (const { run } of expiries) await run(systemCtx(world.server.deps))
  }
  const left = () =>
    countOf(sql`select count(*) as count from events where id in (${plain}, ${String(tested.body.eventId)})`)
  clock.forward(29 * 86_400_000)
  await sweep()
  expect(await left()).toBe(2)
  const replay = { deliveryId: tested.body.id }
  expect((await world.call(own.testKey, 'POST', `/webhooks/${hook.body.id}/replay`, replay)).status).toBe(202)
  clock.forward(2 * 86_400_000)
  expect(codeOf(await world.call(own.testKey, 'GET', `/events/${plain}`))).toBe('event-not-found')
  await sweep()
  expect(await left()).toBe(1)
  await world.call(own.testKey, 'DELETE', `/webhooks/${hook.body.id}`)
  await sweep()
  expect(await left()).toBe(0)
})
