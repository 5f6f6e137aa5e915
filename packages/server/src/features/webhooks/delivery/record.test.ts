import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type World } from '../../../../test/world.ts'
import { instantOf } from '../../../platform/clock.ts'
import { sql } from '../../../platform/db/db.ts'
import { id, newId } from '../../../platform/ids.ts'
import { createRecord } from './record.ts'

let world: World

beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' } })
})
afterAll(() => world?.stop())

const hour = 3_600_000
const day = 24 * hour

/** Whether a webhook that fails since `failing` milliseconds is on after the first attempt of a delivery of this age. */
async function isOnAfter({ failing, age }: { readonly failing: number; readonly age: number }): Promise<boolean> {
  const org = await world.organisation()
  const hook = await world.call(org.testKey, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] })
  const delivery = await world.call(org.testKey, 'POST', `/webhooks/${hook.body.id}/test`)
  const { deps } = world.server
  const now = instantOf(Date.now() + age)
  const failingSince = instantOf(now.getTime() - failing)
  const webhookId = id('wh').parse(hook.body.id)
  await world.database.db.run(sql`update webhooks set failing_since = ${failingSince} where id = ${webhookId}`)
  await createRecord({ ...deps, clock: { ...deps.clock, now: () => now } })({
    endpoint: {
      id: webhookId,
      organisationId: org.id,
      environment: 'test',
      url: 'http://127.0.0.1:9/',
      failingSince,
      secrets: [],
    },
    status: 'pending',
    isGone: false,
    attempts: [
      {
        id: newId('att', deps),
        deliveryId: id('del').parse(delivery.body.id),
        webhookId,
        attempt: 1,
        isSuccess: false,
        responseStatus: null,
        responseBody: null,
        durationMs: 10_000,
        error: 'timeout',
        nextAttemptAt: now,
        createdAt: now,
        stepAfter: 1,
      },
    ],
  })
  const { body } = await world.call(org.testKey, 'GET', `/webhooks/${webhookId}`)
  return Boolean(body.isActive)
}

test('a webhook that accepts nothing for five days is turned off when a delivery fails that is older than retries take', async () => {
  expect(await isOnAfter({ failing: 6 * day, age: 7 * day })).toBe(false)
})

test('a webhook that failed six days ago is on after the first attempt of a new delivery fails, or of one that its receiver postponed, and one that fails for two days too', async () => {
  expect(await isOnAfter({ failing: 6 * day, age: hour })).toBe(true)
  expect(await isOnAfter({ failing: 20 * day, age: 5 * day })).toBe(true)
  expect(await isOnAfter({ failing: 2 * day, age: 7 * day })).toBe(true)
})
