import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { AuthenticationError } from '../../../sdk/src/index.ts'
import { unwrap } from '../../../sdk/src/webhooks/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { insertEvents } from '../../src/platform/events.ts'
import { type Listening, listening } from '../webhooks/listening.ts'
import { aStage, type Stage } from '../webhooks/stage.ts'
import { codeOf, countByStatus, type Org } from '../world.ts'

let stage: Stage
let org: Org
const open: Listening[] = []

beforeAll(async () => {
  stage = await aStage()
})
afterAll(() => stage?.stop())
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop()
})

async function listen(
  own: Org,
  query: Parameters<typeof listening>[2] = {},
  base: string = stage.world.base,
): Promise<Listening> {
  const one = listening(base, own.testKey, query)
  open.push(one)
  await one.opened
  return one
}

/** Events of one transaction, in the order of publishing. */
const publish = async (own: Org, count?: number) => [...(await stage.publish(own, count))].sort()

const idsOf = (one: Listening) => one.had.map(({ eventId }) => eventId)

test('a listener gets the same delivery as a webhook: the same body, signed with its secret and by the service', async () => {
  org = await stage.world.organisation()
  const hook = await stage.hook(org)
  const secret = String((await stage.world.call(org.testKey, 'POST', '/events/listener')).body.secret)
  const one = await listen(org)
  const [eventId] = await stage.publish(org)
  const [delivery] = await one.until(1)
  await hook.receiver.until(1)
  const arrived = hook.receiver.arrived[0]
  expect(delivery?.eventId).toBe(eventId)
  expect(delivery?.body).toBe(arrived?.body)
  const signing = ['content-type', 'user-agent', 'webhook-id', 'webhook-signature', 'webhook-timestamp']
  expect(Object.keys(delivery?.headers ?? {}).sort()).toEqual([
    ...signing,
    'x-service-signature',
    'x-service-timestamp',
    'x-service-version',
  ])
  for (const name of ['content-type', 'user-agent', 'webhook-id', 'x-service-version'])
    expect(delivery?.headers[name]).toBe(arrived?.headers[name])
  expect(delivery?.headers['webhook-signature']).toMatch(/^v1,\S+ v1a,\S+$/)
  expect(unwrap(delivery?.body ?? '', delivery?.headers ?? {}, secret)).toMatchObject({ eventId })
})

test('the secret of a key is the same each time, also for twenty concurrent requests, and another key has another', async () => {
  const own = await stage.world.organisation()
  const ask = (key: string) => stage.world.call(key, 'POST', '/events/listener')
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(own.testKey)))
  expect(countByStatus(answers)).toEqual({ 200: 20 })
  expect(new Set(answers.map(({ body }) => body.secret)).size).toBe(1)
  expect((await ask(own.liveKey)).body.secret).not.toBe(answers[0]?.body.secret)
  const log = (await stage.world.call(own.liveKey, 'GET', '/organisations/current/audit-log')).list
  expect(log.filter(({ action }) => action === 'events.listener')).toHaveLength(2)
  expect(JSON.stringify(log)).not.toContain('whsec_')
})

test('no event is missed or skipped, however transactions overlap: 400 events, 8 writers, each slow to commit', async () => {
  const own = await stage.world.organisation()
  const one = await listen(own)
  const { deps } = stage.world.server
  const ctx = { ...deps, tenant: { organisationId: own.id, environment: 'test' as const } }
  const written: string[] = []
  const writer = async (number: number): Promise<void> => {
    for (let round = 0; round < 10; round++) {
      await deps.db.tx(async (tx) => {
        for (let event = 0; event < 5; event++) {
          written.push(
            ...(await insertEvents(ctx, tx, 'vault.persisted', [{ vaultId: `vlt_${number}_${round}_${event}` }])),
          )
          if ((number + round + event) % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
        }
      })
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, number) => writer(number)))
  await one.until(400)
  expect(idsOf(one).toSorted()).toEqual(written.toSorted())
})

test('an event that is committed long after later ones is delivered, before or after them, and none is lost', async () => {
  const own = await stage.world.organisation()
  const one = await listen(own)
  const { deps } = stage.world.server
  const ctx = { ...deps, tenant: { organisationId: own.id, environment: 'test' as const } }
  const late = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<string>()
  const slow = deps.db.tx(async (tx) => {
    const [eventId = ''] = await insertEvents(ctx, tx, 'vault.persisted', [{ vaultId: 'vlt_slow' }])
    begun.resolve(eventId)
    await late.promise
  })
  const slowId = await begun.promise
  const quick = await publish(own, 3)
  const again = await listen(own, { from: new Date(Date.now() - 60_000).toISOString() })
  expect([...idsOf(one), ...idsOf(again)]).not.toContain(slowId)
  late.resolve()
  await slow
  for (const own of [one, again])
    expect([...(await own.until(4))].map(({ eventId }) => eventId)).toEqual([slowId, ...quick])
})

test('a listener that is cut after every event in turn gets each of them, in order, and none twice in a whole run', async () => {
  const own = await stage.world.organisation()
  const ids = await publish(own, 25)
  await untilPublishable(own)
  const from = new Date(Date.now() - 3_600_000).toISOString()
  const places = (await followed(own, { from })).map(({ id }) => id)
  expect(places).toEqual(ids)
  for (const [index, lastEventId] of places.entries())
    expect((await followed(own, { lastEventId })).map(({ eventId }) => eventId)).toEqual(ids.slice(index + 1))
  expect((await followed(own, { lastEventId: '0' })).map(({ eventId }) => eventId)).toEqual(ids)
})

/**
 * A stream that does not follow ends before events that a transaction of the cluster, perhaps another test's, still
 * delays.
 */
async function untilPublishable(own: Org): Promise<void> {
  const waiting = sql`
    select count(*) as count from events where organisation_id = ${own.id} and written_by >= pg_snapshot_xmin(pg_current_snapshot())`
  const count = () => stage.world.database.db.one(z.object({ count: z.bigint() }), waiting)
  await expect.poll(count, { timeout: 180_000 }).toEqual({ count: 0n })
}

async function followed(own: Org, query: { readonly from?: string; readonly lastEventId?: string | undefined }) {
  const one = listening(stage.world.base, own.testKey, { ...query, follow: 'false' })
  expect(await one.ended).toBeUndefined()
  return one.had
}

test('a connection that dies after each event is opened again, and the whole is without gap, repeat or loss', async () => {
  const own = await stage.world.organisation()
  const cutter = await aCutter(stage.world.base)
  const one = await listen(own, {}, cutter.url)
  const ids: string[] = []
  for (let round = 0; round < 12; round++) {
    ids.push(...(await stage.publish(own)))
    await one.until(ids.length)
    cutter.cut()
    ids.push(...(await stage.publish(own)))
    await one.until(ids.length)
  }
  expect(idsOf(one)).toEqual(ids)
  expect(one.breaks()).toBeGreaterThanOrEqual(12)
})

/** A proxy to the server that can cut every connection. */
async function aCutter(base: string): Promise<{ readonly url: string; cut(): void }> {
  const server = createServer((request, response) => {
    const { method, headers, url = '' } = request
    const onward = send(base + url, { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      response.flushHeaders()
      answer.pipe(response).on('close', () => answer.destroy())
    })
    request.pipe(onward.on('error', () => response.destroy()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => server.closeAllConnections(),
  }
}

test('two processes deliver each other’s events', async () => {
  const own = await stage.world.organisation()
  const other = await stage.world.another({ role: 'api' })
  const [here, there] = [await listen(own), await listen(own, {}, other.base)]
  const ids = await publish(own, 5)
  await stage.world.call(own.testKey, 'POST', '/events/trigger', { type: 'vault.sealed' })
  for (const one of [here, there]) await one.until(6)
  expect(idsOf(here)).toEqual(idsOf(there))
  expect(idsOf(here).slice(0, 5)).toEqual(ids)
})

test('a process that stops ends its streams at once, and no event is lost before the next continues', async () => {
  const own = await stage.world.organisation()
  const first = await stage.world.another({ role: 'api' })
  const one = listening(first.base, own.testKey)
  open.push(one)
  await one.opened
  const [before = ''] = await stage.publish(own)
  const [delivery] = await one.until(1)
  await first.server.stop()
  await one.stop()
  const [missed = ''] = await stage.publish(own)
  const second = await stage.world.another({ role: 'api' })
  const next = await listen(own, { lastEventId: delivery?.id }, second.base)
  const [after = ''] = await stage.publish(own)
  await next.until(2)
  expect([delivery?.eventId, ...idsOf(next)]).toEqual([before, missed, after])
})

test('only the requested types are delivered, and a quiet stream of a rare type resumes at its own position', async () => {
  const own = await stage.world.organisation()
  const one = await listen(own, { events: ['vault.sealed', 'vault.expired'] })
  await stage.publish(own, 150)
  const [rare] = await stage.publish(own, 1, 'vault.expired')
  await stage.publish(own, 150)
  const [last] = await stage.publish(own, 1, 'vault.sealed')
  await one.until(2)
  expect(idsOf(one)).toEqual([rare, last])
})

test('another organisation and the other environment get nothing', async () => {
  const [own, other] = [await stage.world.organisation(), await stage.world.organisation()]
  const ids = await stage.publish(own, 3)
  for (const key of [other.testKey, own.liveKey]) {
    for (const lastEventId of ['0', undefined]) {
      const from = lastEventId === undefined ? new Date(0).toISOString() : undefined
      const one = listening(stage.world.base, key, { lastEventId, from, follow: 'false' })
      await one.ended
      expect(idsOf(one)).toEqual([])
    }
    const response = await stage.world.call(key, 'GET', '/events/stream', undefined, { 'last-event-id': ids[0] ?? '' })
    expect([response.status, codeOf(response)]).toEqual([422, 'event-not-found'])
  }
})

test('an unknown position is refused, and so is a type that does not exist', async () => {
  const own = await stage.world.organisation()
  for (const place of ['evt_01h455vb4pex5vsknk084sn02q', 'evt_x', '1', "'--", 'x'.repeat(500)]) {
    const response = await stage.world.call(own.testKey, 'GET', '/events/stream', undefined, { 'last-event-id': place })
    expect([response.status, codeOf(response)]).toEqual([422, 'event-not-found'])
  }
  const response = await stage.world.call(own.testKey, 'GET', '/events/stream?events=vault.sealed,vault.sealled')
  expect([response.status, codeOf(response)]).toEqual([422, 'validation-error'])
})

test('a revoked key’s streams end, and it opens no other', async () => {
  const own = await stage.world.organisation()
  const spare = await stage.world.call(own.testKey, 'POST', '/organisations/current/api-keys', {
    name: 'spare',
    environment: 'test',
  })
  const one = listening(stage.world.base, String(spare.body.key))
  await one.opened
  await stage.publish(own)
  await one.until(1)
  await stage.world.call(own.testKey, 'DELETE', `/organisations/current/api-keys/${spare.body.id}`)
  expect(await one.ended).toBeInstanceOf(AuthenticationError)
})

test('a key has at most ten streams, and closing one allows another', async () => {
  const own = await stage.world.organisation()
  const ten = await Promise.all(Array.from({ length: 10 }, () => listen(own)))
  const refused = await stage.world.call(own.testKey, 'GET', '/events/stream')
  expect([refused.status, codeOf(refused)]).toEqual([429, 'rate-limit-exceeded'])
  expect(refused.headers.get('retry-after')).toBe('5')
  await ten[0]?.stop()
  await listen(own)
})

test('a replayed event reaches the subscribed webhooks and every listener, under the same id', async () => {
  const own = await stage.world.organisation()
  const [all, sealed] = [await stage.hook(own), await stage.hook(own, { events: ['vault.sealed'] })]
  const one = await listen(own)
  const [eventId = ''] = await stage.publish(own)
  await Promise.all([one.until(1), all.receiver.until(1)])
  const resend = (body: unknown, id = eventId) => stage.world.call(own.testKey, 'POST', `/events/${id}/resend`, body)
  expect((await resend({})).body).toEqual({ eventId, deliveries: 1 })
  await Promise.all([one.until(2), all.receiver.until(2)])
  expect((await resend({ webhookId: sealed.id })).body).toEqual({ eventId, deliveries: 1 })
  await sealed.receiver.until(1)
  const [last = ''] = await stage.publish(own)
  await Promise.all([one.until(3), all.receiver.until(3)])
  expect(idsOf(one)).toEqual([eventId, eventId, last])
  expect([all.receiver.ids().toSorted(), sealed.receiver.ids()]).toEqual([
    [eventId, eventId, last].toSorted(),
    [eventId],
  ])
  const again = (await followed(own, { lastEventId: one.had[1]?.id })).map((reported) => reported.eventId)
  expect(again).toEqual([last])
})

test('an event is not replayed to others’ webhooks, or to one that is disabled or unknown, and others’ events are not replayed', async () => {
  const [own, other] = [await stage.world.organisation(), await stage.world.organisation()]
  const [mine, theirs] = [await stage.hook(own), await stage.hook(other)]
  const [eventId = ''] = await stage.publish(own)
  const resend = (key: string, body: unknown) => stage.world.call(key, 'POST', `/events/${eventId}/resend`, body)
  expect(codeOf(await resend(other.testKey, {}))).toBe('event-not-found')
  const foreign = await resend(own.testKey, { webhookId: theirs.id })
  expect([foreign.status, codeOf(foreign)]).toEqual([422, 'webhook-not-found'])
  await stage.world.call(own.testKey, 'PATCH', `/webhooks/${mine.id}`, { isActive: false })
  const off = await resend(own.testKey, { webhookId: mine.id })
  expect([off.status, codeOf(off)]).toEqual([409, 'webhook-disabled'])
  expect((await resend(own.testKey, {})).body).toEqual({ eventId, deliveries: 0 })
})
