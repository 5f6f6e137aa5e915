import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { eventPayloads } from '../../src/features/webhooks/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { resource } from '../resources.ts'
import { aReceiver } from '../webhooks/receiver.ts'
import { aStage, type Stage } from '../webhooks/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage()
})
afterAll(() => stage?.stop())

test('every event that the service publishes without a chain has the payload that openapi.json publishes for its type', async () => {
  const { world } = stage
  const org = await world.organisation()
  const hook = await stage.hook(org)
  const post = (path: string, body: unknown = {}) => world.call(org.testKey, 'POST', path, body)
  const wallet = await world.wallet(org)
  const payment = { protocol: 'x402', price: '0.01', walletId: wallet.id, resource }
  await post('/payments/verify', { ...payment, credential: 'stub_payment_accepted' })
  const vaults = await Promise.all([0, 1, 2].map(async () => (await post('/vaults', { ttl: '2h' })).body.id))
  await post(`/vaults/${vaults[0]}/extend`, { ttl: '3h' })
  await post(`/vaults/${vaults[0]}/seal`)
  await post(`/vaults/${vaults[1]}/persist`)
  await post(`/webhooks/${hook.id}/test`)
  stage.clock.forward(4 * 3_600_000)
  const types = [
    'payment.received',
    'vault.extended',
    'vault.sealed',
    'vault.persisted',
    'webhook.test',
    'vault.expiring',
    'vault.expired',
  ]
  await expect.poll(() => [...new Set(hook.receiver.arrived.map(({ type }) => type))].sort()).toEqual([...types].sort())
  for (const { type, payload } of hook.receiver.arrived) {
    const published = eventPayloads[type]
    if (published === undefined) throw new Error(`${type} is not published`)
    const strict = z.strictObject(published.shape)
    expect([type, strict.safeParse(payload).error?.message]).toEqual([type, undefined])
  }
})

test('an event that one process commits is delivered by another, without a notification', async () => {
  const own = await aStage('api')
  const worker = await own.world.another({ role: 'work' })
  const org = await own.world.organisation()
  const hook = await own.hook(org)
  const sent: string[] = []
  for (let number = 1; number <= 20; number++) {
    sent.push(...(await own.publish(org)))
    await hook.receiver.until(number)
  }
  expect(hook.receiver.ids()).toEqual(sent)
  await worker.server.stop()
  await own.stop()
})

test('a receiver that never answers times out after ten seconds, and one with a slow body is judged by its status', async () => {
  const { world } = stage
  const org = await world.organisation()
  const silent = await stage.hook(org, { answer: () => undefined })
  const dripping = await stage.hook(org, {
    answer: (response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('x'), 200)
      response.on('close', () => clearInterval(timer))
    },
  })
  await stage.publish(org)
  await expect.poll(() => stage.attempts(org, silent), { timeout: 90_000 }).toHaveLength(1)
  const [attempt] = await stage.attempts(org, silent)
  expect(attempt).toMatchObject({ status: 'failed', error: 'timeout', responseStatus: null })
  expect(Number(attempt?.durationMs)).toBeGreaterThan(9_000)
  expect(Number(attempt?.durationMs)).toBeLessThan(20_000)
  await expect.poll(() => stage.deliveries(dripping)).toEqual({ succeeded: 1 })
})

test('a webhook with a closed port, one whose name does not resolve, and one that is not HTTP each fail and delay no other', async () => {
  const { world } = stage
  const org = await world.organisation()
  const stopped = await aReceiver()
  await stopped.stop()
  for (const url of [stopped.url, 'https://nobody.invalid/', `https://127.0.0.1:${new URL(world.base).port}/`])
    expect((await world.call(org.testKey, 'POST', '/webhooks', { url, events: ['*'] })).status).toBe(201)
  const well = await stage.hook(org)
  await stage.publish(org, 5)
  await well.receiver.until(5)
  const failed = () =>
    world.database.db.many(
      z.object({ error: z.string(), count: z.bigint() }),
      sql`select error, count(distinct delivery_id) as count from webhook_attempts
        where organisation_id = ${org.id} and status = 'failed' group by error`,
    )
  await expect
    .poll(async () => (await failed()).reduce((sum, { count }) => sum + Number(count), 0), { timeout: 90_000 })
    .toBeGreaterThanOrEqual(15)
  expect((await failed()).map(({ error }) => error).sort()).toEqual(['name-unknown', 'tls-failed', 'unreachable'])
})
