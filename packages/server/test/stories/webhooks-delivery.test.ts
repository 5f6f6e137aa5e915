import { webcrypto } from 'node:crypto'
import { verifyServiceWebhook, verifyStandardWebhook, verifyWebhookByKey } from '@purser/protocol'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { shareFirst } from '../../src/features/webhooks/delivery/endpoint.ts'
import { retryDelaysMs } from '../../src/features/webhooks/delivery/send.ts'
import { type Arrived, aReceiver, status } from '../webhooks/receiver.ts'
import { aStage, type Hook, type Stage } from '../webhooks/stage.ts'
import { codeOf, type Org } from '../world.ts'

let stage: Stage
let org: Org

beforeAll(async () => {
  stage = await aStage()
  org = await stage.world.organisation()
})
afterAll(() => stage?.stop())

const hour = 3_600_000

function change(hook: Hook, body: unknown, to: Org = org) {
  return stage.world.call(to.testKey, 'PATCH', `/webhooks/${hook.id}`, body)
}

function post(hook: Hook, path: string, body?: unknown, to: Org = org) {
  return stage.world.call(to.testKey, 'POST', `/webhooks/${hook.id}/${path}`, body)
}

function isSignedWith({ headers, body }: Arrived, secret: string): boolean {
  const moment = { nowSeconds: Number(headers['webhook-timestamp']) }
  const sent = { timestamp: String(headers['x-service-timestamp']), body: Buffer.from(body) }
  const standard = { ...sent, id: String(headers['webhook-id']), signature: String(headers['webhook-signature']) }
  const faults = [
    verifyServiceWebhook({ ...sent, signature: String(headers['x-service-signature']) }, [secret], moment),
    verifyStandardWebhook(standard, [secret], moment),
  ]
  return faults.every((fault) => fault === undefined)
}

async function publicKeys(query = ''): Promise<Uint8Array[]> {
  const set: unknown = await (await fetch(`${stage.world.base}/.well-known/jwks.json${query}`)).json()
  return Object(set).keys.map(({ x }: { x: string }) => Buffer.from(x, 'base64url'))
}

async function verifyEd25519(key: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const imported = await webcrypto.subtle.importKey('raw', Buffer.from(key), 'Ed25519', false, ['verify'])
  return webcrypto.subtle.verify('Ed25519', imported, Buffer.from(signature), Buffer.from(message))
}

test('an event arrives with the fields of the API, and the verifiers of standardwebhooks and svix accept it', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own)
  const vault = await stage.world.call(own.testKey, 'POST', '/vaults', {})
  await stage.world.call(own.testKey, 'POST', `/vaults/${vault.body.id}/seal`, { summary: 'Done' })
  await hook.receiver.until(1)
  const [got] = hook.receiver.arrived
  if (got === undefined) throw new Error('nothing arrived')
  expect(Object.keys(JSON.parse(got.body))).toEqual(['eventId', 'type', 'payload'])
  expect(got).toMatchObject({ type: 'vault.sealed', payload: { vaultId: vault.body.id, summary: 'Done' } })
  expect(got.headers['webhook-id']).toBe(got.eventId)
  expect(got.headers['content-type']).toBe('application/json')
  expect(isSignedWith(got, hook.secret)).toBe(true)
  for (const Verifier of [StandardWebhook, SvixWebhook]) {
    expect(() => new Verifier(hook.secret).verify(got.body, got.headers)).not.toThrow()
    expect(() => new Verifier(hook.secret).verify(`${got.body} `, got.headers)).toThrow()
  }
  const received = {
    id: got.eventId,
    timestamp: String(got.headers['webhook-timestamp']),
    signature: String(got.headers['webhook-signature']),
    body: Buffer.from(got.body),
  }
  const moment = { nowSeconds: Number(received.timestamp) }
  const keysOf = (id: string, environment: string) => publicKeys(`?organisation=${id}&environment=${environment}`)
  const faultBy = (keys: Uint8Array[]) => verifyWebhookByKey(received, keys, moment, verifyEd25519)
  expect(await faultBy(await keysOf(own.id, 'test'))).toBeUndefined()
  const other = await stage.world.organisation()
  for (const keys of [await publicKeys(), await keysOf(own.id, 'live'), await keysOf(other.id, 'test')])
    expect([keys.length, await faultBy(keys)]).toEqual([1, 'signature-mismatch'])
})

test.each([
  '?organisation=org_1',
  '?environment=test',
  '?organisation=org_01h455vb4pex5vsknk084sn02q&environment=both',
])(
  'a key set that is requested by %s is refused, since other keys would verify the deliveries of all',
  async (query) => {
    const refused = await fetch(`${stage.world.base}/.well-known/jwks.json${query}`)
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ status: 400, detail: expect.stringContaining('one organisation') })
  },
)

test('an event of a transaction that is rolled back is never published', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own)
  const { deps } = stage.world.server
  await expect(
    deps.db.tx(async (tx) => {
      const { insertEvents } = await import('../../src/platform/events.ts')
      const ctx = { ...deps, tenant: { organisationId: own.id, environment: 'test' as const } }
      await insertEvents(ctx, tx, 'vault.persisted', [{ vaultId: 'vlt_0', persistedAt: 'never' }])
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  const [eventId] = await stage.publish(own)
  await hook.receiver.until(1)
  expect(hook.receiver.ids()).toEqual([eventId])
})

test('a webhook gets the types that it subscribes to, of its own organisation and environment', async () => {
  const own = await stage.world.organisation()
  const other = await stage.world.organisation()
  const some = await stage.hook(own, { events: ['vault.expired', 'payment.received'] })
  const all = await stage.hook(own)
  await stage.publish(other)
  const live = await stage.world.call(own.liveKey, 'POST', '/webhooks', { url: some.receiver.url, events: ['*'] })
  expect(live.status).toBe(201)
  const [persisted] = await stage.publish(own)
  const [expired] = await stage.publish(own, 1, 'vault.expired')
  await Promise.all([some.receiver.until(1), all.receiver.until(2)])
  expect(some.receiver.ids()).toEqual([expired])
  expect([...all.receiver.ids()].sort()).toEqual([persisted, expired].sort())
  await expect.poll(() => stage.deliveries(some)).toEqual({ succeeded: 1 })
})

test('a failed delivery is retried on the schedule, with the same bytes and id and a new timestamp, and then is dead', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own, { answer: status(500, {}, 'broken') })
  const [eventId] = await stage.publish(own)
  for (const [index, delayMs] of retryDelaysMs.entries()) {
    await expect.poll(async () => (await stage.attempts(own, hook)).length).toBe(index + 1)
    expect(hook.receiver.arrived).toHaveLength(index + 1)
    stage.clock.forward(Math.round(delayMs * 1.1) + 1)
  }
  await expect.poll(() => stage.deliveries(hook)).toEqual({ dead: 1 })
  const attempts = [...(await stage.attempts(own, hook))].reverse()
  expect(attempts).toHaveLength(10)
  expect(attempts[0]).toMatchObject({
    eventId,
    type: 'vault.persisted',
    attempt: 1,
    status: 'failed',
    responseStatus: 500,
    responseBody: 'broken',
    error: 'not-accepted',
  })
  expect(attempts.map(({ attempt }) => attempt)).toEqual(attempts.map((_, index) => index + 1))
  for (const [index, { createdAt, nextAttemptAt }] of attempts.entries()) {
    const planned = retryDelaysMs[index]
    if (planned === undefined) expect(nextAttemptAt).toBeNull()
    else {
      const delay = Date.parse(String(nextAttemptAt)) - Date.parse(String(createdAt))
      expect(delay).toBeGreaterThanOrEqual(planned * 0.9)
      expect(delay).toBeLessThanOrEqual(planned * 1.1 + 5_000)
    }
  }
  expect(new Set(hook.receiver.arrived.map(({ body }) => body)).size).toBe(1)
  expect(new Set(hook.receiver.arrived.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(10)
  expect(hook.receiver.arrived.every((arrived) => isSignedWith(arrived, hook.secret))).toBe(true)

  const deliveryId = attempts[0]?.deliveryId
  hook.receiver.answer = status(204)
  const replayed = await post(hook, 'replay', { deliveryId }, own)
  expect([replayed.status, replayed.body.eventId, replayed.body.status]).toEqual([202, eventId, 'pending'])
  expect(replayed.body.id).not.toBe(deliveryId)
  await expect.poll(() => stage.deliveries(hook)).toEqual({ dead: 1, succeeded: 1 })
  expect(new Set(hook.receiver.ids())).toEqual(new Set([eventId]))
})

test('any answer without 2xx is a failure, and a redirect is not followed', async () => {
  const elsewhere = await aReceiver()
  for (const code of [199 + 101, 301, 302, 307, 400, 401, 404, 503]) {
    const own = await stage.world.organisation()
    const hook = await stage.hook(own, { answer: status(code, { location: elsewhere.url }) })
    await stage.publish(own)
    await expect.poll(async () => (await stage.attempts(own, hook)).length).toBe(1)
    expect((await stage.attempts(own, hook))[0]).toMatchObject({ status: 'failed', responseStatus: code })
  }
  expect(elsewhere.arrived).toHaveLength(0)
  await elsewhere.stop()
})

test('Retry-After postpones the next attempt, up to 14 hours', async () => {
  for (const [requested, least, most] of [
    ['3600', hour, hour + 5_000],
    ['1', 4_500, 10_500],
    ['999999999', 14 * hour, 14 * hour + 5_000],
    ['soon', 4_500, 10_500],
  ] as const) {
    const own = await stage.world.organisation()
    const hook = await stage.hook(own, { answer: status(503, { 'retry-after': requested }) })
    await stage.publish(own)
    await expect.poll(async () => (await stage.attempts(own, hook)).length).toBe(1)
    const [attempt] = await stage.attempts(own, hook)
    const delay = Date.parse(String(attempt?.nextAttemptAt)) - Date.parse(String(attempt?.createdAt))
    expect([delay >= least, delay <= most, delay]).toEqual([true, true, delay])
  }
})

test('a connection that dies at once is retried at once, as a separate attempt and not a step of the schedule', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own, { answer: (_, request) => request.socket.destroy() })
  const { receiver } = hook
  const drop = receiver.answer
  receiver.answer = (response, request, arrived) => {
    receiver.answer = status(200)
    drop(response, request, arrived)
  }
  await stage.publish(own)
  await expect.poll(() => stage.deliveries(hook)).toEqual({ succeeded: 1 })
  expect((await stage.attempts(own, hook)).map(({ attempt, status, error }) => [attempt, status, error])).toEqual([
    [2, 'succeeded', null],
    [1, 'failed', 'connection-lost'],
  ])
})

test('a connection that dies later than a second after its start is not retried at once', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own, {
    answer: (_, request) => void setTimeout(() => request.socket.destroy(), 1_050),
  })
  await stage.publish(own)
  await expect.poll(async () => (await stage.attempts(own, hook)).length).toBe(1)
  const [attempt] = await stage.attempts(own, hook)
  expect(attempt).toMatchObject({ status: 'failed', error: 'connection-lost' })
  expect(Date.parse(String(attempt?.nextAttemptAt)) - Date.parse(String(attempt?.createdAt))).toBeGreaterThanOrEqual(
    4_500,
  )
})

test('410 disables the webhook at once, ends its pending deliveries, and is published to the organisation’s other webhooks', async () => {
  const own = await stage.world.organisation()
  const gone = await stage.hook(own, { answer: status(410) })
  const watching = await stage.hook(own, { events: ['webhook.disabled'] })
  await stage.publish(own, 20)
  await watching.receiver.until(1)
  expect(watching.receiver.arrived[0]).toMatchObject({ type: 'webhook.disabled', payload: { webhookId: gone.id } })
  expect((await stage.world.call(own.testKey, 'GET', `/webhooks/${gone.id}`)).body.isActive).toBe(false)
  await expect.poll(() => stage.deliveries(gone)).toEqual({ dead: 21 })
  const sofar = gone.receiver.arrived.length
  expect(sofar).toBeLessThanOrEqual(shareFirst)
  expect(codeOf(await post(gone, 'test', undefined, own))).toBe('webhook-disabled')
  expect(codeOf(await post(gone, 'replay', { since: '2020-01-01T00:00:00Z' }, own))).toBe('webhook-disabled')

  gone.receiver.answer = status(200)
  expect((await change(gone, { isActive: true }, own)).body.isActive).toBe(true)
  expect((await post(gone, 'replay', { since: '2020-01-01T00:00:00Z' }, own)).body).toEqual({ replayed: 21 })
  await expect.poll(() => stage.deliveries(gone)).toEqual({ dead: 21, succeeded: 21 })
  expect(new Set(gone.receiver.ids()).size).toBe(21)
  expect((await post(gone, 'replay', { since: '2020-01-01T00:00:00Z' }, own)).body).toEqual({ replayed: 0 })
})

test('a webhook that accepts nothing for five days is disabled, with an event; one that accepted something in between is not', async () => {
  const own = await stage.world.organisation()
  const failing = await stage.hook(own, { answer: status(500), events: ['vault.persisted'] })
  const watching = await stage.hook(own, { events: ['webhook.disabled'] })
  const isActive = async () => (await stage.world.call(own.testKey, 'GET', `/webhooks/${failing.id}`)).body.isActive
  const dies = async (dead: number) => {
    await stage.publish(own)
    for (let died = false; !died; ) {
      const before = (await stage.attempts(own, failing)).length
      stage.clock.forward(16 * hour)
      const hasDied = async () => (await stage.deliveries(failing)).dead === dead
      await expect
        .poll(async () => (await stage.attempts(own, failing)).length > before || (await hasDied()))
        .toBe(true)
      died = await hasDied()
    }
  }
  failing.receiver.answer = status(200)
  await stage.publish(own)
  await expect.poll(() => stage.deliveries(failing)).toEqual({ succeeded: 1 })
  failing.receiver.answer = status(500)
  const [first] = await stage.publish(own)
  await expect.poll(async () => (await stage.attempts(own, failing))[0]?.eventId).toBe(first)
  failing.receiver.answer = status(200)
  stage.clock.forward(6 * 24 * hour)
  await expect.poll(() => stage.deliveries(failing)).toEqual({ succeeded: 2 })
  failing.receiver.answer = status(500)
  await dies(1)
  await expect.poll(isActive).toBe(false)
  await watching.receiver.until(1)
  expect(watching.receiver.arrived).toHaveLength(1)
  const [missed] = await stage.publish(own)
  await expect.poll(() => stage.deliveries(failing)).toEqual({ succeeded: 2, dead: 2 })
  failing.receiver.answer = status(200)
  await change(failing, { isActive: true }, own)
  await post(failing, 'replay', { since: '2020-01-01T00:00:00Z' }, own)
  await expect.poll(() => failing.receiver.ids()).toContain(missed)
})

test('pending deliveries of a deleted or disabled webhook are not sent', async () => {
  const own = await stage.world.organisation()
  const deleted = await stage.hook(own, { answer: status(500) })
  const off = await stage.hook(own, { answer: status(500) })
  await stage.publish(own, 10)
  await Promise.all([deleted, off].map((hook) => expect.poll(() => stage.attempts(own, hook)).toHaveLength(10)))
  expect((await stage.world.call(own.testKey, 'DELETE', `/webhooks/${deleted.id}`)).status).toBe(204)
  await change(off, { isActive: false }, own)
  expect(await stage.deliveries(deleted)).toEqual({ dead: 10 })
  expect(await stage.deliveries(off)).toEqual({ dead: 10 })
  stage.clock.forward(hour)
  const witness = await stage.hook(own)
  await stage.publish(own)
  await witness.receiver.until(1)
  await expect.poll(() => stage.deliveries(off)).toEqual({ dead: 11 })
  expect([deleted.receiver.arrived.length, off.receiver.arrived.length]).toEqual([10, 10])
  expect(codeOf(await stage.world.call(own.testKey, 'GET', `/webhooks/${deleted.id}`))).toBe('webhook-not-found')
})

test('after a rotation both secrets sign for 24 hours, then the new one alone', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own)
  const rotated = await post(hook, 'rotate-secret', undefined, own)
  const fresh = String(rotated.body.secret)
  expect(fresh).toMatch(/^whsec_/)
  expect(fresh).not.toBe(hook.secret)
  const lastOne = async () => {
    const before = hook.receiver.arrived.length
    await stage.publish(own)
    await hook.receiver.until(before + 1)
    const arrived = hook.receiver.arrived.at(-1)
    if (arrived === undefined) throw new Error('nothing arrived')
    return arrived
  }
  const during = await lastOne()
  expect([isSignedWith(during, fresh), isSignedWith(during, hook.secret)]).toEqual([true, true])
  expect(during.headers['x-service-signature']).toMatch(/^sha256=[0-9a-f]{64},sha256=[0-9a-f]{64}$/)
  expect(during.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+ v1a,\S+$/)
  stage.clock.forward(24 * hour)
  await expect.poll(() => stage.deliveries(hook)).toEqual({ succeeded: 1 })
  const after = await lastOne()
  expect([isSignedWith(after, fresh), isSignedWith(after, hook.secret)]).toEqual([true, false])
})

test('deliveries pending at the rotation are signed with both secrets, and with the new one alone a day later', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own, { answer: status(500) })
  await stage.publish(own, 5)
  await expect.poll(async () => (await stage.attempts(own, hook)).length).toBe(5)
  const fresh = String((await post(hook, 'rotate-secret', undefined, own)).body.secret)
  stage.clock.forward(6_000)
  await expect.poll(async () => (await stage.attempts(own, hook)).length).toBe(10)
  hook.receiver.answer = status(200)
  stage.clock.forward(24 * hour)
  await expect.poll(() => stage.deliveries(hook)).toEqual({ succeeded: 5 })
  const signed = hook.receiver.arrived.map((arrived) =>
    [hook.secret, fresh].map((secret) => isSignedWith(arrived, secret)),
  )
  const times = (count: number, what: readonly boolean[]) => Array.from({ length: count }, () => what)
  expect(signed).toEqual([...times(5, [true, false]), ...times(5, [true, true]), ...times(5, [false, true])])
})

test('deliveries pending at a change of address go to the new one', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own, { answer: status(500) })
  const sent = await stage.publish(own, 5)
  await expect.poll(async () => (await stage.attempts(own, hook)).length).toBe(5)
  const moved = await aReceiver()
  expect((await change(hook, { url: moved.url }, own)).status).toBe(200)
  stage.clock.forward(6_000)
  await moved.until(5)
  expect([...moved.ids()].sort()).toEqual([...sent].sort())
  expect(hook.receiver.arrived).toHaveLength(5)
  await moved.stop()
})

test('a test event reaches the one webhook, whatever it subscribes to, and no other', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own, { events: ['vault.sealed'] })
  const other = await stage.hook(own)
  expect((await post(hook, 'test', undefined, own)).status).toBe(200)
  await hook.receiver.until(1)
  expect(hook.receiver.arrived[0]).toMatchObject({ type: 'webhook.test', payload: { webhookId: hook.id } })
  await stage.publish(own)
  await other.receiver.until(1)
  expect(other.receiver.arrived.map(({ type }) => type)).toEqual(['vault.persisted'])
})

test('a receiver’s response is stored up to its first kilobyte, as text that the database accepts', async () => {
  const own = await stage.world.organisation()
  const hook = await stage.hook(own, { answer: status(200, {}, `\u0000\ud83d${'x'.repeat(100_000)}`) })
  await stage.publish(own)
  await expect.poll(() => stage.deliveries(hook)).toEqual({ succeeded: 1 })
  const [attempt] = await stage.attempts(own, hook)
  expect(String(attempt?.responseBody)).toHaveLength(1_024 - 2)
})
