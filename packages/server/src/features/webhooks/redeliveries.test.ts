import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../../test/world.ts'
import { systemClock } from '../../platform/clock.ts'
import { sql } from '../../platform/db/db.ts'
import { createLimiter } from '../../platform/http/limits.ts'
import { limitRedeliveries } from './redeliveries.ts'
import { webhookOperations } from './routes.ts'

let world: World
let org: Org

beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' } })
  org = await world.organisation()
})
afterAll(() => world?.stop())

test('an owner whose replays wrote more deliveries than its limit waits, and another does not', async () => {
  const clock = { ...systemClock, now: () => new Date(0) }
  const redeliveries = createLimiter({ perSecond: 1, burst: 10 }, clock)
  const replay = (shareOwner: string, count: number) => {
    const tenant = { organisationId: org.id, environment: 'test' as const }
    const ctx = { redeliveries, tenant, shareOwner }
    return limitRedeliveries(
      ctx,
      (done) => done,
      () => Promise.resolve(count),
    )
  }
  expect([await replay('one', 4), await replay('one', 16)]).toEqual([4, 16])
  await expect(replay('one', 1)).rejects.toMatchObject({
    code: 'rate-limit-exceeded',
    members: { retryAfterSeconds: 11 },
  })
  expect(await replay('another', 1)).toBe(1)
})

test('dry runs leave the limit to the replay that follows them', async () => {
  const own = await world.organisation()
  const hook = await world.call(own.testKey, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] })
  for (let count = 0; count < 3; count++) await world.call(own.testKey, 'POST', `/webhooks/${hook.body.id}/test`)
  await world.database.db.run(sql`
    update webhook_deliveries set status = 'dead', due_at = null, ended_at = now() where organisation_id = ${own.id}`)
  const clock = { ...systemClock, now: () => new Date(0) }
  const redeliveries = createLimiter({ perSecond: 1, burst: 2 }, clock)
  const tenant = { organisationId: own.id, environment: 'test' }
  const ctx = { ...world.server.deps, tenant, shareOwner: own.id, redeliveries, audit: async () => undefined } as never
  const operation = webhookOperations.find(({ id }) => id === 'webhooks.replay')
  const replay = (dryRun: boolean) => {
    const body = { since: new Date(0), dryRun }
    return operation?.run(ctx, { params: { webhookId: hook.body.id }, query: undefined, body } as never)
  }
  for (const dryRun of [true, true, true, false]) expect(await replay(dryRun)).toEqual({ replayed: 3 })
  await expect(replay(false)).rejects.toMatchObject({ code: 'rate-limit-exceeded' })
})

test('an event that nothing caused costs as much as twenty requests', async () => {
  const hook = await world.call(org.testKey, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] })
  const left = (response: { readonly headers: Headers }) =>
    Number(/r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1])
  const paths = [
    ['/events/trigger', { type: 'vault.sealed' }],
    [`/webhooks/${hook.body.id}/test`, undefined],
  ] as const
  for (const [path, body] of paths) {
    const before = left(await world.call(org.testKey, 'GET', '/webhooks'))
    const made = await world.call(org.testKey, 'POST', path, body)
    expect(made.status, JSON.stringify(made.body)).toBeLessThan(300)
    expect(before - left(made)).toBeGreaterThan(15)
  }
})
