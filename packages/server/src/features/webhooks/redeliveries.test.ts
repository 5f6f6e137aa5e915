import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../../test/world.ts'
import { systemClock } from '../../platform/clock.ts'
import { createLimiter } from '../../platform/http/limits.ts'
import { limitRedeliveries } from './redeliveries.ts'

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
  const replay = (placeOwner: string, count: number) => {
    const tenant = { organisationId: org.id, environment: 'test' as const }
    const ctx = { redeliveries, tenant, placeOwner }
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

test('an event that nothing caused costs as much as twenty requests', async () => {
  const hook = await world.call(org.testKey, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] })
  const left = (answer: { readonly headers: Headers }) =>
    Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1])
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
